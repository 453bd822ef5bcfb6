// Fourier transforms where the table of ops says nothing: large tensors in any layout, compiled functions, vmap, errors.
#include "sinter/ops/fourier.h"

#include <gtest/gtest.h>

#include "sinter/autograd/functional.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using fourier::complex_to_complex;
using fourier::complex_to_real;
using fourier::real_to_complex;

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes().numbers(), b.sizes().numbers());
  EXPECT_TRUE(a.allclose(b, 1e-4, 1e-3)) << (a - b).abs().max();
}

// By products of pairs with all roots of unity.
Tensor by_definition(const Tensor& x, int64_t dim) {
  const Dim n = x.size(dim);
  Tensor k = arange_of_size(n, TensorOptions(kFloat64));
  Tensor angle = k.unsqueeze(1) * k * (-2 * M_PI / double(n.to_int()));
  Tensor moved = x.movedim(dim, -2).contiguous().to(kFloat64).unsqueeze(-3), re = moved.select(-1, 0),
         im = moved.select(-1, 1);
  Tensor c = cos(angle), s = sin(angle);
  return stack({(re * c - im * s).sum({-1}), (re * s + im * c).sum({-1})}, -1).movedim(-2, dim).to(x.dtype());
}

TEST(Fourier, TakesOperandsThatLieInAnyWay) {
  manual_seed(1);
  const Tensor x = randn({6, 40, 9, 2});
  const std::vector<std::pair<const char*, Tensor>> views = {
      {"as it is", x},
      {"dimensions exchanged", x.permute({2, 0, 1, 3})},
      {"every third element", x.slice(1, 1, 40, 3)},
      {"the same line again and again", x.narrow(0, 0, 1).expand({5, 40, 9, 2})},
      {"pairs apart", x.transpose(2, 3).slice(2, 0, 2).transpose(2, 3)},
      {"pairs at odd places", randn({6, 40, 19}).narrow(2, 1, 18).unflatten(2, {9, 2})}};
  for (auto& [name, view] : views)
    for (int64_t dim = 0; dim < 3; ++dim) {
      SCOPED_TRACE(format("{}, dimension {}", name, dim));
      expect_close(complex_to_complex(view, {dim}, FourierNorm::kNone, true), by_definition(view, dim));
      const Tensor reals = view.select(3, 0);
      const Tensor pairs = stack({reals, zeros_like(reals)}, -1);
      expect_close(real_to_complex(reals, {dim}, FourierNorm::kNone, false), by_definition(pairs, dim));
      const Tensor half = real_to_complex(reals, {dim}, FourierNorm::kNone, true);
      expect_close(complex_to_real(half, {dim}, FourierNorm::kN, reals.size(dim)), reals);
    }
}

// More dimensions than the engine walks at once.
TEST(Fourier, WalksManyDimensions) {
  manual_seed(2);
  const Tensor x = randn({3, 2, 4, 3, 5, 2}).permute({4, 0, 3, 1, 2, 5});
  for (int64_t dim = 0; dim < 5; ++dim)
    expect_close(complex_to_complex(x, {dim}, FourierNorm::kNone, true), by_definition(x, dim));
}

TEST(Fourier, OneDimensionAfterTheOther) {
  manual_seed(3);
  const Tensor x = randn({12, 7, 10, 2});
  const Tensor want = by_definition(by_definition(x, 2), 0);
  expect_close(complex_to_complex(x, {0, 2}, FourierNorm::kNone, true), want);
  expect_close(complex_to_complex(want, {2, 0}, FourierNorm::kN, false), x);
  const Tensor reals = x.select(3, 0);
  for (bool onesided : {true, false}) {
    const Tensor all =
        complex_to_complex(stack({reals, zeros_like(reals)}, -1), {0, 1, 2}, FourierNorm::kRootOfN, true);
    const Tensor got = real_to_complex(reals, {0, 2, 1}, FourierNorm::kRootOfN, onesided);
    expect_close(got, onesided ? all.narrow(1, 0, 4) : all);
    if (onesided) expect_close(complex_to_real(got, {0, 2, 1}, FourierNorm::kRootOfN, 7), reals);
  }
}

// Filtering, with its gradient, for any sizes.
TEST(Fourier, CompiledForAnySizes) {
  auto filtered = [](const Tensor& x) {
    Tensor spectrum = real_to_complex(x, {1}, FourierNorm::kNone, true);
    return complex_to_real(spectrum * 0.5 + spectrum.square(), {1}, FourierNorm::kN, x.size(1));
  };
  auto compiled = compile(filtered, {.dynamic = Dynamic::kTrue});
  for (int64_t n : {12, 31, 64}) {
    Tensor x = rand({3, n}).requires_grad_(), y = x.detach().clone().requires_grad_();
    Tensor want = filtered(x), got = compiled(y);
    expect_close(got, want);
    want.square().sum().backward();
    got.square().sum().backward();
    EXPECT_TRUE(x.grad().allclose(y.grad(), 1e-3, 1e-2)) << n;
  }
}

TEST(Fourier, OverABatchAtOnce) {
  const Tensor x = rand({4, 3, 10, 2});
  auto forth = [](const Tensor& one) { return complex_to_complex(one, {1}, FourierNorm::kNone, true); };
  expect_close(func::vmap(forth)(x), complex_to_complex(x, {2}, FourierNorm::kNone, true));
  auto back = [](const Tensor& one) { return complex_to_real(one, {0, 1}, FourierNorm::kN, 18); };
  expect_close(func::vmap(back)(x), complex_to_real(x, {1, 2}, FourierNorm::kN, 18));
}

TEST(Fourier, OperandsThatDoNotFitAreErrors) {
  const auto fails = [](auto f, const char* part) {
    EXPECT_NE(error_of(f).find(part), std::string::npos) << error_of(f);
  };
  const Tensor pairs = zeros({3, 4, 2});
  const auto none = FourierNorm::kNone;
  fails([&] { complex_to_complex(zeros({3, 4}), {0}, none, true); }, "expected pairs (re, im) in the last dimension");
  fails([&] { complex_to_complex(pairs, {2}, none, true); }, "there is no dimension 2");
  fails([&] { complex_to_complex(pairs, {1, 1}, none, true); }, "named twice");
  fails([&] { complex_to_complex(pairs, {}, none, true); }, "no dimension");
  fails([&] { complex_to_complex(zeros({3, 0, 2}), {1}, none, true); }, "is empty");
  fails([&] { real_to_complex(zeros({4}, kInt64), {0}, none, true); }, "takes f32 or f64");
  fails([&] { complex_to_real(pairs, {1}, none, 8); }, "4 elements along dimension 1");
}

}  // namespace
}  // namespace sinter
