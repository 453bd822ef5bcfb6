#pragma once
// Rotary position embeddings, with the ways in which checkpoints stretch them to longer texts.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/io/config.h"
#include "sinter/tensor/tensor.h"

namespace sinter::models {

struct RopeConfig {
  std::string type = "default";  // or linear, dynamic, yarn, llama3, longrope
  int64_t dim = 0;               // how many elements of a head are rotated: the first ones
  double theta = 10000;
  double factor = 1;
  int64_t max_positions = 0, original_max_positions = 0;
  double attention_factor = 1;                       // multiplies cos and sin
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                              // yarn
  std::vector<double> short_factor, long_factor;     // longrope
  bool operator==(const RopeConfig&) const = default;

  // From config.json in the newer form (rope_parameters, perhaps one object a layer type) or the older one (rope_theta,
  // rope_scaling).
  static RopeConfig read(const ConfigFile& file, int64_t head_dim, const std::string& layer_type = "");
};

// cos and sin of a forward pass: [tokens, dim / 2] or [batch, 1, tokens, dim / 2], f32.
struct RopeTable {
  Tensor cos, sin;
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

// x [batch, heads, tokens, head_dim] with its first elements rotated, halves against each other.
Tensor rotate(const Tensor& x, const RopeTable& table);

}  // namespace sinter::models
