// Factorisations and Fourier transforms by the libraries of a GPU, against the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/cufft.h"
#include "sinter/runtime/cuda/cusolver.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {
namespace {

using Results = std::function<TensorList(const TensorList&)>;

class GpuLibrary : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    manual_seed(11);
  }
  Tensor random(const Shape& shape) { return randn(shape, TensorOptions(GetParam())); }
  // Symmetric and positive-definite.
  Tensor definite(const Shape& batch, int64_t n) {
    Shape shape = batch;
    shape.push_back(n);
    shape.push_back(n);
    Tensor a = random(shape);
    return matmul(a, a.mT()) / double(n) + eye(n, a.options());
  }
  double bound() const { return GetParam() == kFloat64 ? 1e-10 : 2e-3; }

  void expect_near(const Tensor& got, const Tensor& want, double times = 1) {
    ASSERT_TRUE(got.sizes().same_as(want.sizes())) << got.sizes() << " and " << want.sizes();
    ASSERT_EQ(got.dtype(), want.dtype());
    if (want.numel() == 0) return;
    const Tensor here = got.to(Device());
    if (!is_floating(want.dtype())) {
      EXPECT_TRUE(here.equal(want));
      return;
    }
    EXPECT_TRUE(here.isnan().equal(want.isnan()));
    const double off = (here - want).abs().nan_to_num().amax().to(kFloat64).item<double>();
    const double size = want.abs().nan_to_num().amax().to(kFloat64).item<double>();
    EXPECT_LE(off, times * bound() * (1 + size));
  }
  // What the function gives here and there, eagerly and compiled.
  void check(const Results& f, const TensorList& operands, double times = 1) {
    TensorList there;
    for (auto& t : operands) there.push_back(t.to(cuda()));
    const TensorList want = f(operands), got = f(there);
    auto compiled = compile(f);
    for (int call = 0; call < 3; ++call) {
      const TensorList once = call == 0 ? got : compiled(there);
      ASSERT_EQ(once.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(format("result {} of call {}", i, call));
        EXPECT_TRUE(once[i].device().is_cuda());
        expect_near(once[i], want[i], times);
      }
    }
  }
  // The gradients of the sum of all results, with weights that differ.
  void check_gradients(const Results& f, const TensorList& operands, double times = 10) {
    TensorList grads[2];
    for (int side = 0; side < 2; ++side) {
      TensorList leaves;
      for (auto& t : operands) leaves.push_back(t.to(side ? cuda() : Device()).detach().requires_grad_());
      Tensor loss;
      for (auto& result : f(leaves)) {
        if (!is_floating(result.dtype())) continue;
        Tensor weights = (arange(result.numel(), TensorOptions(result.dtype()).device(result.device())) * 0.7).cos();
        Tensor term = (result.reshape({-1}) * weights).sum();
        loss = loss.defined() ? loss + term : term;
      }
      loss.backward();
      for (auto& leaf : leaves) grads[side].push_back(leaf.grad().contiguous());
    }
    for (size_t i = 0; i < operands.size(); ++i) expect_near(grads[1][i], grads[0][i], times);
  }
};

class GpuLinalg : public GpuLibrary {
 protected:
  void SetUp() override {
    GpuLibrary::SetUp();
    if (runtime::cuda_is_available() && !runtime::cusolver_problem().empty())
      GTEST_SKIP() << runtime::cusolver_problem();
  }
};
class GpuFourier : public GpuLibrary {
 protected:
  void SetUp() override {
    GpuLibrary::SetUp();
    if (runtime::cuda_is_available() && !runtime::cufft_problem().empty()) GTEST_SKIP() << runtime::cufft_problem();
  }
};

TEST_P(GpuLinalg, Lu) {
  auto f = [](const TensorList& x) {
    auto [lu, pivots] = linalg::lu_factor(x[0]);
    return TensorList{lu, pivots};
  };
  for (auto& shape : {Shape{5, 5}, Shape{2, 40, 24}, Shape{24, 40}, Shape{200, 200}}) check(f, {random(shape)});
}

TEST_P(GpuLinalg, Solve) {
  auto f = [](const TensorList& x) { return TensorList{linalg::solve(x[0], x[1])}; };
  check(f, {definite({}, 6), random({6, 3})});
  check(f, {definite({3}, 150), random({3, 150, 4})});
  check_gradients(f, {definite({}, 130), random({130, 2})});
}

TEST_P(GpuLinalg, InverseAndDeterminant) {
  check([](const TensorList& x) { return TensorList{linalg::inv(x[0])}; }, {definite({2}, 140)});
  check([](const TensorList& x) { return TensorList{linalg::det(x[0])}; }, {definite({2}, 8)});
  check(
      [](const TensorList& x) {
        auto [sign, logarithm] = linalg::slogdet(x[0]);
        return TensorList{sign, logarithm};
      },
      {definite({}, 140)});
}

TEST_P(GpuLinalg, SingularMatricesAreTold) {
  Tensor a = zeros({130, 130}, TensorOptions(GetParam()).device(cuda()));
  try {
    linalg::inv(a);
    FAIL() << "there is no inverse of zeros";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("linalg.inv: the matrix is singular: element 1"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(std::get<1>(linalg::inv_ex(a)).item<int>(), 1);
  EXPECT_THROW(linalg::cholesky(a - 1), Error);
  EXPECT_EQ(std::get<1>(linalg::cholesky_ex(a)).item<int>(), 1);
}

TEST_P(GpuLinalg, Cholesky) {
  auto f = [](const TensorList& x) { return TensorList{linalg::cholesky(x[0])}; };
  check(f, {definite({}, 3)});
  check(f, {definite({2, 2}, 150)});
  check_gradients(f, {definite({}, 130)});
}

TEST_P(GpuLinalg, TriangularSystems) {
  for (bool upper : {false, true})
    for (bool unit : {false, true})
      for (bool left : {false, true}) {
        auto f = [=](const TensorList& x) {
          Tensor a = upper ? x[0].triu() : x[0].tril();
          return TensorList{linalg::solve_triangular(a, x[1], upper, left, unit)};
        };
        check(f, {definite({2}, 5), random(left ? Shape{2, 5, 3} : Shape{2, 3, 5})});
        check(f, {definite({}, 140) / 140.0 + eye(140, TensorOptions(GetParam())),
                  random(left ? Shape{140, 9} : Shape{9, 140})});
      }
}

TEST_P(GpuLinalg, Qr) {
  for (std::string mode : {"reduced", "complete", "r"}) {
    auto f = [=](const TensorList& x) {
      auto [q, r] = linalg::qr(x[0], mode);
      return mode == "r" ? TensorList{r} : TensorList{q, r};
    };
    for (auto& shape : {Shape{6, 4}, Shape{4, 6}, Shape{2, 160, 130}, Shape{130, 160}}) check(f, {random(shape)}, 10);
  }
  check_gradients(
      [](const TensorList& x) {
        auto [q, r] = linalg::qr(x[0]);
        return TensorList{q, r};
      },
      {random({140, 6})}, 20);
}

TEST_P(GpuLinalg, Eigenvalues) {
  check([](const TensorList& x) { return TensorList{linalg::eigvalsh(x[0])}; }, {definite({3}, 130)});
  // Vectors of eigenvalues that lie apart.
  Tensor q = std::get<0>(linalg::qr(random({2, 24, 24})));
  Tensor a = matmul(q * arange(24, TensorOptions(GetParam())), q.mT());
  auto f = [](const TensorList& x) {
    auto [values, vectors] = linalg::eigh(x[0]);
    return TensorList{values, vectors};
  };
  check(f, {(a + a.mT()) / 2}, 20);
  check_gradients(f, {(a + a.mT()) / 2}, 200);
  check(f, {full({2, 3, 3}, NAN, TensorOptions(GetParam()))});
}

TEST_P(GpuLinalg, SingularValues) {
  check([](const TensorList& x) { return TensorList{linalg::svdvals(x[0])}; }, {random({150, 40})});
  for (auto& shape : {Shape{2, 30, 12}, Shape{12, 30}, Shape{9, 9}}) {
    auto f = [](const TensorList& x) {
      auto [u, s, vt] = linalg::svd(x[0], false);
      return TensorList{u, s, vt};
    };
    Tensor x = random(shape);
    auto [u, s, vt] = linalg::svd(x, false);
    Tensor apart = matmul(u * (arange(s.size(-1), s.options()) + 1), vt);
    check(f, {apart}, 20);
    check_gradients(f, {apart}, 200);
  }
  Tensor bad = full({5, 3}, NAN, TensorOptions(GetParam()).device(cuda()));
  EXPECT_THROW(linalg::svdvals(bad), Error);
}

TEST_P(GpuLinalg, LeastSquares) {
  check([](const TensorList& x) { return TensorList{std::get<0>(linalg::lstsq(x[0], x[1]))}; },
        {random({160, 12}), random({160, 3})});
  check([](const TensorList& x) { return TensorList{linalg::pinv(x[0])}; }, {random({140, 20})}, 10);
}

TEST_P(GpuLinalg, ManySmallMatricesAndEmptyOnes) {
  check([](const TensorList& x) { return TensorList{linalg::inv(x[0])}; }, {definite({100}, 3)});
  check([](const TensorList& x) { return TensorList{linalg::inv(x[0])}; }, {definite({}, 0)});
  check([](const TensorList& x) { return TensorList{linalg::cholesky(x[0])}; }, {definite({0}, 4)});
}

TEST_P(GpuFourier, ComplexTransforms) {
  for (auto& dims : {IntList{0}, IntList{1}, IntList{2}, IntList{0, 2}, IntList{2, 1}, IntList{0, 1, 2}}) {
    auto forward = [=](const TensorList& x) {
      return TensorList{view_as_real(fft::fftn(view_as_complex(x[0]), {}, dims))};
    };
    auto back = [=](const TensorList& x) {
      return TensorList{view_as_real(fft::ifftn(view_as_complex(x[0]), {}, dims, "ortho"))};
    };
    check(forward, {random({6, 5, 8, 2})});
    check(back, {random({6, 5, 8, 2})});
    check_gradients(forward, {random({6, 5, 8, 2})});
  }
}

TEST_P(GpuFourier, RealTransforms) {
  for (int64_t n : {1, 2, 7, 12, 1000})
    for (auto& dims : {IntList{1}, IntList{0, 1}, IntList{1, 0}}) {
      auto forward = [=](const TensorList& x) { return TensorList{view_as_real(fft::rfftn(x[0], {}, dims))}; };
      check(forward, {random({3, n})});
      check_gradients(forward, {random({3, n})});
      auto whole = [=](const TensorList& x) { return TensorList{view_as_real(fft::fftn(x[0], {}, dims))}; };
      check(whole, {random({3, n})});
      // Halves that are no real tensor's: what they should not have is not looked at.
      Shape sizes;
      for (int64_t d : dims) sizes.push_back(d == 0 ? 4 : n);
      auto back = [=](const TensorList& x) { return TensorList{fft::irfftn(view_as_complex(x[0]), sizes, dims)}; };
      check(back, {dims.back() == 1 ? random({4, n / 2 + 1, 2}) : random({3, n, 2})});
    }
}

TEST_P(GpuFourier, OfViewsAndManyDimensions) {
  Tensor x = random({4, 3, 2, 5, 3, 2});
  check([](const TensorList& t) { return TensorList{view_as_real(fft::fftn(view_as_complex(t[0])))}; }, {x});
  check([](const TensorList& t) { return TensorList{view_as_real(fft::rfft(t[0].narrow(1, 1, 9)))}; },
        {random({5, 11})});
  check([](const TensorList& t) { return TensorList{view_as_real(fft::rfft(t[0].t()))}; }, {random({5, 11})});
  check([](const TensorList& t) { return TensorList{fft::irfft(fft::rfft(t[0]), 11)}; }, {random({5, 11})});
  check([](const TensorList& t) { return TensorList{view_as_real(fft::rfft(t[0]))}; }, {random({0, 8})});
}

std::string dtype_name(const ::testing::TestParamInfo<DType>& info) { return to_string(info.param); }
INSTANTIATE_TEST_SUITE_P(All, GpuLinalg, ::testing::Values(kFloat32, kFloat64), dtype_name);
INSTANTIATE_TEST_SUITE_P(All, GpuFourier, ::testing::Values(kFloat32, kFloat64), dtype_name);

}  // namespace
}  // namespace sinter
