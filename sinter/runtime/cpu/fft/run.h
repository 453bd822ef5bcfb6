#pragma once
// Transforms by a plan, of memory that is laid out for them. Internal to fft/.
#include <cstdint>

#include "sinter/runtime/cpu/fft/plan.h"

namespace sinter::runtime::fft_detail {

// Side by side. The input is any vectors, or for a plan with `padded` no pairs; it may lie in `a` or `b`, which are blocks of
// block_elements(plan). The result goes to `out`, or without memory there (and always with `padded`) into `a` or `b`: which
// one is returned. Factors apply to pairs alone.
template <class T>
T* transform_block(const Plan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out, Factors<T> of_output,
                   T* a, T* b);
template <class T>
int64_t block_elements(const Plan<T>& plan);

// A line in memory of our own: real parts, and behind them the imaginary ones. Before and behind either lie lanes that may be
// read, and behind them written.
inline int64_t line_pitch(int64_t n) { return ceil_div(n + 1, kMaxLanes) * kMaxLanes + kMaxLanes; }
inline int64_t line_numbers(int64_t n) { return 2 * line_pitch(n) + kMaxLanes; }
template <class T>
Vectors<T> line_at(T* memory, int64_t n) {
  return {memory + kMaxLanes, memory + kMaxLanes + line_pitch(n), 1};
}

// A line alone, at most once through `threads`. Input and output are a line in memory of our own (a stride of 1) or adjacent
// pairs (of 2), and may be the same. Factors apply to pairs alone.
template <class T>
void transform_line(const Plan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out, Factors<T> of_output,
                    T* scratch, bool threads);
// The numbers of its scratch.
template <class T>
int64_t line_scratch(const Plan<T>& plan);

// Between adjacent pairs and a line in memory of our own.
template <class T>
void load_line(const FftCore<T>& core, const T* pairs, int64_t n, Factors<T> factors, Vectors<T> line);
template <class T>
void store_line(const FftCore<T>& core, Vectors<const T> line, int64_t n, Factors<T> factors, T* pairs);

}  // namespace sinter::runtime::fft_detail
