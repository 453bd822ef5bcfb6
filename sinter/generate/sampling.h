#pragma once
// The next token from logits, in ops: part of a compiled step.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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

// --- rows with settings of their own, in one program: every number is a column

// What picks a row's token. It follows from the row's own settings, and each kind is one program, so that a request's tokens are
// the same whatever else is in the batch.
enum class Picking : uint8_t {
  kLikeliest,  // nothing is drawn, nothing changes the logits
  kDrawn,      // temperature and min_p
  kGeneral,    // every filter and what changes logits; at temperature 0 the likeliest
};

struct RowSampling {
  SamplingOptions options = {};
  // Empty, or one a token: what is added to its logit, and whether it has occurred (for the penalty of repetition).
  std::vector<float> bias = {};
  std::vector<uint8_t> seen = {};
  double draw = 0;  // sampling_draw()

  Picking picking() const;
};

struct RowsSampling {
  Tensor numbers, draws;  // [rows, columns], [rows]
  Tensor bias, seen;      // of the general kind: f32 and bool [rows, vocab]
  SINTER_FIELDS(numbers, draws, bias, seen)

  // On the host. Null rows are padding.
  static RowsSampling of(std::span<const RowSampling* const> rows, Picking picking, int64_t vocab);
};

// Tokens [rows] (i64) from logits [rows, vocab].
Tensor sample_rows(const Tensor& logits, Picking picking, const RowsSampling& rows);

}  // namespace sinter
