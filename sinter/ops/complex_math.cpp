#include "sinter/ops/complex_math.h"

#include <cmath>
#include <numbers>

#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"

namespace sinter::complex_math {

// Beside the functions of the same names for parts: those of real tensors.
using sinter::asinh, sinter::cos, sinter::cosh, sinter::exp, sinter::expm1, sinter::log, sinter::log1p, sinter::reciprocal,
    sinter::sin, sinter::sinh, sinter::sqrt, sinter::square;

namespace {

// The magnitude whose slope at 0 is 1: formulas that are split at 0 take that side's.
Tensor magnitude(const TensorArg& x, const Tensor& negative) { return where(negative, -x, x); }
Tensor with_sign(const Tensor& x, const Tensor& negative) { return where(negative, -x, x); }

// i z, and -i z.
Parts turned(const Parts& z) { return {-z.im, z.re}; }
Parts turned_back(const Parts& z) { return {z.im, -z.re}; }

// log |z|. Near 1 the logarithm of the rounded size would have no digits.
Tensor log_modulus(const TensorArg& a, const TensorArg& b) {
  Tensor x = abs(a), y = abs(b);
  Tensor large = maximum(x, y), small = minimum(x, y);
  Tensor near = (large > 0.5) & (large < 2);
  Tensor m = where(near, large, 1), n = where(near, small, 0);
  Tensor close = log1p((m - 1) * (m + 1) + n * n) * 0.5;
  return where(near, close, log(modulus(where(near, 2, a), where(near, 0, b))));
}

Parts polar_of(const Tensor& size, const Tensor& angle) { return {size * cos(angle), size * sin(angle)}; }

}  // namespace

Parts scaled(const Parts& z, const TensorArg& factor) { return {z.re * factor, z.im * factor}; }
Parts sum(const Parts& x, const Parts& y) { return {x.re + y.re, x.im + y.im}; }
Parts difference(const Parts& x, const Parts& y) { return {x.re - y.re, x.im - y.im}; }
Parts conjugate(const Parts& z) { return {z.re, -z.im}; }

Parts product(const Parts& x, const Parts& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// By the ratio of the divisor's smaller part to its larger one (Smith), so that no square overflows.
Parts quotient(const Parts& x, const Parts& y) {
  Tensor first = abs(y.re) >= abs(y.im);
  Tensor large = where(first, y.re, y.im), small = where(first, y.im, y.re), zero = large == 0;
  // Two numbers have no dtype of their own.
  auto as_tensor = [&](const TensorArg& part) { return part.is_scalar() ? full({}, part, large.options()) : part.tensor(); };
  Tensor re = as_tensor(x.re), im = as_tensor(x.im);
  Tensor ratio = small / where(zero, 1, large), size = where(zero, large, large + small * ratio);
  Tensor near = where(first, re, im), far = where(first, im, re);
  return {(near + far * ratio) / size, with_sign(far - near * ratio, logical_not(first)) / size};
}

Parts reciprocal(const Parts& z) { return quotient({1.0, 0.0}, z); }

Parts square(const Parts& z) { return {z.re * z.re - z.im * z.im, z.re * z.im * 2}; }

// Halves, so that the size of a large number does not overflow.
Parts sqrt(const Parts& z) {
  Tensor left = z.re < 0, zero = (z.re == 0) & (z.im == 0), endless = isinf(z.im);
  Tensor half = where(zero, 1, magnitude(z.re, left) * 0.5 + modulus(z.re * 0.5, z.im * 0.5));
  Tensor root = sqrt(half), other = z.im / (root * 2);
  Tensor re = where(left, abs(other), root), im = where(left, copysign(root, z.im), other);
  return {where(zero, 0, where(endless, abs(z.im), re)), where(zero | endless, z.im, im)};
}
Parts rsqrt(const Parts& z) { return reciprocal(sqrt(z)); }

// In two steps, since exp(re) may overflow where the product with the cosine does not.
Parts exp(const Parts& z) {
  Tensor half = exp(z.re * 0.5);
  return {half * cos(z.im) * half, where(z.im == 0, z.im, half * sin(z.im) * half)};
}
Parts exp2(const Parts& z) { return exp(scaled(z, std::numbers::ln2)); }
Parts expm1(const Parts& z) {
  Tensor half = sin(z.im * 0.5);
  return {expm1(z.re) * cos(z.im) - half * half * 2, exp(z).im};
}

Parts log(const Parts& z) { return {log_modulus(z.re, z.im), atan2(z.im, z.re)}; }
Parts log2(const Parts& z) { return scaled(log(z), 1 / std::numbers::ln2); }
Parts log10(const Parts& z) { return scaled(log(z), 1 / std::numbers::ln10); }
Parts log1p(const Parts& z) {
  Tensor small = (abs(z.re) < 0.5) & (abs(z.im) < 0.5), above = z.re + 1;
  Tensor a = where(small, z.re, 0), b = where(small, z.im, 0);
  Tensor close = log1p(a * (a + 2) + b * b) * 0.5;
  return {where(small, close, log_modulus(where(small, 2, above), where(small, 0, z.im))), atan2(z.im, above)};
}

Parts power(const Parts& z, double exponent) {
  if (exponent == 2) return square(z);
  if (exponent == 3) return product(square(z), z);
  if (exponent == 0.5) return sqrt(z);
  if (exponent == -0.5) return rsqrt(z);
  if (exponent == -1) return reciprocal(z);
  if (exponent == -2) return reciprocal(square(z));
  return polar_of(pow(modulus(z.re, z.im), exponent), atan2(z.im, z.re) * exponent);
}

// exp(exponent * log z). 0 to a power is 0, but to the power of 0 it is 1.
Parts power(const Parts& z, const Parts& exponent) {
  Tensor zero = (z.re == 0) & (z.im == 0);
  Tensor none = where(zero, exponent.re, 1) == 0;
  if (!exponent.im.is_scalar()) none = none & (exponent.im == 0);
  Parts out = exp(product(exponent, log({where(zero, 1, z.re), where(zero, 0, z.im)})));
  return {where(zero, where(none, 1, 0), out.re), where(zero, 0, out.im)};
}

Parts sin(const Parts& z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}
Parts cos(const Parts& z) {
  return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))};
}
Parts sinh(const Parts& z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}
Parts cosh(const Parts& z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}

// By u = exp(-2 |re|), which does not overflow: |cosh z|² is (1 - u)² + 4 u cos² im, but for a factor.
Parts tanh(const Parts& z) {
  Tensor left = z.re < 0, twice = magnitude(z.re, left) * -2.0, u = exp(twice), below = expm1(twice);
  Tensor c = cos(z.im), size = below * below + u * c * c * 4;
  return {with_sign(-below * (u + 1) / size, left), u * c * sin(z.im) * 4 / size};
}
Parts tan(const Parts& z) { return turned_back(tanh(turned(z))); }

// Kahan's formulas: two square roots with cuts of their own, so that no digits cancel near 1 and -1.
Parts asin(const Parts& z) {
  const Parts below = sqrt({-z.re + 1, -z.im}), above = sqrt({z.re + 1, z.im});
  return {atan2(z.re, product(below, above).re), asinh(product(conjugate(below), above).im)};
}
Parts acos(const Parts& z) {
  const Parts below = sqrt({-z.re + 1, -z.im}), above = sqrt({z.re + 1, z.im});
  return {atan2(below.re, above.re) * 2, asinh(product(conjugate(above), below).im)};
}
Parts acosh(const Parts& z) {
  const Parts below = sqrt({z.re - 1, z.im}), above = sqrt({z.re + 1, z.im});
  return {asinh(product(conjugate(below), above).re), atan2(below.im, above.re) * 2};
}
Parts atanh(const Parts& z) {
  Tensor gap = -z.re + 1, size = gap * gap + z.im * z.im;
  return {log1p(z.re * 4 / size) * 0.25, atan2(z.im * 2, gap * (z.re + 1) - z.im * z.im) * 0.5};
}
Parts asinh(const Parts& z) { return turned_back(asin(turned(z))); }
Parts atan(const Parts& z) { return turned_back(atanh(turned(z))); }

// By u = exp(-|re|): w / (1 + w) of w = exp(z) on the left, 1 / (1 + w) of w = exp(-z) on the right.
Parts sigmoid(const Parts& z) {
  Tensor left = z.re < 0, u = exp(-magnitude(z.re, left));
  Tensor c = u * cos(z.im), s = u * sin(z.im), size = square(c + 1) + s * s;
  return {where(left, c + u * u, c + 1) / size, s / size};
}

Parts sign(const Parts& z) {
  Tensor size = modulus(z.re, z.im), zero = size == 0, safe = where(zero, 1, size);
  return {where(zero, 0, z.re / safe), where(zero, 0, z.im / safe)};
}

TensorList of_products(const ComplexCall& c) {
  auto product = [&](const TensorArg& a, const TensorArg& b) {
    const TensorArg operands[] = {a, b};
    return call_op(c.op, operands, c.attrs, c[0].where());
  };
  if (c.is_complex(0) && c.is_complex(1)) {
    const Parts x = c.parts(0), y = c.parts(1);
    return {joined(product(x.re, y.re) - product(x.im, y.im), product(x.re, y.im) + product(x.im, y.re))};
  }
  const bool first = c.is_complex(0);
  const Parts z = c.parts(first ? 0 : 1);
  const TensorArg r = c.real(first ? 1 : 0);
  if (first) return {joined(product(z.re, r), product(z.im, r))};
  return {joined(product(r, z.re), product(r, z.im))};
}

Tensor truth(const Parts& z) { return (z.re != 0) | (z.im != 0); }

}  // namespace sinter::complex_math
