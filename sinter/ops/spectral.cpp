// Eigenvalues, singular values and the exponential of matrices. Vectors are defined but for their sign, which is fixed here, so
// that every implementation gives the same: the first large element of an eigenvector or column of U is positive.
#include <cmath>

#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dense.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

using factor::transposed;

// Whether the vector is to be turned: its first element of more than 0.6 of the largest magnitude is negative.
template <class T>
bool points_back(const T* vector, int64_t size) {
  T largest = 0;
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(vector[i]));
  for (int64_t i = 0; i < size; ++i)
    if (std::abs(vector[i]) > T(0.6) * largest) return vector[i] < 0;
  return false;
}

// Differences of all pairs, row j less row i, with ones on the diagonal: what gradients of vectors are divided by.
Tensor gaps(const Tensor& values) {
  Tensor on = eye(values.size(-1), TensorOptions(kBool).device(values.device()));
  return where(on, 1, values.unsqueeze(-2) - values.unsqueeze(-1));
}

struct Eigh : Opaque {
  static constexpr auto name = "linalg_eigh";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = VectorAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    std::vector<Type> out{Type{a.dtype, batch_with(a.shape, {a.shape.back()}), a.device}};
    if (call.as<VectorAttrs>().vectors) out.push_back(Type{a.dtype, a.shape, a.device});
    return out;
  }
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* values, T* vectors) {
    const int64_t n = s.rows;
    if (n == 0) return;
    std::vector<int64_t> failed(size_t(s.count), 0);
    for_each_matrix(s.count, 10 * n * n * n, [&](int64_t at) {
      auto matrix = by_columns(n, n, a + at * n * n);
      // What is not finite spreads to all, as it does in PyTorch; the search would never end.
      if (!std::all_of(matrix.begin(), matrix.end(), [](T v) { return std::isfinite(v); })) {
        std::fill_n(values + at * n, n, T(NAN));
        if (vectors) std::fill_n(vectors + at * n * n, n * n, T(NAN));
        return;
      }
      failed[size_t(at)] = dense.eigh(n, matrix.data(), values + at * n, vectors != nullptr);
      if (!vectors) return;
      for (int64_t j = 0; j < n; ++j) {
        T* vector = matrix.data() + j * n;
        if (points_back(vector, n))
          for (int64_t i = 0; i < n; ++i) vector[i] = -vector[i];
      }
      store_columns(n, n, matrix.data(), vectors + at * n * n);
    });
    factor::check_eigh(failed);
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous(), values = empty(batch_with(a.sizes(), {a.size(-1)}), a.dtype()), vectors;
    if (attrs.as<VectorAttrs>().vectors) vectors = empty(a.sizes(), a.dtype());
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(a.impl().sizes), a.data_ptr<T>(), values.data_ptr<T>(),
              vectors.defined() ? vectors.data_ptr<T>() : nullptr);
    });
    return vectors.defined() ? TensorList{values, vectors} : TensorList{values};
  }
  static void interpret(InterpretCall& c) {
    compute(textbook<double>(), MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(),
            c.outputs.size() > 1 ? c.outputs[1].f.data() : nullptr);
  }
  // V [skew(Vᵀ gV) / gaps + diag(gλ)] Vᵀ: vectors that stay orthonormal move by skew matrices only.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      bool known = c.as<VectorAttrs>().vectors;
      Tensor v = known ? c.out(1) : std::get<1>(factor::eigh(c[0].tensor()));
      if (!known || !c.grad(1).defined()) return matmul(v * c.grad(0).unsqueeze(-2), transposed(v));
      Tensor inner = matmul(transposed(v), c.grad(1));
      inner = (inner - transposed(inner)) / 2;
      Tensor on = eye(v.size(-1), TensorOptions(kBool).device(v.device()));
      Tensor diagonal = c.grad(0).defined() ? c.grad(0).unsqueeze(-1) : zeros({}, v.options());
      inner = where(on, diagonal, inner / gaps(c.out(0)));
      return matmul(v, matmul(inner, transposed(v)));
    });
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  SINTER_SAMPLES("x[3, 3] |", "x[4, 2, 2] |", "x[3, 3] | vectors=false", "x[7, 6, 6] |", "x[1, 1] |", "x[0, 0] |",
                 "x[0, 2, 2] | vectors=false")
};

struct Svd : Opaque {
  static constexpr auto name = "_linalg_svd";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = VectorAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_matrices(call);
    auto& a = call.inputs[0];
    Dim m = a.shape[a.shape.size() - 2], n = a.shape.back(), k = min(m, n);
    Type values{a.dtype, batch_with(a.shape, {k}), a.device};
    if (!call.as<VectorAttrs>().vectors) return {values};
    return {Type{a.dtype, batch_with(a.shape, {m, k}), a.device}, values,
            Type{a.dtype, batch_with(a.shape, {k, n}), a.device}};
  }
  template <class T>
  static void compute(const Dense<T>& dense, const MatrixSizes& s, const T* a, T* u, T* values, T* vt) {
    const int64_t m = s.rows, n = s.columns, k = std::min(m, n);
    if (k == 0) return;
    std::vector<int64_t> failures(size_t(s.count), 0);
    for_each_matrix(s.count, 20 * m * n * k, [&](int64_t at) {
      auto matrix = by_columns(m, n, a + at * m * n);
      std::vector<T> left(size_t(u ? m * k : 0)), right(size_t(u ? k * n : 0));
      int failed =
          dense.svd(m, n, matrix.data(), u ? left.data() : nullptr, values + at * k, u ? right.data() : nullptr);
      bool finite = std::all_of(values + at * k, values + at * k + k, [](T v) { return std::isfinite(v); });
      failures[size_t(at)] = failed || !finite;
      if (!u) return;
      for (int64_t j = 0; j < k; ++j) {
        if (!points_back(left.data() + j * m, m)) continue;
        for (int64_t i = 0; i < m; ++i) left[size_t(j * m + i)] *= -1;
        for (int64_t i = 0; i < n; ++i) right[size_t(i * k + j)] *= -1;
      }
      store_columns(m, k, left.data(), u + at * m * k);
      store_columns(k, n, right.data(), vt + at * k * n);
    });
    factor::check_svd(failures);
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    Tensor a = inputs[0].contiguous(), u, vt;
    Dim m = a.size(-2), n = a.size(-1), k = min(m, n);
    Tensor values = empty(batch_with(a.sizes(), {k}), a.dtype());
    bool vectors = attrs.as<VectorAttrs>().vectors;
    if (vectors) {
      u = empty(batch_with(a.sizes(), {m, k}), a.dtype());
      vt = empty(batch_with(a.sizes(), {k, n}), a.dtype());
    }
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(dense<T>(), MatrixSizes(a.impl().sizes), a.data_ptr<T>(), vectors ? u.data_ptr<T>() : nullptr,
              values.data_ptr<T>(), vectors ? vt.data_ptr<T>() : nullptr);
    });
    return vectors ? TensorList{u, values, vt} : TensorList{values};
  }
  static void interpret(InterpretCall& c) {
    MatrixSizes s(c.inputs[0]->sizes);
    const double* a = c.inputs[0]->f.data();
    auto& out = c.outputs;
    if (out.size() == 1)
      compute<double>(textbook<double>(), s, a, nullptr, out[0].f.data(), nullptr);
    else
      compute(textbook<double>(), s, a, out[0].f.data(), out[1].f.data(), out[2].f.data());
  }

  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      if (!c.as<VectorAttrs>().vectors) {
        auto [u, s, vt] = factor::svd(c[0].tensor());
        return matmul(u * c.grad(0).unsqueeze(-2), vt);
      }
      return of_vectors(c.out(0), c.out(1), c.out(2), c.grad(0), c.grad(1), c.grad(2));
    });
  }
  // U [(skew(Uᵀ gU) S + S skew(Vᵀ gV)) / gaps(S²) + diag(gS)] Vᵀ, and of the longer side what lies outside its vectors.
  static Tensor of_vectors(const Tensor& u, const Tensor& s, const Tensor& vt, const Tensor& gu, const Tensor& gs,
                           const Tensor& gvt) {
    if (!gu.defined() && !gvt.defined()) return matmul(u * gs.unsqueeze(-2), vt);
    auto skew = [](const Tensor& x) { return x - transposed(x); };
    Tensor inner;
    if (gu.defined()) inner = skew(matmul(transposed(u), gu)) * s.unsqueeze(-2);
    if (gvt.defined()) {
      Tensor right = s.unsqueeze(-1) * skew(matmul(vt, transposed(gvt)));
      inner = inner.defined() ? inner + right : right;
    }
    inner = inner / gaps(s * s);
    if (gs.defined()) inner = inner + factor::diagonal_matrix(gs);
    Tensor out = matmul(u, matmul(inner, vt));
    Dim m = u.size(-2), n = vt.size(-1), k = s.size(-1);
    if (k < m && gu.defined()) {
      Tensor scaled = gu / s.unsqueeze(-2);
      out = out + matmul(scaled - matmul(u, matmul(transposed(u), scaled)), vt);
    }
    if (k < n && gvt.defined()) {
      Tensor scaled = gvt / s.unsqueeze(-1);
      out = out + matmul(u, scaled - matmul(matmul(scaled, transposed(vt)), vt));
    }
    return out;
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-3};
  // As for qr: a matrix of repeated rows has singular vectors of zero, which are open.
  SINTER_SAMPLES("x[4, 2, 2] |", "x[4, 3, 2] |", "x[4, 2, 3] |", "x[4, 3, 3] | vectors=false", "x[7, 6, 5] |",
                 "x[6, 1] |", "x[1, 6] |", "x[0, 3] |", "x[3, 0] |", "x[0, 2, 2] |")
};

// --- the exponential

using Matrix = std::vector<double>;

Matrix scaled_sum(const Matrix& a, double by_a, const Matrix& b, double by_b) {
  Matrix out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = by_a * a[i] + by_b * b[i];
  return out;
}

// The largest sum of magnitudes of a column.
double norm_of(const Matrix& a, int64_t n) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(a[size_t(j * n + i)]);
    if (!(sum <= largest)) largest = sum;
  }
  return largest;
}

// Padé's approximation of degree 13 of the matrix halved until it is small, squared as often.
Matrix pade_exponential(const Dense<double>& dense, Matrix a, int64_t n) {
  static constexpr double kB[] = {64764752532480000.,
                                  32382376266240000.,
                                  7771770303897600.,
                                  1187353796428800.,
                                  129060195264000.,
                                  10559470521600.,
                                  670442572800.,
                                  33522128640.,
                                  1323241920.,
                                  40840800.,
                                  960960.,
                                  16380.,
                                  182.,
                                  1.};
  double norm = norm_of(a, n);
  if (!std::isfinite(norm)) return Matrix(a.size(), NAN);
  int halvings = norm > 5.37 ? int(std::ceil(std::log2(norm / 5.37))) : 0;
  for (double& v : a) v = std::ldexp(v, -halvings);
  auto times = [&](const Matrix& x, const Matrix& y) {
    Matrix out(x.size());
    dense.multiply(n, x.data(), y.data(), out.data());
    return out;
  };
  Matrix a2 = times(a, a), a4 = times(a2, a2), a6 = times(a2, a4), one(a.size(), 0.0);
  for (int64_t i = 0; i < n; ++i) one[size_t(i * n + i)] = 1;
  // b[first + 6] a6 + b[first + 4] a4 + b[first + 2] a2 (+ b[first] 1).
  auto part = [&](int first, bool with_one) {
    Matrix out = scaled_sum(a6, kB[first + 6], a4, kB[first + 4]);
    out = scaled_sum(out, 1, a2, kB[first + 2]);
    return with_one ? scaled_sum(out, 1, one, kB[first]) : out;
  };
  Matrix odd = times(a, scaled_sum(times(a6, part(7, false)), 1, part(1, true), 1));
  Matrix even = scaled_sum(times(a6, part(6, false)), 1, part(0, true), 1);
  Matrix divisor = scaled_sum(even, 1, odd, -1), out = scaled_sum(even, 1, odd, 1);
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  dense.lu(n, n, divisor.data(), pivots.data());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) std::swap(out[size_t(j * n + i)], out[size_t(j * n + pivots[size_t(i)] - 1)]);
  dense.solve_triangular(n, n, divisor.data(), out.data(), false, true);
  dense.solve_triangular(n, n, divisor.data(), out.data(), true, false);
  for (int i = 0; i < halvings; ++i) out = times(out, out);
  return out;
}

// The series itself, of a matrix halved until few terms are enough.
Matrix series_exponential(Matrix a, int64_t n) {
  double norm = norm_of(a, n);
  if (!std::isfinite(norm)) return Matrix(a.size(), NAN);
  int halvings = norm > 0x1p-4 ? int(std::ceil(std::log2(norm))) + 4 : 0;
  for (double& v : a) v = std::ldexp(v, -halvings);
  Matrix out(a.size(), 0.0), term(a.size(), 0.0), next(a.size());
  for (int64_t i = 0; i < n; ++i) out[size_t(i * n + i)] = term[size_t(i * n + i)] = 1;
  for (int k = 1; k < 20; ++k) {
    textbook<double>().multiply(n, term.data(), a.data(), next.data());
    for (size_t i = 0; i < next.size(); ++i) term[i] = next[i] / k;
    out = scaled_sum(out, 1, term, 1);
  }
  for (int i = 0; i < halvings; ++i) {
    textbook<double>().multiply(n, out.data(), out.data(), next.data());
    out = next;
  }
  return out;
}

struct MatrixExp : Opaque {
  static constexpr auto name = "linalg_matrix_exp";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_square(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, a.shape, a.device}};
  }
  template <class T, class F>
  static void compute(const MatrixSizes& s, const T* a, T* out, F&& exponential) {
    const int64_t n = s.rows;
    if (n == 0) return;
    for_each_matrix(s.count, 30 * n * n * n, [&](int64_t at) {
      Matrix matrix(size_t(n * n));
      transpose(n, n, a + at * n * n, matrix.data());
      matrix = exponential(std::move(matrix), n);
      transpose(n, n, matrix.data(), out + at * n * n);
    });
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs&) {
    Tensor a = inputs[0].contiguous(), out = empty(a.sizes(), a.dtype());
    visit_real(a.dtype(), [&]<class T>(T) {
      compute(MatrixSizes(a.impl().sizes), a.data_ptr<T>(), out.data_ptr<T>(),
              [](Matrix m, int64_t n) { return pade_exponential(dense<double>(), std::move(m), n); });
    });
    return {out};
  }
  static void interpret(InterpretCall& c) {
    compute(MatrixSizes(c.inputs[0]->sizes), c.inputs[0]->f.data(), c.outputs[0].f.data(), series_exponential);
  }
  // Of exp([[Aᵀ, g], [0, Aᵀ]]) the block above the diagonal.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Tensor a = transposed(c[0].tensor());
      Dim n = a.size(-1);
      Tensor above = cat({a, c.grad()}, -1), below = cat({zeros_like(a), a}, -1);
      return factor::matrix_exp(cat({above, below}, -2)).narrow(-2, 0, n).narrow(-1, n, n);
    });
  }
  static constexpr Domain domain_of_inputs{-1.5, 1.5};
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 1e-4};
  SINTER_SAMPLES("x[3, 3] |", "x[2, 2, 2] |", "x[2, 5, 5] |", "x[1, 1] |", "x[0, 0] |", "x[0, 2, 2] |")
};

}  // namespace

namespace factor {

std::tuple<Tensor, Tensor> eigh(const Tensor& a) {
  auto out = call_many<Eigh>({a}, VectorAttrs{true});
  return {out[0], out[1]};
}
Tensor eigvalsh(const Tensor& a) { return call<Eigh>({a}, VectorAttrs{false}); }
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a) {
  auto out = call_many<Svd>({a}, VectorAttrs{true});
  return {out[0], out[1], out[2]};
}
Tensor svdvals(const Tensor& a) { return call<Svd>({a}, VectorAttrs{false}); }
Tensor matrix_exp(const Tensor& a) { return call<MatrixExp>({a}); }

}  // namespace factor

OpFamily spectral_ops() {
  static const Op* const ops[] = {&op_of<Eigh>, &op_of<Svd>, &op_of<MatrixExp>};
  return ops;
}

}  // namespace sinter
