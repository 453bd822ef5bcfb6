#pragma once
// Functions that are computed element by element.
#include <optional>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// --- of one tensor. Those of real functions give f32 on integers

// |x|.
Tensor abs(const TensorArg& x);
// Inverse cosine; NaN outside [-1, 1].
Tensor acos(const TensorArg& x);
// Inverse hyperbolic cosine; NaN below 1.
Tensor acosh(const TensorArg& x);
// Inverse sine; NaN outside [-1, 1].
Tensor asin(const TensorArg& x);
// Inverse hyperbolic sine.
Tensor asinh(const TensorArg& x);
// Inverse tangent.
Tensor atan(const TensorArg& x);
// Inverse hyperbolic tangent.
Tensor atanh(const TensorArg& x);
// ~x on integers, "not" on bool.
Tensor bitwise_not(const TensorArg& x);
// Smallest integer not below x.
Tensor ceil(const TensorArg& x);
// A copy in fresh memory.
Tensor clone(const TensorArg& x);
// Cosine of radians.
Tensor cos(const TensorArg& x);
// Hyperbolic cosine.
Tensor cosh(const TensorArg& x);
// The error function.
Tensor erf(const TensorArg& x);
// 1 - erf(x), accurate for large x.
Tensor erfc(const TensorArg& x);
// e to the x.
Tensor exp(const TensorArg& x);
// 2 to the x.
Tensor exp2(const TensorArg& x);
// exp(x) - 1, accurate near 0.
Tensor expm1(const TensorArg& x);
// Largest integer not above x.
Tensor floor(const TensorArg& x);
// Whether x is neither infinite nor NaN.
Tensor isfinite(const TensorArg& x);
// Whether x is plus or minus infinity.
Tensor isinf(const TensorArg& x);
// Whether x is NaN.
Tensor isnan(const TensorArg& x);
// Natural logarithm.
Tensor log(const TensorArg& x);
// Logarithm to base 10.
Tensor log10(const TensorArg& x);
// log(1 + x), accurate near 0.
Tensor log1p(const TensorArg& x);
// Logarithm to base 2.
Tensor log2(const TensorArg& x);
// Whether x is zero.
Tensor logical_not(const TensorArg& x);
// -x.
Tensor neg(const TensorArg& x);
// 1 / x.
Tensor reciprocal(const TensorArg& x);
// Nearest integer, halves to even.
Tensor round(const TensorArg& x);
// 1 / sqrt(x).
Tensor rsqrt(const TensorArg& x);
// 1 / (1 + exp(-x)).
Tensor sigmoid(const TensorArg& x);
// -1, 0 or 1.
Tensor sign(const TensorArg& x);
// Sine of radians.
Tensor sin(const TensorArg& x);
// Hyperbolic sine.
Tensor sinh(const TensorArg& x);
// Square root; NaN below 0.
Tensor sqrt(const TensorArg& x);
// x * x.
Tensor square(const TensorArg& x);
// Tangent of radians.
Tensor tan(const TensorArg& x);
// Hyperbolic tangent.
Tensor tanh(const TensorArg& x);
// x converted to another dtype; the tensor itself when it has it already.
Tensor to(const TensorArg& x, DType dtype);
// The integer toward zero.
Tensor trunc(const TensorArg& x);

// --- of several operands, broadcast and promoted as PyTorch's. An operand may be a number

// --- arithmetic
// a + alpha * b.
Tensor add(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1);
// a - alpha * b.
Tensor sub(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1);
// a * b.
Tensor mul(const TensorArg& a, const TensorArg& b);
// a / b; integers divide to f32.
Tensor div(const TensorArg& a, const TensorArg& b);
// The quotient rounded "floor" or "trunc", in the promoted dtype.
Tensor div(const TensorArg& a, const TensorArg& b, std::string_view rounding_mode);
// The quotient rounded toward minus infinity.
Tensor floor_divide(const TensorArg& a, const TensorArg& b);
// The quotient rounded toward zero.
Tensor trunc_divide(const TensorArg& a, const TensorArg& b);
// The remainder with the sign of the dividend.
Tensor fmod(const TensorArg& a, const TensorArg& b);
// The remainder with the sign of the divisor.
Tensor remainder(const TensorArg& a, const TensorArg& b);
// base to the exponent.
Tensor pow(const TensorArg& base, const TensorArg& exponent);
// The angle of the point (x, y), in (-pi, pi].
Tensor atan2(const TensorArg& y, const TensorArg& x);
// sqrt(a² + b²) without overflow.
Tensor hypot(const TensorArg& a, const TensorArg& b);
// The magnitude of a with the sign of b.
Tensor copysign(const TensorArg& a, const TensorArg& b);
// log(exp(a) + exp(b)) without overflow.
Tensor logaddexp(const TensorArg& a, const TensorArg& b);
// x * log(y), 0 where x is 0.
Tensor xlogy(const TensorArg& x, const TensorArg& y);
// start + weight * (end - start).
Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight);
// x + value * a * b.
Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value = 1);
// x + value * a / b.
Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value = 1);

// --- order
// The larger of the two; NaN if either is.
Tensor maximum(const TensorArg& a, const TensorArg& b);
// The smaller of the two; NaN if either is.
Tensor minimum(const TensorArg& a, const TensorArg& b);
// The larger of the two; a NaN loses to a number.
Tensor fmax(const TensorArg& a, const TensorArg& b);
// The smaller of the two; a NaN loses to a number.
Tensor fmin(const TensorArg& a, const TensorArg& b);
// x held between the bounds; either may be missing.
Tensor clamp(const TensorArg& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max = {});
// The same with tensors as bounds; an undefined one is missing.
Tensor clamp(const TensorArg& x, const Tensor& min, const Tensor& max = {});
// max(x, min), whose gradient at the bound belongs to x.
Tensor clamp_min(const TensorArg& x, const TensorArg& min);
// min(x, max), whose gradient at the bound belongs to x.
Tensor clamp_max(const TensorArg& x, const TensorArg& max);

// --- comparison: bool tensors
// a == b.
Tensor eq(const TensorArg& a, const TensorArg& b);
// a != b.
Tensor ne(const TensorArg& a, const TensorArg& b);
// a < b.
Tensor lt(const TensorArg& a, const TensorArg& b);
// a <= b.
Tensor le(const TensorArg& a, const TensorArg& b);
// a > b.
Tensor gt(const TensorArg& a, const TensorArg& b);
// a >= b.
Tensor ge(const TensorArg& a, const TensorArg& b);
// |a - b| <= atol + rtol * |b|.
Tensor isclose(const TensorArg& a, const TensorArg& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Whether all elements are close, or equal in shapes that are the same; reads the answer on the host.
bool allclose(const TensorArg& a, const TensorArg& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
bool equal(const TensorArg& a, const TensorArg& b);

// --- logic and bits
// Both are not zero.
Tensor logical_and(const TensorArg& a, const TensorArg& b);
// One is not zero.
Tensor logical_or(const TensorArg& a, const TensorArg& b);
// Exactly one is not zero.
Tensor logical_xor(const TensorArg& a, const TensorArg& b);
// a & b of integers or bool.
Tensor bitwise_and(const TensorArg& a, const TensorArg& b);
// a | b of integers or bool.
Tensor bitwise_or(const TensorArg& a, const TensorArg& b);
// a ^ b of integers or bool.
Tensor bitwise_xor(const TensorArg& a, const TensorArg& b);
// a << b of integers.
Tensor bitwise_left_shift(const TensorArg& a, const TensorArg& b);
// a >> b of integers, keeping the sign.
Tensor bitwise_right_shift(const TensorArg& a, const TensorArg& b);

// --- choice
// a where the condition holds, b elsewhere.
Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b);
// x with `value` where the mask holds.
Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value);

Tensor operator+(const TensorArg& a, const TensorArg& b);
Tensor operator-(const TensorArg& a, const TensorArg& b);
Tensor operator*(const TensorArg& a, const TensorArg& b);
Tensor operator/(const TensorArg& a, const TensorArg& b);
// PyTorch's remainder: the sign of the divisor.
Tensor operator%(const TensorArg& a, const TensorArg& b);
Tensor operator-(const TensorArg& a);
Tensor operator<(const TensorArg& a, const TensorArg& b);
Tensor operator<=(const TensorArg& a, const TensorArg& b);
Tensor operator>(const TensorArg& a, const TensorArg& b);
Tensor operator>=(const TensorArg& a, const TensorArg& b);
Tensor operator==(const TensorArg& a, const TensorArg& b);
Tensor operator!=(const TensorArg& a, const TensorArg& b);
Tensor operator&(const TensorArg& a, const TensorArg& b);
Tensor operator|(const TensorArg& a, const TensorArg& b);
Tensor operator^(const TensorArg& a, const TensorArg& b);
Tensor operator~(const TensorArg& a);

// --- activation functions

// max(x, 0).
Tensor relu(const TensorArg& x);
// x held between 0 and 6.
Tensor relu6(const TensorArg& x);
// x Φ(x) with Φ the normal distribution function; approximate = "tanh" for the usual approximation.
Tensor gelu(const TensorArg& x, std::string_view approximate = "none");
// x * sigmoid(x).
Tensor silu(const TensorArg& x);
// x * tanh(softplus(x)).
Tensor mish(const TensorArg& x);
// x held between the two bounds.
Tensor hardtanh(const TensorArg& x, const Scalar& min_val = -1, const Scalar& max_val = 1);
// x * relu6(x + 3) / 6.
Tensor hardswish(const TensorArg& x);
// relu6(x + 3) / 6.
Tensor hardsigmoid(const TensorArg& x);
// x, or slope * x below zero.
Tensor leaky_relu(const TensorArg& x, const Scalar& negative_slope = 0.01);
// x, or alpha * (exp(x) - 1) below zero.
Tensor elu(const TensorArg& x, const Scalar& alpha = 1.0);
// elu with the fixed scale and alpha that keep mean and variance.
Tensor selu(const TensorArg& x);
// x, or alpha * (exp(x / alpha) - 1) below zero.
Tensor celu(const TensorArg& x, const Scalar& alpha = 1.0);
// log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold.
Tensor softplus(const TensorArg& x, const Scalar& beta = 1.0, const Scalar& threshold = 20.0);
// log(sigmoid(x)).
Tensor logsigmoid(const TensorArg& x);
// x / (1 + |x|).
Tensor softsign(const TensorArg& x);
// x where it exceeds the threshold, `value` elsewhere.
Tensor threshold(const TensorArg& x, const Scalar& threshold, const Scalar& value);
// The first half of a dimension times the sigmoid of its second half.
Tensor glu(const TensorArg& x, int64_t dim = -1);

}  // namespace sinter
