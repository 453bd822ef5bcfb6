#pragma once
// The next token from logits, in ops: part of a compiled step.
#include <cstdint>
#include <optional>
#include <span>

#include "sinter/generate/text_generator.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// Which of the filters a program has; the numbers reach it as tensors.
struct SamplingShape {
  bool samples = false, penalty = false, nucleus = false, min_p = false, suppresses = false;
  int64_t top_k = 0;
  bool operator==(const SamplingShape&) const = default;
  static SamplingShape of(const SamplingOptions& options);
  std::string text() const;
};

// One row a sequence: temperature, top_p, min_p and penalty.
Tensor sampling_numbers(const SamplingOptions& options, int64_t rows);
// The draw of row `row` at step `step`, in [0, 1): the same in every mode and whatever else is in the batch.
double sampling_draw(uint64_t seed, int64_t row, int64_t step);

// Tokens [batch] (i64) from logits [batch, vocab]. `seen` [batch, vocab] (bool) and its column of `numbers` are read with
// a penalty alone, the other columns and `draws` [batch] when samples are drawn.
Tensor sample(const Tensor& logits, const SamplingShape& shape, const Tensor& numbers, const Tensor& draws,
              const Tensor& seen);

}  // namespace sinter
