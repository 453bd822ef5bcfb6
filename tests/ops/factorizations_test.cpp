// Factorisations that PyTorch's values tell little of, because their vectors are open: what they multiply back to, what
// is fixed of them here, and that plain loops give what LAPACK gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "sinter/capture/compiler.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dense.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"
#include "tests/support/gradcheck.h"

namespace sinter {
namespace {

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }
Tensor symmetric(const Tensor& x) { return x + transposed(x); }

void expect_close(const Tensor& a, const Tensor& b, double tolerance = 1e-10) {
  EXPECT_TRUE(a.allclose(b, tolerance, tolerance)) << a << "\n" << b;
}
void expect_close_pairs(const Tensor& a, const Tensor& b, double tolerance = 1e-10) {
  expect_close(view_as_real(a), view_as_real(b), tolerance);
}

Tensor complex_matrices(const Shape& shape) { return complex(randn(shape, kFloat64), randn(shape, kFloat64)); }

// --- eigenvalues of any matrix

void expect_eigenvectors(const Tensor& a) {
  auto [values, vectors] = linalg::eig(a);
  const Tensor wide = is_complex(a.dtype()) ? a : complex(a, zeros_like(a));
  expect_close_pairs(matmul(wide, vectors), vectors * values.unsqueeze(-2), 1e-9);
  Tensor sizes = abs(vectors);
  expect_close((sizes * sizes).sum({-2}), ones_like(real(values)));
  // The first large element of each is real and positive.
  Tensor at = argmax((sizes > 0.6 * sizes.amax({-2}, true)).to(kInt64), -2, true);
  EXPECT_TRUE((gather(imag(vectors), -2, at) == 0).all().item<bool>());
  EXPECT_TRUE((gather(real(vectors), -2, at) > 0).all().item<bool>());
  expect_close(std::get<0>(sort(abs(linalg::eigvals(a)), -1)), std::get<0>(sort(abs(values), -1)));
}

TEST(Eig, VectorsAreEigenvectorsOfLengthOne) {
  manual_seed(1);
  for (auto& shape : {Shape{1, 1}, Shape{7, 7}, Shape{3, 4, 4}, Shape{2, 2, 5, 5}}) {
    expect_eigenvectors(randn(shape, kFloat64));
    expect_eigenvectors(complex_matrices(shape));
  }
  expect_eigenvectors(randn({90, 90}, kFloat64));
  // A rotation has no real eigenvalue, a triangle has those of its diagonal.
  expect_eigenvectors(tensor({0.0, -1.0, 1.0, 0.0}).to(kFloat64).view({2, 2}));
  Tensor triangle = linalg::eigvals(tensor({3.0, 1.0, 0.0, 2.0}).view({2, 2}));
  EXPECT_EQ(triangle.dtype(), kComplex64);
  EXPECT_EQ(imag(triangle).abs().sum().item<double>(), 0);
  EXPECT_EQ(std::get<1>(linalg::eig(zeros({2, 0, 0}))).sizes().numbers(), (IntList{2, 0, 0}));
  EXPECT_NE(error_of([] {
              linalg::eig(stack({eye(2), full({2, 2}, NAN)}));
            }).find("linalg.eig: (batch element 1) the matrix has"),
            std::string::npos);
  EXPECT_NE(error_of([] { linalg::eigvals(ones({2, 3})); }).find("must be square"), std::string::npos);
}

// The phases of vectors are fixed here, so every function of them has a gradient; those that do not depend on the phase
// have the one that PyTorch gives.
TEST(Eig, GradientsAreThoseOfTheVectorsThatAreGiven) {
  manual_seed(2);
  auto parts = [](const Tensor& a) -> TensorList {
    auto [values, vectors] = linalg::eig(a);
    return {view_as_real(values), view_as_real(vectors)};
  };
  TensorList real_matrix{randn({4, 4}, kFloat64)}, pairs{randn({3, 3, 2}, kFloat64)};
  EXPECT_TRUE(gradcheck([&](const TensorList& x) { return parts(x[0]); }, real_matrix));
  EXPECT_TRUE(gradcheck([&](const TensorList& x) { return parts(view_as_complex(x[0])); }, pairs));
}

TEST(Eig, CompiledFunctionsGiveTheSame) {
  auto f = [](const Tensor& a) {
    auto [values, vectors] = linalg::eig(a);
    return (abs(vectors) * real(values)).sum();
  };
  auto compiled = compile(f);
  manual_seed(3);
  for (int64_t n : {2, 5}) {
    Tensor a = randn({n, n}, kFloat64).requires_grad_(), b = a.detach().clone().requires_grad_();
    Tensor want = f(a), got = compiled(b);
    expect_close(got, want);
    want.backward();
    got.backward();
    expect_close(b.grad(), a.grad(), 1e-8);
  }
}

// The referee and machines without LAPACK use the plain loops.
TEST(Eig, PlainLoopsAgreeWithLapack) {
  const Dense<double>* library = lapack<double>();
  if (!library) GTEST_SKIP() << "no LAPACK here";
  manual_seed(4);
  for (int64_t n : {1, 2, 3, 8, 30}) {
    for (int64_t width : {1, 2}) {
      const auto a = randn({n, n, width}, kFloat64).to_vector<double>();
      auto values_by = [&](const Dense<double>& by) {
        auto matrix = a;
        std::vector<std::complex<double>> values(static_cast<size_t>(n));
        auto* out = reinterpret_cast<double*>(values.data());
        EXPECT_EQ((width == 2 ? by.eig_of_pairs : by.eig)(n, matrix.data(), out, nullptr), 0);
        std::sort(values.begin(), values.end(), [](auto x, auto y) {
          return std::abs(x.real() - y.real()) > 1e-9 ? x.real() < y.real() : x.imag() < y.imag();
        });
        return values;
      };
      const auto want = values_by(*library), got = values_by(textbook<double>());
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LT(std::abs(want[i] - got[i]), 1e-10) << n << " " << width << " " << i;
    }
  }
}

// --- symmetric matrices that are not positive

TEST(Ldl, SolvesSystemsOfIndefiniteMatrices) {
  manual_seed(5);
  // Zeros on the diagonal make blocks of two.
  Tensor hollow = symmetric(randn({9, 9}, kFloat64));
  hollow = hollow - hollow * eye(9, kFloat64);
  for (auto& a :
       {symmetric(randn({3, 6, 6}, kFloat64)), hollow, tensor({0.0, 1.0, 1.0, 0.0}).to(kFloat64).view({2, 2})}) {
    auto [ld, pivots, info] = linalg::ldl_factor_ex(a);
    EXPECT_EQ(info.abs().sum().item<int>(), 0);
    expect_close(ld.tril(), ld);
    Tensor b = randn(a.sizes(), kFloat64), x = linalg::ldl_solve(ld, pivots, b);
    expect_close(matmul(a, x), b, 1e-8);
    // Nothing above the diagonal is read.
    expect_close(std::get<0>(linalg::ldl_factor(a.tril())), ld);
  }
  EXPECT_LT(std::get<1>(linalg::ldl_factor(hollow)).amin().item<int>(), 0) << "no block of two was made";
  // One set of factors, several right-hand sides.
  auto [ld, pivots] = linalg::ldl_factor(hollow);
  Tensor b = randn({4, 9, 2}, kFloat64);
  expect_close(matmul(hollow, linalg::ldl_solve(ld, pivots, b)), b, 1e-8);
}

TEST(Ldl, SingularMatricesAreToldOf) {
  EXPECT_EQ(std::get<2>(linalg::ldl_factor_ex(zeros({2, 2}))).item<int>(), 1);
  EXPECT_NE(error_of([] {
              linalg::ldl_factor(stack({eye(2), zeros({2, 2})}));
            }).find("linalg.ldl_factor: (batch element 1) the matrix is singular: element 1"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              linalg::ldl_solve(eye(2), tensor({0, 1}), ones({2, 1}));
            }).find("pivot 0 is not a row of 2"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              linalg::ldl_solve(eye(2), tensor({1, -2}), ones({2, 1}));
            }).find("two equal pivots"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              linalg::ldl_solve(eye(2), tensor({1, 2}), ones({3, 1}));
            }).find("do not fit"),
            std::string::npos);
}

TEST(Ldl, PlainLoopsAgreeWithLapack) {
  const Dense<double>* library = lapack<double>();
  if (!library) GTEST_SKIP() << "no LAPACK here";
  manual_seed(6);
  for (int64_t n : {1, 2, 7, 40}) {
    const auto a = symmetric(randn({n, n}, kFloat64)).to_vector<double>();
    auto one = a, two = a;
    std::vector<int32_t> pivots(size_t(n), 0), other = pivots;
    EXPECT_EQ(library->ldl(n, one.data(), pivots.data()), 0);
    EXPECT_EQ(textbook<double>().ldl(n, two.data(), other.data()), 0);
    EXPECT_EQ(pivots, other);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < n; ++i) EXPECT_NEAR(one[size_t(j * n + i)], two[size_t(j * n + i)], 1e-10);
  }
}

// --- reflections

TEST(Reflections, MultiplyBackToTheMatrix) {
  manual_seed(7);
  for (auto& shape : {Shape{5, 3}, Shape{2, 4, 4}, Shape{3, 6}}) {
    Tensor a = randn(shape, kFloat64);
    auto [vectors, tau] = geqrf(a);
    const Dim rows = a.size(-2);
    expect_close(ormqr(vectors, tau, vectors.triu()), a);
    expect_close(ormqr(vectors, tau, a, true, true).triu(), vectors.triu());
    // All of Q, which ormqr never makes, is that of identity.
    Tensor q = ormqr(vectors, tau, eye(rows, kFloat64).expand({rows, rows}));
    expect_close(matmul(transposed(q), q), eye(rows, kFloat64).expand(q.sizes()));
    expect_close(ormqr(vectors, tau, eye(rows, kFloat64), false), q);
    if (shape.back() <= shape[shape.size() - 2])
      expect_close(linalg::householder_product(vectors, tau), q.narrow(-1, 0, shape.back()));
  }
  Tensor z = complex_matrices({4, 2}), factors = complex_matrices({2}), c = complex_matrices({4, 3});
  // Qᴴ is the adjoint of Q whatever the factors are: of real ones that PyTorch's values tell.
  Tensor q = ormqr(z, factors, complex(eye(4, kFloat64), zeros({4, 4}, kFloat64)));
  expect_close_pairs(ormqr(z, factors, c), matmul(q, c));
  expect_close_pairs(ormqr(z, factors, c, true, true), matmul(conj(q.t()), c));
  EXPECT_NE(error_of([] { ormqr(ones({4, 2}), ones({2}), ones({3, 3})); }).find("do not fit"), std::string::npos);
}

// --- roots

TEST(MatrixRoots, EqualEigenvaluesHaveGradients) {
  GradcheckOptions twice{.second_order = true};
  TensorList one{eye(3, kFloat64)};
  EXPECT_TRUE(gradcheck([](const TensorList& x) -> TensorList { return {linalg::matrix_sqrth(symmetric(x[0]) * 2)}; },
                        one, twice));
  auto polar = [](const TensorList& x) -> TensorList {
    auto [u, h] = linalg::polar(x[0]);
    return {u, h};
  };
  EXPECT_TRUE(gradcheck(polar, one, twice));
  manual_seed(8);
  TensorList tall{randn({2, 4, 2}, kFloat64)};
  EXPECT_TRUE(gradcheck(polar, tall, twice));
}

TEST(MatrixRoots, AreWhatTheyAreCalled) {
  manual_seed(9);
  Tensor x = randn({3, 5, 5}, kFloat64), a = matmul(x, transposed(x)), root = linalg::matrix_sqrth(a);
  expect_close(matmul(root, root), a);
  expect_close(linalg::matrix_sqrth(a.tril()), root);
  auto [u, h] = linalg::polar(randn({2, 6, 3}, kFloat64));
  expect_close(matmul(transposed(u), u), eye(3, kFloat64).expand({2, 3, 3}));
  expect_close(h, transposed(h));
  EXPECT_GE(linalg::eigvalsh(h).amin().item<double>(), 0);
  // Negative eigenvalues count as 0.
  EXPECT_EQ(linalg::matrix_sqrth(-eye(2)).abs().sum().item<double>(), 0);
  EXPECT_NE(error_of([] { linalg::polar(ones({2, 3})); }).find("at least as many rows as columns"), std::string::npos);
}

}  // namespace
}  // namespace sinter
