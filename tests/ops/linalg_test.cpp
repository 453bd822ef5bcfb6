// Linear algebra where PyTorch's values say nothing: errors, odd shapes, compiled functions, and plain loops beside LAPACK.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/capture/compiler.h"
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

Tensor positive(const Tensor& x) { return matmul(x, x.transpose(-2, -1)) + eye(x.size(-1), x.options()); }

void expect_close(const Tensor& a, const Tensor& b, double tolerance = 1e-4) {
  EXPECT_TRUE(a.allclose(b, tolerance, tolerance)) << a << "\n" << b;
}

TEST(Linalg, SingularMatricesAreErrorsThatNameTheBatchElement) {
  Tensor batch = stack({eye(2), zeros({2, 2})});
  EXPECT_NE(error_of([&] { linalg::inv(batch); }).find("linalg.inv: (batch element 1) the matrix is singular"),
            std::string::npos);
  EXPECT_NE(error_of([&] { linalg::solve(zeros({2, 2}), ones({2})); }).find("linalg.solve: the matrix is singular"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { linalg::cholesky(neg(eye(2))); }).find("linalg.cholesky: the matrix is not positive-definite"),
      std::string::npos);
  auto info = std::get<1>(linalg::inv_ex(batch)).to_vector<int>();
  EXPECT_EQ(info, (std::vector<int>{0, 1}));
  EXPECT_EQ(std::get<1>(linalg::cholesky_ex(neg(eye(2)))).item<int>(), 1);
  EXPECT_EQ(det(zeros({2, 2})).item<double>(), 0);
  EXPECT_TRUE(std::isinf(linalg::cond(zeros({2, 2}), 1).item<double>()));
  EXPECT_TRUE(std::isnan(logdet(neg(eye(3))).item<double>()));
}

TEST(Linalg, WrongOperandsAreRefused) {
  EXPECT_NE(error_of([] { linalg::inv(ones({2, 3})); }).find("linalg.inv: the matrices must be square"),
            std::string::npos);
  EXPECT_NE(error_of([] { linalg::inv(eye(2, kFloat16)); }).find("low precision"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::inv(eye(2, kInt64)); }).find("expected a floating tensor"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::solve(eye(2), ones({3, 1})); }).find("do not fit"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::solve(eye(2), ones({2, 1}, kFloat64)); }).find("differ"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::qr(eye(2), "all"); }).find("mode is"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::svd(full({2, 2}, NAN)); }).find("not finite"), std::string::npos);
  EXPECT_NE(error_of([] { linalg::norm(ones({2, 2, 2}), 2); }).find("1-d or 2-d"), std::string::npos);
  EXPECT_NE(error_of([] { cdist(ones({2, 3}), ones({2, 4})); }).find("differ in length"), std::string::npos);
}

TEST(Linalg, NothingIsFactoredToo) {
  EXPECT_EQ(det(zeros({0, 0})).item<double>(), 1);
  EXPECT_EQ(linalg::inv(zeros({3, 0, 0})).sizes().numbers(), (IntList{3, 0, 0}));
  auto [u, s, vt] = linalg::svd(zeros({0, 3}));
  EXPECT_EQ(u.sizes().numbers(), (IntList{0, 0}));
  expect_close(matmul(vt, vt.transpose(-2, -1)), eye(3));
  EXPECT_EQ(linalg::pinv(zeros({0, 3})).sizes().numbers(), (IntList{3, 0}));
  EXPECT_EQ(cdist(zeros({0, 3}), zeros({2, 3})).sizes().numbers(), (IntList{0, 2}));
  EXPECT_EQ(linalg::matrix_rank(zeros({0, 3})).item<int>(), 0);
}

TEST(Linalg, FactorsMultiplyBackToTheMatrix) {
  manual_seed(1);
  for (auto& shape : {Shape{5, 5}, Shape{2, 7, 4}, Shape{3, 4, 9}}) {
    Tensor a = randn(shape, kFloat64);
    auto [u, s, vt] = linalg::svd(a);
    Dim k = s.size(-1);
    expect_close(matmul(u.narrow(-1, 0, k) * s.unsqueeze(-2), vt.narrow(-2, 0, k)), a, 1e-10);
    expect_close(matmul(u.transpose(-2, -1), u), eye(u.size(-1), kFloat64).expand(u.sizes()), 1e-10);
    expect_close(matmul(vt, vt.transpose(-2, -1)), eye(vt.size(-1), kFloat64).expand(vt.sizes()), 1e-10);
    auto [q, r] = linalg::qr(a, "complete");
    expect_close(matmul(q, r), a, 1e-10);
    auto [p, l, upper] = linalg::lu(a);
    expect_close(matmul(p, matmul(l, upper)), a, 1e-10);
  }
  Tensor large = randn({150, 150}, kFloat64), symmetric = large + large.t();
  auto [w, v] = linalg::eigh(symmetric);
  expect_close(matmul(v * w.unsqueeze(-2), v.t()), symmetric, 1e-9);
  expect_close(matmul(linalg::inv(large), large), eye(150, kFloat64), 1e-8);
  expect_close(linalg::solve(large.t(), large), matmul(linalg::inv(large.t()), large), 1e-7);
}

// Both ways give the same, so that a machine without LAPACK loses time alone.
TEST(Linalg, PlainLoopsAgreeWithLapack) {
  const Dense<double>* library = lapack<double>();
  if (!library) GTEST_SKIP() << "no LAPACK here";
  manual_seed(2);
  const int64_t n = 12;
  auto values = randn({n, n}, kFloat64).to_vector<double>();
  auto factored = [&](const Dense<double>& by) {
    auto a = values;
    std::vector<int32_t> pivots(static_cast<size_t>(n));
    by.lu(n, n, a.data(), pivots.data());
    return a;
  };
  auto singular = [&](const Dense<double>& by) {
    auto a = values;
    std::vector<double> s(static_cast<size_t>(n));
    by.svd(n, n, a.data(), nullptr, s.data(), nullptr);
    return s;
  };
  auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-11) << i;
  };
  close(factored(*library), factored(textbook<double>()));
  close(singular(*library), singular(textbook<double>()));
}

TEST(Linalg, CompiledFunctionsGiveTheSameAndTheSameErrors) {
  auto f = [](const Tensor& a, const Tensor& b) { return linalg::solve(positive(a), b).sum() + logdet(positive(a)); };
  auto compiled = compile(f);
  manual_seed(3);
  for (int64_t n : {3, 4, 6}) {
    Tensor a = randn({n, n}).requires_grad_(), b = randn({n, 2}), c = a.detach().clone().requires_grad_();
    Tensor want = f(a, b), got = compiled(c, b);
    expect_close(got, want);
    want.backward();
    got.backward();
    expect_close(c.grad(), a.grad(), 1e-3);
  }
  auto inverse = compile([](const Tensor& a) { return linalg::inv(a) * 2; });
  expect_close(inverse(2 * eye(3)), eye(3));
  EXPECT_NE(error_of([&] { inverse(zeros({3, 3})); }).find("singular"), std::string::npos);
}

TEST(Linalg, SecondDerivatives) {
  manual_seed(4);
  GradcheckOptions twice{.second_order = true};
  TensorList x{randn({3, 3}, kFloat64)};
  EXPECT_TRUE(gradcheck([](const TensorList& x) -> TensorList { return {det(x[0]), linalg::inv(x[0])}; }, x, twice));
  EXPECT_TRUE(
      gradcheck([](const TensorList& x) -> TensorList { return {linalg::cholesky(positive(x[0]))}; }, x, twice));
  EXPECT_TRUE(gradcheck([](const TensorList& x) -> TensorList { return {linalg::svdvals(x[0])}; }, x, twice));
  EXPECT_TRUE(gradcheck(
      [](const TensorList& x) -> TensorList { return {linalg::matrix_norm(x[0], "nuc"), linalg::pinv(x[0])}; }, x,
      twice));
}

TEST(Distances, EqualRowsHaveNoGradient) {
  Tensor a = ones({30, 4}).requires_grad_(), b = ones({30, 4});
  Tensor d = cdist(a, b);
  EXPECT_EQ(d.sum().item<double>(), 0);
  d.sum().backward();
  EXPECT_EQ(a.grad().abs().sum().item<double>(), 0);
  expect_close(cdist(a.detach() * 3, b, 2, 1), cdist(a.detach() * 3, b, 2, 2));
}

}  // namespace
}  // namespace sinter
