#pragma once
// What one instruction set offers to attention beside its GEMM kernels. Internal to attention/.
#include <cstdint>

#include "sinter/runtime/cpu/attention/attention.h"

namespace sinter::runtime::attention_detail {

// Rows of scores and of sums of values begin at multiples of this and may be written up to the next one.
inline constexpr int64_t kPadding = 16;

// A block of scores [rows, keys] becomes exp(score - maximum); the sums so far are scaled to the new maximum.
struct SoftmaxArgs {
  float* scores;
  int64_t score_stride, rows, keys;
  const int64_t* visible;  // by row: how many of the keys count; the rest become 0
  float *maximum, *sum;    // by row, of all blocks so far; at first minus infinity and 0
  float* values;           // [rows, value_size]: the sum of exp(...) * value so far
  int64_t value_stride, value_size;
};

// Scores [count] become weights exp(score - log_sum), and what flows back to the weights becomes what flows back to the
// scores: weight * (flow - mean). Both are zero from `visible` on, up to `count`.
struct WeightGradArgs {
  float *scores, *flow;
  int64_t visible, count;
  float log_sum, mean;
};

// A stretch of a row of weights, by the counter of its first one.
struct DropArgs {
  const AttentionDropout& dropout;
  int64_t counter;
};

struct AttentionCore {
  void (*softmax)(const SoftmaxArgs& args);
  void (*weight_grad)(const WeightGradArgs& args);
  // The same where the weights were dropped: what flows back is dropped as they were, and so are the weights in the end.
  void (*dropped_weight_grad)(const WeightGradArgs& args, const DropArgs& drop);
  // Drops weights.
  void (*drop)(float* weights, int64_t count, const DropArgs& drop);
  // scores[i] with the mask's element i * stride.
  void (*mask)(float* scores, const void* mask, AttentionMaskType type, int64_t stride, int64_t count);
  // to[i] *= factor
  void (*scale)(float* to, int64_t count, float factor);
  // to[i] += from[i] * factor
  void (*add_scaled)(float* to, const float* from, int64_t count, float factor);
};

// Those of an instruction set the compiler has no support for are null, those of another machine are not defined.
const AttentionCore* scalar_core();
const AttentionCore* avx2_core();
const AttentionCore* avx512_core();

}  // namespace sinter::runtime::attention_detail
