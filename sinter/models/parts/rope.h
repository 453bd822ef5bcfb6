#pragma once
// Rotary position embeddings, with the ways in which checkpoints stretch them to longer texts.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/models/models.h"
#include "sinter/tensor/tensor.h"

namespace sinter::models {

// cos and sin of a forward pass: [tokens, dim / 2] or [batch, 1, tokens, dim / 2], f32. Undefined where nothing rotates.
struct RopeTable {
  Tensor cos, sin;
  bool interleaved = false;
};

class Rope {
 public:
  explicit Rope(RopeConfig config);
  // Of positions [tokens] or [batch, tokens].
  RopeTable operator()(const Tensor& positions) const;
  // The tensors that it reads beside, which no state dict has.
  std::vector<Tensor> tensors() const;

 private:
  RopeConfig config_;
  Tensor frequencies_, long_frequencies_;  // f32 whatever the model's type
};

// x [batch, heads, tokens, head_dim] with its first elements rotated: halves against each other, or neighbours.
Tensor rotate(const Tensor& x, const RopeTable& table);

}  // namespace sinter::models
