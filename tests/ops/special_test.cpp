// Special functions against all digits (tools/record_special.py), and at the ends of their ranges.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/special.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using One = Tensor (*)(const TensorArg&);
using Two = Tensor (*)(const TensorArg&, const TensorArg&);

const SafeTensorsFile& recorded_values() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/special.safetensors");
  return file;
}

// Waves are as right as the larger of them and their envelope; what has no zeros is right in itself.
void expect_digits(const Tensor& got, const std::string& name, double tolerance, bool waves) {
  const auto have = got.to_vector<double>(), want = recorded_values().tensor(name + "/value").to_vector<double>();
  const auto x = recorded_values().tensor(name + "/x").to_vector<double>();
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const double envelope = waves ? 1 / std::sqrt(1 + std::abs(x[i])) : 0;
    if (have[i] == want[i] || std::abs(want[i]) < 1e-300) continue;
    EXPECT_NEAR(have[i], want[i], tolerance * std::max(std::abs(want[i]), envelope)) << name << " of " << x[i];
  }
}

TEST(Special, HasAllDigitsOfDoubles) {
  struct Case {
    const char* name;
    One function;
    double tolerance = 4e-15;
    bool waves = false;
  };
  for (const Case& c : {Case{"bessel_j0", special::bessel_j0, 2e-14, true}, Case{"bessel_j1", special::bessel_j1, 2e-14, true},
                        Case{"bessel_y0", special::bessel_y0, 2e-14, true}, Case{"bessel_y1", special::bessel_y1, 2e-14, true},
                        Case{"i0", i0}, Case{"i1", special::i1}, Case{"i0e", special::i0e}, Case{"i1e", special::i1e},
                        Case{"modified_bessel_k0", special::modified_bessel_k0},
                        Case{"modified_bessel_k1", special::modified_bessel_k1},
                        Case{"scaled_modified_bessel_k0", special::scaled_modified_bessel_k0},
                        Case{"scaled_modified_bessel_k1", special::scaled_modified_bessel_k1},
                        Case{"spherical_bessel_j0", special::spherical_bessel_j0, 2e-15, true},
                        Case{"airy_ai", special::airy_ai, 1e-13, true}, Case{"erfcx", special::erfcx},
                        Case{"log_ndtr", special::log_ndtr, 2e-14}, Case{"ndtri", special::ndtri, 2e-13}})
    expect_digits(c.function(recorded_values().tensor(std::string(c.name) + "/x")), c.name, c.tolerance, c.waves);
}

TEST(Special, PolynomialsAndZetaHaveTheirDigits) {
  struct Case {
    const char* name;
    Two function;
  };
  for (const Case& c : {Case{"zeta", special::zeta}, Case{"chebyshev_polynomial_t", special::chebyshev_polynomial_t},
                        Case{"chebyshev_polynomial_u", special::chebyshev_polynomial_u},
                        Case{"chebyshev_polynomial_v", special::chebyshev_polynomial_v},
                        Case{"chebyshev_polynomial_w", special::chebyshev_polynomial_w},
                        Case{"hermite_polynomial_h", special::hermite_polynomial_h},
                        Case{"hermite_polynomial_he", special::hermite_polynomial_he},
                        Case{"laguerre_polynomial_l", special::laguerre_polynomial_l},
                        Case{"legendre_polynomial_p", special::legendre_polynomial_p}}) {
    const std::string name = c.name;
    const bool is_polynomial = name != "zeta";
    expect_digits(c.function(recorded_values().tensor(name + "/x"), recorded_values().tensor(name + "/n")), name,
                  is_polynomial ? 2e-13 : 4e-15, is_polynomial);
  }
}

TEST(Special, EndsOfTheRanges) {
  const Tensor x = tensor({0.0, -1.0, kInfinity, std::nan("")}, kFloat64);
  auto expect = [&](One function, std::vector<double> want) {
    const auto got = function(x).to_vector<double>();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) << got[i] << " instead of " << want[i] << " at " << i;
  };
  const double nan = std::nan("");
  expect(special::bessel_y0, {-kInfinity, nan, nan, nan});
  expect(special::modified_bessel_k0, {kInfinity, nan, 0, nan});
  expect(special::modified_bessel_k1, {kInfinity, nan, 0, nan});
  expect(special::ndtri, {-kInfinity, nan, nan, nan});
  expect(special::entr, {0, -kInfinity, -kInfinity, nan});
  expect(special::spherical_bessel_j0, {1, std::sin(1.0), 0, nan});
  EXPECT_EQ(special::zeta(1.0, x).to_vector<double>()[2], kInfinity);
  EXPECT_TRUE(std::isnan(special::zeta(0.5, x).to_vector<double>()[2]));
  EXPECT_EQ(special::xlog1py(tensor({0.0}), tensor({-1.0})).item<double>(), 0);
}

// Degrees that no recurrence reaches in useful time.
TEST(Special, ChebyshevPolynomialsOfHugeDegrees) {
  const double n = 1e15, x = 0.25;
  EXPECT_NEAR(special::chebyshev_polynomial_t(tensor(x, kFloat64), n).item<double>(), std::cos(n * std::acos(x)), 1e-6);
  EXPECT_EQ(special::chebyshev_polynomial_u(tensor(-1.0, kFloat64), n + 1).item<double>(), -(n + 2));
  EXPECT_EQ(special::chebyshev_polynomial_t(tensor(2.0, kFloat64), 1e6).item<double>(), kInfinity);
}

TEST(Special, ZetaIsDifferentiatedByItsSecondOperand) {
  Tensor q = tensor({0.5, 2.0}, kFloat64).requires_grad_(), s = tensor({2.0, 3.0}, kFloat64).requires_grad_();
  special::zeta(tensor({2.0, 3.0}, kFloat64), q).sum().backward();
  EXPECT_NEAR(q.grad()[0].item<double>(), -2 * special::zeta(3.0, tensor(0.5, kFloat64)).item<double>(), 1e-13);
  EXPECT_NE(error_of([&] { special::zeta(s, q).sum().backward(); }).find("second operand"), std::string::npos);
}

TEST(NextAfter, IsTheNeighbourInEachDtype) {
  for (DType dtype : {kFloat64, kFloat32}) {
    const double ulp = dtype == kFloat64 ? 0x1p-52 : 0x1p-23;
    Tensor a = tensor({1.0, 1.0, -1.0, 2.0, 1.0}, dtype), b = tensor({2.0, 0.0, 0.0, kInfinity, 1.0}, dtype);
    EXPECT_EQ(nextafter(a, b).to_vector<double>(), (std::vector<double>{1 + ulp, 1 - ulp / 2, -1 + ulp / 2, 2 + 2 * ulp, 1}));
  }
  Tensor huge = full({1}, kInfinity, kFloat32);
  EXPECT_EQ(nextafter(huge, zeros({1})).item<float>(), std::numeric_limits<float>::max());
  EXPECT_EQ(nextafter(full({1}, std::numeric_limits<float>::max()), huge).item<float>(), kInfinity);
  EXPECT_EQ(nextafter(ones({1}, kBFloat16), full({1}, 2, kBFloat16)).item<float>(), 1 + 0x1p-7f);
  EXPECT_EQ(nextafter(zeros({1}, kFloat64), ones({1}, kFloat64)).item<double>(), std::numeric_limits<double>::denorm_min());
  EXPECT_NE(error_of([] { nextafter(ones({1}), ones({1}, kFloat64)); }).find("one dtype"), std::string::npos);
  EXPECT_NE(error_of([] { nextafter(ones({1}, kInt64), ones({1}, kInt64)); }).find("f64, f32 or bf16"), std::string::npos);
}

TEST(Divisors, OfIntegersOfEverySize) {
  Tensor a = tensor({12, -12, 0, 0, 7, 100}), b = tensor({18, 18, 5, 0, 13, 75});
  EXPECT_EQ(gcd(a, b).to_vector<int64_t>(), (std::vector<int64_t>{6, 6, 5, 0, 1, 25}));
  EXPECT_EQ(lcm(a, b).to_vector<int64_t>(), (std::vector<int64_t>{36, 36, 0, 0, 91, 300}));
  EXPECT_EQ(gcd(a.to(kInt8), b.to(kInt8)).to_vector<int64_t>(), (std::vector<int64_t>{6, 6, 5, 0, 1, 25}));
}

}  // namespace
}  // namespace sinter
