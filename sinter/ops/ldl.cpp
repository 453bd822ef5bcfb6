// The factorisation of symmetric matrices that need not be positive, and systems of equations by it.
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dense.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/matrices.h"

namespace sinter {

namespace {

constexpr NotDifferentiable kNoGradient{"PyTorch gives this factorisation none; linalg.solve has a gradient"};

struct LdlFactor : Opaque {
  static constexpr auto name = "linalg_ldl_factor_ex";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = FactorAttrs;
  static constexpr NotDifferentiable grad = kNoGradient;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}, Type{kInt32, batch_with(a.shape, {a.shape.back()}), a.device},
            Type{kInt32, batch_with(a.shape, {}), a.device}};
  }
  template <class T, class I>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* ld, I* pivots, I* info,
                      const std::string& fails) {
    const int64_t n = s.rows;
    for_each_matrix(s.count, n * n * n, [&](int64_t at) {
      auto matrix = by_columns(n, n, a + at * n * n);
      std::vector<int32_t> swaps(size_t(n), 0);
      info[at] = n ? dense.ldl(n, matrix.data(), swaps.data()) : 0;
      for (int64_t j = 0; j < n; ++j) std::fill_n(matrix.data() + j * n, j, T(0));
      store_columns(n, n, matrix.data(), ld + at * n * n);
      std::copy(swaps.begin(), swaps.end(), pivots + at * n);
    });
    factor::check_ldl(fails, {info, info + s.count});
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous(), ld = empty(a.sizes(), a.dtype()),
           pivots = empty(batch_with(a.sizes(), {a.size(-1)}), kInt32), info = empty(batch_with(a.sizes(), {}), kInt32);
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(a.impl().sizes), a.data_ptr<T>(), ld.data_ptr<T>(), pivots.data_ptr<int32_t>(),
              info.data_ptr<int32_t>(), attrs.as<FactorAttrs>().fails);
    });
    return {ld, pivots, info};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(),
            c.outputs[1].i.data(), c.outputs[2].i.data(), c.call.as<FactorAttrs>().fails);
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 2e-4};
  SINTER_SAMPLES("x[4, 2, 2] |", "x[5, 3, 3] |", "x[7, 6, 6] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

// X of A X = B for A's factors. Operands: L and D in the lower triangle, the pivots, B; all of one batch.
struct LdlSolve : Opaque {
  static constexpr auto name = "linalg_ldl_solve";
  static constexpr auto autocast = Autocast::kWide;
  static constexpr int inputs = 3;
  using Attributes = NoAttrs;
  static constexpr NotDifferentiable grad = kNoGradient;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call, 0);
    check_matrices(call, 2);
    auto &a = call.inputs[0], &pivots = call.inputs[1], &b = call.inputs[2];
    check(pivots.dtype == kInt32 && pivots.shape == batch_with(a.shape, {a.shape.back()}),
          "{}: expected i32 pivots {}, got {} {}", call.name(), batch_with(a.shape, {a.shape.back()}), pivots.dtype,
          pivots.shape);
    check(a.dtype == b.dtype &&
              batch_with(a.shape, {a.shape.back()}) == batch_with(b.shape, {b.shape[b.shape.size() - 2]}),
          "{}: factors {} do not fit right-hand sides {}", call.name(), a, b);
    return {Type{b.dtype, b.shape, b.device}};
  }
  template <class T, class I>
  static void compute(const MatrixSizes& s, const T* ld, const I* pivots, const T* b, T* x) {
    const int64_t n = s.rows;
    if (s.numel() == 0) return;
    std::copy_n(b, s.count * s.numel(), x);
    for (int64_t at = 0; at < s.count; ++at) check_pivots(pivots + at * n, n);
    for_each_matrix(s.count, n * s.numel(),
                    [&](int64_t at) { solve_one(n, s.columns, ld + at * n * n, pivots + at * n, x + at * s.numel()); });
  }
  template <class I>
  static void check_pivots(const I* pivots, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      const int64_t pivot = pivots[k];
      check(pivot != 0 && pivot >= -n && pivot <= n, "{}: pivot {} is not a row of {}", name, pivot, n);
      if (pivot > 0) continue;
      check(k + 1 < n && pivots[k + 1] == pivot, "{}: a block of two has two equal pivots, not {} alone", name, pivot);
      ++k;
    }
  }
  // Row-major, in place of the right-hand sides.
  template <class T, class I>
  static void solve_one(int64_t n, int64_t columns, const T* a, const I* pivots, T* x) {
    auto subtract = [&](int64_t row, T factor, int64_t other) {
      for (int64_t c = 0; c < columns; ++c) x[row * columns + c] -= factor * x[other * columns + c];
    };
    auto swap_with = [&](int64_t row, int64_t other) {
      if (row != other) std::swap_ranges(x + row * columns, x + (row + 1) * columns, x + other * columns);
    };
    std::vector<int64_t> blocks;  // where each begins
    for (int64_t k = 0; k<n; k += pivots[k]> 0 ? 1 : 2) {
      blocks.push_back(k);
      const int64_t last = pivots[k] > 0 ? k : k + 1;
      swap_with(last, std::abs(int64_t(pivots[k])) - 1);
      for (int64_t i = last + 1; i < n; ++i)
        for (int64_t j = k; j <= last; ++j) subtract(i, a[i * n + j], j);
      T* row = x + k * columns;
      if (last == k) {
        for (int64_t c = 0; c < columns; ++c) row[c] /= a[k * n + k];
        continue;
      }
      // By Cramer's rule, all of it over the element off the diagonal, which is the largest.
      const T off = a[last * n + k], first = a[k * n + k] / off, second = a[last * n + last] / off;
      const T determinant = first * second - 1;
      for (int64_t c = 0; c < columns; ++c) {
        const T upper = row[c] / off, lower = row[columns + c] / off;
        row[c] = (second * upper - lower) / determinant;
        row[columns + c] = (first * lower - upper) / determinant;
      }
    }
    for (size_t block = blocks.size(); block-- > 0;) {
      const int64_t k = blocks[block], last = pivots[k] > 0 ? k : k + 1;
      for (int64_t i = last + 1; i < n; ++i)
        for (int64_t j = k; j <= last; ++j) subtract(j, a[i * n + j], i);
      swap_with(last, std::abs(int64_t(pivots[k])) - 1);
    }
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs&) {
    Tensor ld = inputs[0].contiguous(), pivots = inputs[1].contiguous(), b = inputs[2].contiguous();
    Tensor x = empty(b.sizes(), b.dtype());
    visit_real(b.dtype(), [&]<class T>(T) {
      compute(MatrixSizes(b.impl().sizes), ld.data_ptr<T>(), pivots.data_ptr<int32_t>(), b.data_ptr<T>(),
              x.data_ptr<T>());
    });
    return {x};
  }
  static void interpret(InterpretCall& c) {
    compute(MatrixSizes(c.inputs[2]->sizes), c.inputs[0]->f.data(), c.inputs[1]->i.data(), c.inputs[2]->f.data(),
            c.outputs[0].f.data());
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  // Pivots are counted from 1: those that a program adds 1 to.
  SINTER_SAMPLES("x[0, 0], i32[0]<3, x[0, 2] |", "x[2, 0, 0], i32[2, 0]<3, x[2, 0, 2] |",
                 "x[0, 2, 2], i32[0, 2]<3, x[0, 2, 1] |")
};

}  // namespace

namespace factor {

Lu ldl(const Tensor& a, const std::string& fails) {
  auto out = call_many<LdlFactor>({a}, FactorAttrs{fails});
  return {out[0], out[1], out[2]};
}
Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b) { return call<LdlSolve>({ld, pivots, b}); }

}  // namespace factor

OpFamily ldl_ops() {
  static const Op* const ops[] = {&op_of<LdlFactor>, &op_of<LdlSolve>};
  return ops;
}

}  // namespace sinter
