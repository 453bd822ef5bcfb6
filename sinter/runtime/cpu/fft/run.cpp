#include "sinter/runtime/cpu/fft/run.h"

#include <algorithm>

#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/fft/memory.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime::fft_detail {

namespace {

template <class T>
Vectors<T> block_at(T* block, int64_t lanes) {
  return {block, block + lanes, 2 * lanes};
}

// See transform_block.
template <class T>
T* run(const FftCore<T>& core, const BlockPlan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out,
       Factors<T> of_output, T* a, T* b) {
  const auto next = [&](const T* used) { return used == a ? b : a; };
  if (!in.im && !plan.steps.front().variants[kPairsIn]) {
    core.move({in, block_at(a, core.lanes), plan.n, of_input});
    in = block_at(a, core.lanes);
  }
  for (const auto& step : plan.steps) {
    const bool last = step.groups == 1, pairs_in = !in.im;
    const bool pairs_out = last && out.re && !out.im && step.variants[kPairsOut];
    const bool direct = last && out.re && (out.im || pairs_out);
    const Vectors<T> to = direct ? out : block_at(next(in.re), core.lanes);
    const T* tables = plan.tables.data();
    step.variants[(pairs_in ? kPairsIn : 0) + (pairs_out ? kPairsOut : 0)]({.in = in,
                                                                            .out = to,
                                                                            .radix = step.radix,
                                                                            .span = step.span,
                                                                            .groups = step.groups,
                                                                            .twiddles = tables + step.twiddles,
                                                                            .matrix = tables + step.matrix,
                                                                            .of_input = of_input,
                                                                            .of_output = of_output});
    if (direct) return nullptr;
    in = to;
  }
  if (out.re) {
    core.move({in, out, plan.n, of_output});
    return nullptr;
  }
  return in.re == a ? a : b;
}

// Calls body(i, a, b) for i < count, with two blocks of n elements.
template <class T, class Body>
void each_block(int64_t count, int64_t n, int64_t lanes, T* scratch, bool threads, const Body& body) {
  const int64_t size = 2 * n * lanes;
  if (!threads) {
    for (int64_t i = 0; i < count; ++i) body(i, scratch, scratch + size);
    return;
  }
  parallel_for(0, count, std::max<int64_t>(1, 8192 / size), [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    const Memory<T> memory(2 * size);
    for (int64_t i = begin; i < end; ++i) body(i, memory.data(), memory.data() + size);
  });
}

// The columns of a matrix from `first` on, fewer than there are lanes, to a block; and back.
template <class T>
void load_few(Vectors<const T> in, Factors<T> factors, int64_t n, int64_t few, int64_t lanes, T* block) {
  const int64_t step = in.im ? 1 : 2;
  const T* im = in.im ? in.im : in.re + 1;
  if (in.im) factors = {};
  for (int64_t i = 0; i < n; ++i, block += 2 * lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t at = i * in.stride + step * lane;
      block[lane] = lane < few ? in.re[at] * factors.re : T(0);
      block[lanes + lane] = lane < few ? im[at] * factors.im : T(0);
    }
}
template <class T>
void store_few(const T* block, Factors<T> factors, int64_t n, int64_t few, int64_t lanes, Vectors<T> out) {
  const int64_t step = out.im ? 1 : 2;
  T* im = out.im ? out.im : out.re + 1;
  if (out.im) factors = {};
  for (int64_t i = 0; i < n; ++i, block += 2 * lanes)
    for (int64_t lane = 0; lane < few; ++lane) {
      const int64_t at = i * out.stride + step * lane;
      out.re[at] = block[lane] * factors.re;
      im[at] = block[lanes + lane] * factors.im;
    }
}

// The columns from `first` on as vectors.
template <class T>
Vectors<T> columns_at(Vectors<T> line, int64_t first, int64_t row) {
  const int64_t at = first * line.stride;
  return {line.re + at, line.im ? line.im + at : nullptr, row * line.stride};
}

template <class T>
void transform_matrix(const Plan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out,
                      Factors<T> of_output, T* scratch, bool threads) {
  const FftCore<T>& core = *plan.core;
  const int64_t lanes = core.lanes, rows = plan.columns.n, cols = plan.rows.n, longest = std::max(rows, cols);
  T* const middle = scratch + 4 * longest * lanes;  // blocks of columns
  each_block<T>(ceil_div(cols, lanes), longest, lanes, scratch, threads, [&](int64_t i, T* a, T* b) {
    const int64_t first = i * lanes, few = std::min(lanes, cols - first);
    const Vectors<T> to = block_at(middle + i * 2 * rows * lanes, lanes);
    Vectors<const T> from = columns_at(in, first, cols);
    if (few < lanes) {
      load_few(from, of_input, rows, few, lanes, a);
      from = block_at(a, lanes);
    }
    run(core, plan.columns, from, of_input, to, {}, a, b);
  });
  // The result's elements lie as a column of `rows` each: row and column have changed places.
  each_block<T>(ceil_div(rows, lanes), longest, lanes, scratch, threads, [&](int64_t i, T* a, T* b) {
    const int64_t first = i * lanes, few = std::min(lanes, rows - first);
    core.turn({.columns = middle,
               .rows = rows,
               .n = cols,
               .first = first,
               .twiddles = plan.turn.data(),
               .steps = plan.turn_steps.data(),
               .block = a});
    const Vectors<T> to = columns_at(out, first, rows);
    const bool direct = few == lanes;
    const T* result = run<T>(core, plan.rows, block_at(a, lanes), {}, direct ? to : Vectors<T>{}, of_output, a, b);
    if (!direct) store_few(result, of_output, cols, few, lanes, to);
  });
}

template <class T>
void zero(Vectors<T> line, int64_t begin, int64_t end) {
  std::fill(line.re + begin, line.re + end, T(0));
  std::fill(line.im + begin, line.im + end, T(0));
}

}  // namespace

template <class T>
T* transform_block(const Plan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out, Factors<T> of_output,
                   T* a, T* b) {
  const FftCore<T>& core = *plan.core;
  if (!plan.padded) return run(core, plan.block, in, of_input, out, of_output, a, b);
  const int64_t n = plan.n, m = plan.padded->n, lanes = core.lanes;
  const auto multiply = [&](Vectors<const T> x, int64_t count, const Coefficients<T>& by, T in_sign, T out_sign,
                            T* to) {
    core.multiply({x, block_at(to, lanes), count, false, by.re, by.im, in_sign, out_sign});
  };
  T* x = in.re == a ? b : a;
  multiply(in, n, plan.chirp, 1, 1, x);
  std::fill(x + 2 * n * lanes, x + 2 * m * lanes, T(0));
  // The way back is the conjugate of the transform of the conjugates.
  x = run<T>(core, plan.padded->block, block_at(x, lanes), {}, {}, {}, a, b);
  multiply(block_at(x, lanes), m, plan.filter, 1, -1, x);
  x = run<T>(core, plan.padded->block, block_at(x, lanes), {}, {}, {}, a, b);
  multiply(block_at(x, lanes), n, plan.chirp, -1, 1, x);
  return x;
}

template <class T>
int64_t block_elements(const Plan<T>& plan) {
  return plan.half ? std::max(plan.half->n + 1, block_elements(*plan.half)) : plan.padded ? plan.padded->n : plan.n;
}

template <class T>
void load_line(const FftCore<T>& core, const T* pairs, int64_t n, Factors<T> factors, Vectors<T> line) {
  const int64_t lanes = core.lanes, whole = n / lanes;
  core.move({{pairs, nullptr, 2 * lanes}, {line.re, line.im, lanes}, whole, factors});
  for (int64_t i = whole * lanes; i < n; ++i) {
    line.re[i] = pairs[2 * i] * factors.re;
    line.im[i] = pairs[2 * i + 1] * factors.im;
  }
}
template <class T>
void store_line(const FftCore<T>& core, Vectors<const T> line, int64_t n, Factors<T> factors, T* pairs) {
  const int64_t lanes = core.lanes, whole = n / lanes;
  core.move({{line.re, line.im, lanes}, {pairs, nullptr, 2 * lanes}, whole, factors});
  for (int64_t i = whole * lanes; i < n; ++i) {
    pairs[2 * i] = line.re[i] * factors.re;
    pairs[2 * i + 1] = line.im[i] * factors.im;
  }
}

template <class T>
void transform_line(const Plan<T>& plan, Vectors<const T> in, Factors<T> of_input, Vectors<T> out, Factors<T> of_output,
                    T* scratch, bool threads) {
  if (!plan.padded) return transform_matrix(plan, in, of_input, out, of_output, scratch, threads);
  const FftCore<T>& core = *plan.core;
  const int64_t n = plan.n, m = plan.padded->n;
  const Vectors<T> x = line_at(scratch, m), result = out.im ? out : x;
  scratch += line_numbers(m);
  const auto multiply = [&](Vectors<const T> from, int64_t count, const Coefficients<T>& by, T in_sign, T out_sign,
                            Vectors<T> to) {
    core.multiply({from, to, count, true, by.re, by.im, in_sign, out_sign});
  };
  if (!in.im) load_line(core, in.re, n, of_input, x);
  multiply(in.im ? in : Vectors<const T>(x), n, plan.chirp, 1, 1, x);
  zero(x, n, m);
  transform_matrix<T>(*plan.padded, x, {}, x, {}, scratch, threads);
  multiply(x, m, plan.filter, 1, -1, x);
  transform_matrix<T>(*plan.padded, x, {}, x, {}, scratch, threads);
  multiply(x, n, plan.chirp, -1, 1, result);
  if (!out.im) store_line<T>(core, x, n, of_output, out.re);
}

template <class T>
int64_t line_scratch(const Plan<T>& plan) {
  if (plan.half) return line_scratch(*plan.half);
  if (plan.padded) return line_numbers(plan.padded->n) + line_scratch(*plan.padded);
  const int64_t lanes = plan.core->lanes, rows = plan.columns.n, cols = plan.rows.n;
  return 4 * std::max(rows, cols) * lanes + ceil_div(cols, lanes) * 2 * rows * lanes;
}

#define SINTER_FFT_RUN(T)                                                                                       \
  template T* transform_block(const Plan<T>&, Vectors<const T>, Factors<T>, Vectors<T>, Factors<T>, T*, T*);    \
  template int64_t block_elements(const Plan<T>&);                                                              \
  template void load_line(const FftCore<T>&, const T*, int64_t, Factors<T>, Vectors<T>);                        \
  template void store_line(const FftCore<T>&, Vectors<const T>, int64_t, Factors<T>, T*);                       \
  template void transform_line(const Plan<T>&, Vectors<const T>, Factors<T>, Vectors<T>, Factors<T>, T*, bool); \
  template int64_t line_scratch(const Plan<T>&);
SINTER_FFT_RUN(float)
SINTER_FFT_RUN(double)

}  // namespace sinter::runtime::fft_detail
