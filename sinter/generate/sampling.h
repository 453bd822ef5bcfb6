#pragma once
// The next token from logits, in ops: part of a compiled step.
#include <cstdint>
#include <optional>
#include <span>

#include "sinter/tensor/tensor.h"

namespace sinter {

// How one sequence is continued. Filters apply in this order, as in Hugging Face's generate.
struct SamplingOptions {
  double repetition_penalty = 1;  // of the logits of tokens that have occurred, the prompt included
  double temperature = 0;         // 0: always the likeliest token
  int64_t top_k = 0;              // of the likeliest so many; 0: of all
  double top_p = 1;               // of the likeliest that together have this probability
  double min_p = 0;               // of those with at least this fraction of the likeliest one's probability
  uint64_t seed = 0;

  bool samples() const { return temperature > 0; }
  // An Error names the option that is out of range.
  void check() const;
};

// Which of the filters a program has; the numbers reach it as tensors.
struct SamplingShape {
  bool samples = false, penalty = false, nucleus = false, min_p = false;
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
