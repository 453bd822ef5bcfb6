// Formulas that are computed element by element.
#include <cmath>
#include <limits>
#include <numbers>

#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.FEp127;
    case DType::kFloat32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

DType result_type(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  std::vector<Type> types;
  for (const TensorArg* arg : {&a, &b})
    types.push_back({.dtype = arg->dtype(), .shape = arg->sizes(), .device = {}, .weak = arg->is_scalar()});
  return promote_operands(types);
}

Tensor deg2rad(const TensorArg& x) { return mul(x, std::numbers::pi / 180); }
Tensor rad2deg(const TensorArg& x) { return mul(x, 180 / std::numbers::pi); }

Tensor frac(const TensorArg& x) {
  UserPosition here(x.where());
  check(is_floating(x.dtype()), "frac: expected a floating tensor, got {}", x.dtype());
  return x - trunc(x);
}

// The exponent from the logarithm, put right where that was rounded; in two steps, so that no power overflows.
std::tuple<Tensor, Tensor> frexp(const TensorArg& x) {
  UserPosition here(x.where());
  check(is_floating(x.dtype()), "frexp: expected a floating tensor, got {}", x.dtype());
  Tensor value = x.tensor(), plain = value.detach();
  Tensor none = (plain == 0) | logical_not(isfinite(plain));
  Tensor wide = where(none, 1, plain.to(kFloat64));
  Tensor exponent = floor(log2(abs(wide))) + 1;
  auto scaled = [](const Tensor& v, const Tensor& e) {
    Tensor half = floor(e / 2);
    return v * exp2(-half) * exp2(half - e);
  };
  Tensor size = abs(scaled(wide, exponent));
  exponent = where(none, 0, exponent + (size >= 1).to(kFloat64) - (size < 0.5).to(kFloat64));
  return {scaled(value.to(kFloat64), exponent).to(x.dtype()), exponent.to(kInt32)};
}

Tensor isneginf(const TensorArg& x) { return eq(x, -kInfinity); }
Tensor isposinf(const TensorArg& x) { return eq(x, kInfinity); }

Tensor logit(const TensorArg& x, std::optional<double> eps) {
  UserPosition here(x.where());
  if (!eps) return log(x / (1 - x.tensor()));
  // Not clamp(): the bounds may cross, and then the lower one is asked first.
  Tensor p = where(x < *eps, *eps, where(x > 1 - *eps, 1 - *eps, x));
  return log(p / (1 - p));
}

Tensor nan_to_num(const TensorArg& x, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  UserPosition here(x.where());
  if (is_complex(x.dtype()))
    return complex(nan_to_num(real(x), nan, posinf, neginf), nan_to_num(imag(x), nan, posinf, neginf));
  if (!is_floating(x.dtype())) return clone(x);
  double largest = largest_of(x.dtype());
  Tensor finite = where(x == kInfinity, posinf.value_or(largest), where(x == -kInfinity, neginf.value_or(-largest), x));
  return where(isnan(x), nan.value_or(0), finite);
}

Tensor positive(const TensorArg& x) {
  UserPosition here(x.where());
  check(x.dtype() != kBool, "positive: not defined for bool");
  return x.tensor();
}

Tensor round(const TensorArg& x, int64_t decimals) {
  UserPosition here(x.where());
  if (decimals == 0) return round(x);
  check(is_floating(x.dtype()), "round: digits of {} are not supported; expected a floating tensor", x.dtype());
  double ten = std::pow(10.0, double(std::abs(decimals)));
  return decimals > 0 ? round(x * ten) / ten : round(x / ten) * ten;
}

Tensor signbit(const TensorArg& x) { return is_floating(x.dtype()) ? lt(copysign(1.0, x), 0) : lt(x, 0); }

Tensor sinc(const TensorArg& x) {
  UserPosition here(x.where());
  Tensor zero = x == 0, angle = where(zero, 1, x) * std::numbers::pi;
  return where(zero, 1.0, sin(angle) / angle);
}

Tensor float_power(const TensorArg& base, const TensorArg& exponent) {
  UserPosition here(base.where());
  auto wide = [](const TensorArg& a) {
    if (!a.is_scalar()) return TensorArg(to(a, is_complex(a.dtype()) ? kComplex128 : kFloat64));
    return a.scalar().is_complex() ? a : TensorArg(a.scalar().to_double());
  };
  return pow(wide(base), wide(exponent));
}
Tensor ldexp(const TensorArg& x, const TensorArg& exponent) {
  UserPosition here(x.where());
  if (exponent.is_scalar() || !is_floating(x.dtype()) || is_floating(exponent.dtype())) return x * pow(2.0, exponent);
  // A whole exponent does not decide the dtype, and its power has the range of x.
  const DType wide = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  return to(x * pow(2.0, to(exponent, wide)), x.dtype());
}

Tensor logaddexp2(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  constexpr double kLn2 = std::numbers::ln2;
  return logaddexp(a * kLn2, b * kLn2) / kLn2;
}

Tensor heaviside(const TensorArg& x, const TensorArg& values) {
  UserPosition here(x.where());
  check(x.dtype() == values.dtype(), "heaviside: dtypes {} and {} differ", x.dtype(), values.dtype());
  return where(x == 0, values.tensor().detach(), (x > 0).to(x.dtype()));
}

// Few are compared with each element, many are sorted and searched.
Tensor isin(const TensorArg& elements, const TensorArg& test_elements, bool, bool invert) {
  UserPosition here(elements.where());
  check(!elements.is_scalar() || !test_elements.is_scalar(), "isin: one of the two must be a tensor");
  auto as_tensor = [](const TensorArg& a, const TensorArg& like) {
    return a.is_scalar() ? full({}, a,
                                TensorOptions(a.scalar().is_floating() ? get_default_dtype() : a.scalar().dtype())
                                    .device(like.tensor().device()))
                         : a.tensor().detach();
  };
  Tensor x = as_tensor(elements, test_elements), tests = as_tensor(test_elements, elements).flatten();
  constexpr int64_t kFew = 16;
  Tensor found;
  if (Dim count = tests.numel(); count.is_number() && count.number() <= kFew) {
    found = any(x.unsqueeze(-1) == tests, {-1});
  } else {
    DType dtype = promote_types(x.dtype(), tests.dtype());
    x = x.to(dtype);
    tests = std::get<0>(sort(tests.to(dtype)));
    Tensor at = minimum(searchsorted(tests, x), tests.numel() - 1);
    found = take(tests, at) == x;
  }
  return invert ? logical_not(found) : found;
}

}  // namespace sinter
