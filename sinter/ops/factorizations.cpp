#include "sinter/ops/factorizations.h"

#include <algorithm>
#include <numeric>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dense.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace factor {

Tensor diagonal_matrix(const Tensor& diagonal) {
  Tensor on = eye(diagonal.size(-1), TensorOptions(kBool).device(diagonal.device()));
  return where(on, diagonal.unsqueeze(-1), 0);
}
Tensor identity_like(const Tensor& a) { return eye(a.size(-1), a.options()); }

// The first matrix whose number is not zero; none: -1.
static int64_t first_failed(const std::vector<int64_t>& info) {
  auto at = std::find_if(info.begin(), info.end(), [](int64_t i) { return i != 0; });
  return at == info.end() ? -1 : at - info.begin();
}

void check_lu(const std::string& fails, const std::vector<int64_t>& info) {
  const int64_t at = fails.empty() ? -1 : first_failed(info);
  if (at < 0) return;
  throw_error(format("{}: {}the matrix is singular: element {} of the diagonal of U is zero", fails,
                     batch_element(int64_t(info.size()), at), info[size_t(at)]));
}
void check_cholesky(const std::string& fails, const std::vector<int64_t>& info) {
  const int64_t at = fails.empty() ? -1 : first_failed(info);
  if (at < 0) return;
  throw_error(format("{}: {}the matrix is not positive-definite: its leading minor of order {} is not positive", fails,
                     batch_element(int64_t(info.size()), at), info[size_t(at)]));
}
void check_ldl(const std::string& fails, const std::vector<int64_t>& info) {
  const int64_t at = fails.empty() ? -1 : first_failed(info);
  if (at < 0) return;
  throw_error(format("{}: {}the matrix is singular: element {} of the diagonal of D is zero", fails,
                     batch_element(int64_t(info.size()), at), info[size_t(at)]));
}
void check_eigh(const std::vector<int64_t>& info) {
  const int64_t at = first_failed(info);
  if (at >= 0)
    throw_error(format("linalg.eigh: {}the algorithm did not converge: the matrix has too many equal eigenvalues",
                       batch_element(int64_t(info.size()), at)));
}
void check_eig(const std::vector<int64_t>& info) {
  const int64_t at = first_failed(info);
  if (at < 0) return;
  throw_error(
      format("linalg.eig: {}{}", batch_element(int64_t(info.size()), at),
             info[size_t(at)] < 0 ? "the matrix has elements that are not finite" : "the algorithm did not converge"));
}
void check_svd(const std::vector<int64_t>& info) {
  const int64_t at = first_failed(info);
  if (at >= 0)
    throw_error(format("linalg.svd: {}the algorithm did not converge: the matrix has elements that are not finite, or "
                       "too many equal singular values",
                       batch_element(int64_t(info.size()), at)));
}

}  // namespace factor

namespace {

using factor::transposed;

Dim smaller(const Shape& matrices) { return min(matrices[matrices.size() - 2], matrices.back()); }

// The elements of a matrix's diagonal halved.
Tensor with_half_diagonal(const Tensor& x) { return x - 0.5 * factor::diagonal_matrix(x.diagonal(0, -2, -1)); }

// B A⁻¹ of a triangle of A.
Tensor solve_right(const Tensor& a, const Tensor& b, bool upper, bool unit = false) {
  return transposed(factor::solve_triangular(transposed(a), transposed(b), !upper, unit));
}

// --- lu

struct LuFactor : Opaque {
  static constexpr auto name = "linalg_lu_factor_ex";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = FactorAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_matrices(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}, Type{kInt32, batch_with(a.shape, {smaller(a.shape)}), a.device},
            Type{kInt32, batch_with(a.shape, {}), a.device}};
  }

  template <class T, class I>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* lu, I* pivots, I* info,
                      const std::string& fails) {
    int64_t k = std::min(s.rows, s.columns);
    for_each_matrix(s.count, s.numel() * k, [&](int64_t at) {
      auto matrix = by_columns(s.rows, s.columns, a + at * s.numel());
      std::vector<int32_t> swaps(size_t(k), 0);
      info[at] = k ? dense.lu(s.rows, s.columns, matrix.data(), swaps.data()) : 0;
      store_columns(s.rows, s.columns, matrix.data(), lu + at * s.numel());
      std::copy(swaps.begin(), swaps.end(), pivots + at * k);
    });
    factor::check_lu(fails, {info, info + s.count});
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous();
    MatrixSizes s(a.impl().sizes);
    Tensor lu = empty(a.sizes(), a.dtype()), pivots = empty(batch_with(a.sizes(), {smaller(a.sizes())}), kInt32),
           info = empty(batch_with(a.sizes(), {}), kInt32);
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), s, a.data_ptr<T>(), lu.data_ptr<T>(), pivots.data_ptr<int32_t>(), info.data_ptr<int32_t>(),
              attrs.as<FactorAttrs>().fails);
    });
    return {lu, pivots, info};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(),
            c.outputs[1].i.data(), c.outputs[2].i.data(), c.call.as<FactorAttrs>().fails);
  }

  static TensorList grad(const GradCall& c) {
    return c.each([&] { return factor::lu_gradient(c.out(0), c.out(1), c.grad(0)); });
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 2e-4};
  SINTER_SAMPLES("x[3, 3] |", "x[4, 2, 2] |", "x[4, 2] |", "x[6, 2, 3] |", "x[7, 6, 5] |", "x[1, 1] |", "x[0, 0] |",
                 "x[2, 0, 3] |", "x[0, 2, 2] |")
};

struct RowsAttrs {
  Dim rows = 0;
  SINTER_FIELDS(rows)
};

struct PivotsToPermutation : Opaque {
  static constexpr auto name = "lu_permutation";
  using Attributes = RowsAttrs;
  static constexpr NotDifferentiable grad{"its result are positions"};
  static std::vector<Type> infer(const OpCall& call) {
    auto& p = call.inputs[0];
    check(!is_floating(p.dtype) && p.dtype != kBool && p.rank() >= 1, "{}: pivots are integers, got {}", call.name(),
          p);
    return {Type{kInt64, batch_with(p.shape, {call.as<RowsAttrs>().rows}, 1), p.device}};
  }
  template <class I>
  static void compute(int64_t count, int64_t swaps, int64_t rows, const I* pivots, int64_t* out) {
    for (int64_t at = 0; at < count; ++at, pivots += swaps, out += rows) {
      std::iota(out, out + rows, int64_t(0));
      for (int64_t i = 0; i < swaps; ++i) {
        check(pivots[i] >= 1 && pivots[i] <= rows && i < rows, "lu_solve: pivot {} is not a row of {}", pivots[i],
              rows);
        std::swap(out[i], out[pivots[i] - 1]);
      }
    }
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor p = inputs[0].to(kInt64).contiguous();
    const Dim& rows = attrs.as<RowsAttrs>().rows;
    Tensor out = empty(batch_with(p.sizes(), {rows}, 1), kInt64);
    int64_t swaps = p.impl().sizes.back();
    compute(out.impl().numel / std::max<int64_t>(rows, 1), swaps, rows, p.data_ptr<int64_t>(), out.data_ptr<int64_t>());
    return {out};
  }
  static void interpret(InterpretCall& c) {
    int64_t rows = c.outputs[0].sizes.back();
    compute(c.outputs[0].numel() / std::max<int64_t>(rows, 1), c.inputs[0]->sizes.back(), rows, c.inputs[0]->i.data(),
            c.outputs[0].i.data());
  }
  // Pivots are counted from 1: those that a program adds 1 to.
  SINTER_SAMPLES("i32[0]<3 | rows=4", "i32[3, 0]<3 | rows=2", "i64[0, 2]<3 | rows=2")
};

// --- cholesky

struct Cholesky : Opaque {
  static constexpr auto name = "linalg_cholesky_ex";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = FactorAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}, Type{kInt32, batch_with(a.shape, {}), a.device}};
  }
  template <class T, class I>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* lower, I* info,
                      const std::string& fails) {
    const int64_t n = s.rows;
    for_each_matrix(s.count, n * n * n / 3, [&](int64_t at) {
      auto matrix = by_columns(n, n, a + at * n * n);
      const int order = n ? dense.cholesky(n, matrix.data()) : 0;
      info[at] = order;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          lower[at * n * n + i * n + j] = order ? T(NAN) : j <= i ? matrix[size_t(j * n + i)] : T(0);
    });
    factor::check_cholesky(fails, {info, info + s.count});
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous();
    Tensor lower = empty(a.sizes(), a.dtype()), info = empty(batch_with(a.sizes(), {}), kInt32);
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(a.impl().sizes), a.data_ptr<T>(), lower.data_ptr<T>(), info.data_ptr<int32_t>(),
              attrs.as<FactorAttrs>().fails);
    });
    return {lower, info};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(),
            c.outputs[1].i.data(), c.call.as<FactorAttrs>().fails);
  }
  // L⁻ᵀ Φ(Lᵀ gL) L⁻¹ made symmetric, Φ being the lower triangle with half the diagonal.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      const Tensor& lower = c.out();
      Tensor middle = with_half_diagonal(matmul(transposed(lower), c.grad()).tril());
      Tensor g = solve_right(lower, factor::solve_triangular(transposed(lower), middle, true), false);
      return 0.5 * (g + transposed(g));
    });
  }
  static constexpr Domain domain_of_inputs{0.4, 3};
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 2e-4};
  SINTER_SAMPLES("x[3, 1, 1] |", "x[2, 2] |", "x[70, 2, 2] |", "x[16, 4, 4] |", "x[0, 0] |", "x[0, 2, 2] |")
};

// --- triangular systems

struct SolveTriangular : Opaque {
  static constexpr auto name = "linalg_solve_triangular";
  static constexpr auto autocast = Autocast::kWide;
  static constexpr int inputs = 2;
  using Attributes = TriangularAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_system(call);
    auto& b = call.inputs[1];
    return {Type{b.dtype, b.shape, b.device}};
  }
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, const T* b, T* x,
                      const TriangularAttrs& attrs) {
    const int64_t n = s.rows;
    if (s.numel() == 0) return;
    for_each_matrix(s.count, n * s.numel(), [&](int64_t at) {
      auto matrix = by_columns(n, n, a + at * n * n), right = by_columns(n, s.columns, b + at * s.numel());
      dense.solve_triangular(n, s.columns, matrix.data(), right.data(), attrs.upper, attrs.unitriangular);
      store_columns(n, s.columns, right.data(), x + at * s.numel());
    });
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous(), b = inputs[1].contiguous(), x = empty(b.sizes(), b.dtype());
    visit_real(b.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(b.impl().sizes), a.data_ptr<T>(), b.data_ptr<T>(), x.data_ptr<T>(),
              attrs.as<TriangularAttrs>());
    });
    return {x};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[1]->sizes), c.inputs[0]->f.data(), c.inputs[1]->f.data(),
            c.outputs[0].f.data(), c.call.as<TriangularAttrs>());
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<TriangularAttrs>();
    Tensor right = factor::solve_triangular(transposed(c[0].tensor()), c.grad(), !a.upper, a.unitriangular);
    const int64_t off = a.unitriangular ? 1 : 0;
    return c.each(
        [&] {
          Tensor g = matmul(right, transposed(c.out())).neg();
          return a.upper ? g.triu(off) : g.tril(-off);
        },
        [&] { return right; });
  }
  static constexpr Domain domain_of_inputs{0.5, 2};
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  SINTER_SAMPLES("x[3, 3], x[3, 2] |", "x[3, 3], x[3, 2] | upper=true", "x[2, 2, 2], x[2, 2, 3] | unitriangular=true",
                 "x[2, 4, 4], x[2, 4, 1] | upper=true, unitriangular=true", "x[5, 5], x[5, 9] | upper=true",
                 "x[0, 0], x[0, 2] |", "x[2, 2], x[2, 0] |", "x[0, 2, 2], x[0, 2, 1] |")
};

// --- qr

struct Qr : Opaque {
  static constexpr auto name = "linalg_qr";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = QrAttrs;
  static Dim inner(const Shape& s, const QrAttrs& a) { return a.complete ? s[s.size() - 2] : smaller(s); }
  static std::vector<Type> infer(const OpCall& call) {
    check_matrices(call);
    auto& x = call.inputs[0];
    auto& a = call.as<QrAttrs>();
    Dim k = inner(x.shape, a);
    std::vector<Type> out;
    if (!a.only_r) out.push_back(Type{x.dtype, batch_with(x.shape, {x.shape[x.shape.size() - 2], k}), x.device});
    out.push_back(Type{x.dtype, batch_with(x.shape, {k, x.shape.back()}), x.device});
    return out;
  }
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, int64_t k, const T* a, T* q, T* r) {
    for_each_matrix(s.count, s.numel() * k, [&](int64_t at) {
      auto matrix = by_columns(s.rows, s.columns, a + at * s.numel());
      const int64_t count = std::min(s.rows, s.columns);
      std::vector<T> first(size_t(q ? s.rows * k : 0)), tau(static_cast<size_t>(count));
      // Without columns nothing is reflected.
      if (count == 0)
        for (int64_t i = 0; q && i < k; ++i) first[size_t(i * s.rows + i)] = 1;
      else
        dense.qr(s.rows, s.columns, matrix.data(), tau.data());
      if (q && count > 0) {
        std::copy_n(matrix.data(), s.rows * std::min(count, k), first.data());
        dense.reflections(s.rows, k, count, first.data(), tau.data());
      }
      if (q) store_columns(s.rows, k, first.data(), q + at * s.rows * k);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < s.columns; ++j)
          r[(at * k + i) * s.columns + j] = i <= j ? matrix[size_t(j * s.rows + i)] : T(0);
    });
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& a = attrs.as<QrAttrs>();
    Tensor x = inputs[0].contiguous(), q;
    int64_t k = inner(x.sizes(), a);
    if (!a.only_r) q = empty(batch_with(x.sizes(), {x.size(-2), k}), x.dtype());
    Tensor r = empty(batch_with(x.sizes(), {k, x.size(-1)}), x.dtype());
    visit_real(x.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(x.impl().sizes), k, x.data_ptr<T>(), q.defined() ? q.data_ptr<T>() : nullptr,
              r.data_ptr<T>());
    });
    return a.only_r ? TensorList{r} : TensorList{q, r};
  }
  static void interpret(InterpretCall& c) {
    MatrixSizes s(c.inputs[0]->sizes);
    bool only_r = c.call.as<QrAttrs>().only_r;
    compute(textbook<double>(), s, c.outputs.back().sizes[c.outputs.back().sizes.size() - 2], c.inputs[0]->f.data(),
            only_r ? nullptr : c.outputs[0].f.data(), c.outputs.back().f.data());
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      auto& a = c.as<QrAttrs>();
      // The gradient of R needs Q too.
      auto [q, r] = a.only_r ? factor::qr(c[0].tensor(), factor::QrMode::kReduced) : std::tuple(c.out(0), c.out(1));
      const Tensor from_q = a.only_r ? Tensor() : c.grad(0), from_r = a.only_r ? c.grad(0) : c.grad(1);
      Dim m = q.size(-2), n = r.size(-1);
      check(!a.complete || m <= n,
            "qr: mode 'complete' has no gradient for matrices with more rows than columns (shape {})", c[0].sizes());
      Tensor gq = from_q.defined() ? from_q : zeros_like(q), gr = from_r.defined() ? from_r : zeros_like(r);
      if (m >= n) return of_tall(q, r, gq, gr);
      // The columns behind the square part are Q R₂ = A₂: their R also is Qᵀ A₂.
      Tensor first = r.narrow(-1, 0, m), rest = r.narrow(-1, m, n - m), g_rest = gr.narrow(-1, m, n - m);
      gq = gq + matmul(q, matmul(rest, transposed(g_rest)));
      return cat({of_tall(q, first, gq, gr.narrow(-1, 0, m)), matmul(q, g_rest)}, -1);
    });
  }
  // [gQ + Q sym(triu(gR Rᵀ - Qᵀ gQ))] R⁻ᵀ.
  static Tensor of_tall(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
    Tensor upper = (matmul(gr, transposed(r)) - matmul(transposed(q), gq)).triu();
    Tensor symmetric = with_half_diagonal(upper + transposed(upper));
    return solve_right(transposed(r), gq + matmul(q, symmetric), false);
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 5e-4};
  // The batch is the longest dimension, or the matrices have rank 1: repeated rows leave the rest of Q open.
  SINTER_SAMPLES("x[4, 2, 2] |", "x[4, 3, 2] |", "x[4, 2, 3] |", "x[4, 2, 3] | complete=true",
                 "x[7, 6, 5] | complete=true", "x[6, 1] |", "x[1, 6] |", "x[8, 3, 4] | only_r=true",
                 "x[3, 0] | complete=true", "x[0, 3] |", "x[0, 2, 2] |")
};

// The reflections themselves, as LAPACK leaves them.
struct Geqrf : Opaque {
  static constexpr auto name = "geqrf";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static constexpr NotDifferentiable grad{"PyTorch gives it none; linalg.qr has a gradient"};
  static std::vector<Type> infer(const OpCall& call) {
    check_matrices(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}, Type{a.dtype, batch_with(a.shape, {smaller(a.shape)}), a.device}};
  }
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* out, T* tau) {
    const int64_t k = std::min(s.rows, s.columns);
    if (k == 0) return;
    for_each_matrix(s.count, s.numel() * k, [&](int64_t at) {
      auto matrix = by_columns(s.rows, s.columns, a + at * s.numel());
      dense.qr(s.rows, s.columns, matrix.data(), tau + at * k);
      store_columns(s.rows, s.columns, matrix.data(), out + at * s.numel());
    });
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs&) {
    Tensor a = inputs[0].contiguous(), out = empty(a.sizes(), a.dtype()),
           tau = empty(batch_with(a.sizes(), {smaller(a.sizes())}), a.dtype());
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(a.impl().sizes), a.data_ptr<T>(), out.data_ptr<T>(), tau.data_ptr<T>());
    });
    return {out, tau};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(),
            c.outputs[1].f.data());
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 5e-4};
  SINTER_SAMPLES("x[4, 2, 2] |", "x[4, 3, 2] |", "x[4, 2, 3] |", "x[7, 6, 5] |", "x[6, 1] |", "x[1, 6] |", "x[3, 0] |",
                 "x[0, 2, 2] |")
};

}  // namespace

namespace factor {

Lu lu(const Tensor& a, const std::string& fails) {
  auto out = call_many<LuFactor>({a}, FactorAttrs{fails});
  return {out[0], out[1], out[2]};
}
// With A = P L U: of L⁻ᵀ [tril(Lᵀ gL, -1) + triu(gU Uᵀ)] U⁻ᵀ, what lies beside the square part passed on.
Tensor lu_gradient(const Tensor& lu, const Tensor& pivots, const Tensor& g) {
  Dim m = lu.size(-2), n = lu.size(-1), k = min(m, n);
  Tensor square = lu.narrow(-2, 0, k).narrow(-1, 0, k), flow = g.narrow(-2, 0, k).narrow(-1, 0, k);
  Tensor lower = square.tril(-1) + identity_like(square), upper = square.triu();
  Tensor below = matmul(transposed(lower), flow.tril(-1)), above = matmul(flow.triu(), transposed(upper)), rest;
  const bool wide = m < n, tall = n < m;
  if (wide) {
    rest = g.narrow(-1, k, n - k);
    below = below - matmul(rest, transposed(lu.narrow(-1, k, n - k)));
  } else if (tall) {
    rest = g.narrow(-2, k, m - k);
    above = above - matmul(transposed(lu.narrow(-2, k, m - k)), rest);
  }
  auto by_lower = [&](const Tensor& t) { return solve_triangular(transposed(lower), t, true, true); };
  Tensor out = by_lower(solve_right(transposed(upper), below.tril(-1) + above.triu(), false));
  if (wide) out = cat({out, by_lower(rest)}, -1);
  if (tall) out = cat({out, solve_right(transposed(upper), rest, false)}, -2);
  return permuted(out, pivots, false);
}
Tensor permutation(const Tensor& pivots, const Dim& rows) {
  return call<PivotsToPermutation>({pivots}, RowsAttrs{rows});
}
Tensor permuted(const Tensor& b, const Tensor& pivots, bool transposed) {
  Tensor places = permutation(pivots, b.size(-2)).unsqueeze(-1);
  // P puts row i of its operand where Pᵀ takes it from.
  if (transposed) return gather(b, -2, places.expand(b.sizes()));
  return scatter(zeros_like(b), -2, places.expand(b.sizes()), b);
}
std::tuple<Tensor, Tensor> cholesky(const Tensor& a, const std::string& fails) {
  auto out = call_many<Cholesky>({a}, FactorAttrs{fails});
  return {out[0], out[1]};
}
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unitriangular) {
  return call<SolveTriangular>({a, b}, TriangularAttrs{upper, unitriangular});
}
std::tuple<Tensor, Tensor> qr(const Tensor& a, QrMode mode) {
  auto out = call_many<Qr>({a}, QrAttrs{mode == QrMode::kComplete, mode == QrMode::kR});
  if (mode == QrMode::kR) return {Tensor(), out[0]};
  return {out[0], out[1]};
}

std::tuple<Tensor, Tensor> geqrf(const Tensor& a) {
  auto out = call_many<Geqrf>({a});
  return {out[0], out[1]};
}

}  // namespace factor

OpFamily factorization_ops() {
  static const auto all = [] {
    std::vector<const Op*> ops{&op_of<LuFactor>, &op_of<PivotsToPermutation>,
                               &op_of<Cholesky>, &op_of<SolveTriangular>,
                               &op_of<Qr>,       &op_of<Geqrf>};
    for (OpFamily family : {spectral_ops(), eig_ops(), ldl_ops(), matrix_root_ops()})
      ops.insert(ops.end(), family.begin(), family.end());
    return ops;
  }();
  return all;
}

}  // namespace sinter
