#pragma once
// Functions that are computed element by element. Functions of a tensor are methods of Tensor, too (tools/make_methods.cpp).
#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// --- of one tensor. Those of real functions give f32 on integers

// |x|.
Tensor abs(const TensorArg& x);  // in place too
// Inverse cosine; NaN outside [-1, 1].
Tensor acos(const TensorArg& x);  // in place too
// Inverse hyperbolic cosine; NaN below 1.
Tensor acosh(const TensorArg& x);  // in place too
// Inverse sine; NaN outside [-1, 1].
Tensor asin(const TensorArg& x);  // in place too
// Inverse hyperbolic sine.
Tensor asinh(const TensorArg& x);  // in place too
// Inverse tangent.
Tensor atan(const TensorArg& x);  // in place too
// Inverse hyperbolic tangent.
Tensor atanh(const TensorArg& x);  // in place too
// ~x on integers, "not" on bool.
Tensor bitwise_not(const TensorArg& x);  // in place too
// Smallest integer not below x.
Tensor ceil(const TensorArg& x);  // in place too
// A copy in fresh memory, laid out as x by default.
Tensor clone(const TensorArg& x, MemoryFormat format = MemoryFormat::kPreserve);
// Cosine of radians.
Tensor cos(const TensorArg& x);  // in place too
// Hyperbolic cosine.
Tensor cosh(const TensorArg& x);  // in place too
// The error function.
Tensor erf(const TensorArg& x);  // in place too
// 1 - erf(x), accurate for large x.
Tensor erfc(const TensorArg& x);  // in place too
// The inverse of the error function; NaN outside [-1, 1].
Tensor erfinv(const TensorArg& x);  // in place too
// e to the x.
Tensor exp(const TensorArg& x);  // in place too
// 2 to the x.
Tensor exp2(const TensorArg& x);  // in place too
// The derivative of lgamma.
Tensor digamma(const TensorArg& x);  // in place too
// Degrees as radians, and back.
Tensor deg2rad(const TensorArg& x);  // in place too
Tensor rad2deg(const TensorArg& x);  // in place too
// exp(x) - 1, accurate near 0.
Tensor expm1(const TensorArg& x);  // in place too
// Largest integer not above x.
Tensor floor(const TensorArg& x);  // in place too
// x - trunc(x).
Tensor frac(const TensorArg& x);  // in place too
// (m, e) with x = m * 2^e and 0.5 <= |m| < 1; e is i32.
std::tuple<Tensor, Tensor> frexp(const TensorArg& x);
// The modified Bessel function of the first kind and order 0; others are in ops/special.h.
Tensor i0(const TensorArg& x);  // in place too
// Whether x is neither infinite nor NaN.
Tensor isfinite(const TensorArg& x);
// Whether x is plus or minus infinity.
Tensor isinf(const TensorArg& x);
// Whether x is NaN.
Tensor isnan(const TensorArg& x);
// Whether x is minus, or plus, infinity.
Tensor isneginf(const TensorArg& x);
Tensor isposinf(const TensorArg& x);
// Whether the imaginary part is 0, as it is of every real number.
Tensor isreal(const TensorArg& x);
// The logarithm of |gamma(x)|.
Tensor lgamma(const TensorArg& x);  // in place too
// Natural logarithm.
Tensor log(const TensorArg& x);  // in place too
// Logarithm to base 10.
Tensor log10(const TensorArg& x);  // in place too
// log(1 + x), accurate near 0.
Tensor log1p(const TensorArg& x);  // in place too
// Logarithm to base 2.
Tensor log2(const TensorArg& x);  // in place too
// Whether x is zero.
Tensor logical_not(const TensorArg& x);  // in place too
// log(x / (1 - x)), with x first held between eps and 1 - eps where that is given.
Tensor logit(const TensorArg& x, std::optional<double> eps = {});  // in place too
// The logarithm of the gamma function of p dimensions.
Tensor mvlgamma(const TensorArg& x, int64_t p);
// NaN and the infinities replaced by numbers; without them, 0 and the limits of the dtype.
Tensor nan_to_num(const TensorArg& x, std::optional<double> nan = {}, std::optional<double> posinf = {},
                  std::optional<double> neginf = {});  // in place too
// -x.
Tensor neg(const TensorArg& x);  // in place too
// Derivative n of digamma.
Tensor polygamma(int64_t n, const TensorArg& x);
// 1 / x.
Tensor reciprocal(const TensorArg& x);  // in place too
// x itself; not for bool.
Tensor positive(const TensorArg& x);
// Nearest integer, halves to even; with digits behind the point, or, negative, before it.
Tensor round(const TensorArg& x);  // in place too
Tensor round(const TensorArg& x, int64_t decimals);
// 1 / sqrt(x).
Tensor rsqrt(const TensorArg& x);  // in place too
// 1 / (1 + exp(-x)).
Tensor sigmoid(const TensorArg& x);  // in place too
// -1, 0 or 1.
Tensor sign(const TensorArg& x);  // in place too
inline Tensor sgn(const TensorArg& x) { return sign(x); }  // in place too
// Whether the sign is minus, also that of a zero.
Tensor signbit(const TensorArg& x);
// sin(pi x) / (pi x), 1 at 0.
Tensor sinc(const TensorArg& x);  // in place too
// Sine of radians.
Tensor sin(const TensorArg& x);  // in place too
// Hyperbolic sine.
Tensor sinh(const TensorArg& x);  // in place too
// Square root; NaN below 0.
Tensor sqrt(const TensorArg& x);  // in place too
// x * x.
Tensor square(const TensorArg& x);  // in place too
// Tangent of radians.
Tensor tan(const TensorArg& x);  // in place too
// Hyperbolic tangent.
Tensor tanh(const TensorArg& x);  // in place too
// x converted to another dtype; the tensor itself when it has it already.
Tensor to(const TensorArg& x, DType dtype);
// The integer toward zero.
Tensor trunc(const TensorArg& x);  // in place too

// --- of several operands, broadcast and promoted as PyTorch's. An operand may be a number

// The dtype in which add() and its like compute with these.
DType result_type(const TensorArg& a, const TensorArg& b);  // no method

// --- arithmetic
// a + alpha * b.
Tensor add(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1);  // in place too
// a - alpha * b.
Tensor sub(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1);  // in place too
// a * b.
Tensor mul(const TensorArg& a, const TensorArg& b);  // in place too
// a / b; integers divide to f32.
Tensor div(const TensorArg& a, const TensorArg& b);  // in place too
// The quotient rounded "floor" or "trunc", in the promoted dtype.
Tensor div(const TensorArg& a, const TensorArg& b, std::string_view rounding_mode);  // in place too
// The quotient rounded toward minus infinity.
Tensor floor_divide(const TensorArg& a, const TensorArg& b);  // in place too
// The quotient rounded toward zero.
Tensor trunc_divide(const TensorArg& a, const TensorArg& b);
// The remainder with the sign of the dividend.
Tensor fmod(const TensorArg& a, const TensorArg& b);  // in place too
// The remainder with the sign of the divisor.
Tensor remainder(const TensorArg& a, const TensorArg& b);  // in place too
// base to the exponent.
Tensor pow(const TensorArg& base, const TensorArg& exponent);  // in place too
// The same in f64.
Tensor float_power(const TensorArg& base, const TensorArg& exponent);  // in place too
// x * 2^exponent.
Tensor ldexp(const TensorArg& x, const TensorArg& exponent);  // in place too
// The angle of the point (x, y), in (-pi, pi].
Tensor atan2(const TensorArg& y, const TensorArg& x);  // in place too
// sqrt(a² + b²) without overflow.
Tensor hypot(const TensorArg& a, const TensorArg& b);  // in place too
// The magnitude of a with the sign of b.
Tensor copysign(const TensorArg& a, const TensorArg& b);  // in place too
// The number next to a on the way to b, of f64, f32 or bf16. What would be denormal in f32 is the smallest normal number, or 0.
Tensor nextafter(const TensorArg& a, const TensorArg& b);  // in place too
// log(exp(a) + exp(b)) without overflow, and the same to base 2.
Tensor logaddexp(const TensorArg& a, const TensorArg& b);
Tensor logaddexp2(const TensorArg& a, const TensorArg& b);
// 0 below zero, 1 above it, `values` at it.
Tensor heaviside(const TensorArg& x, const TensorArg& values);  // in place too
// x * log(y), 0 where x is 0.
Tensor xlogy(const TensorArg& x, const TensorArg& y);  // in place too
// The share of the gamma distribution of shape a that lies below x, and above it.
Tensor gammainc(const TensorArg& a, const TensorArg& x);  // no method
Tensor gammaincc(const TensorArg& a, const TensorArg& x);  // no method
// start + weight * (end - start).
Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight);  // in place too
// x + value * a * b.
Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value = 1);  // in place too
// x + value * a / b.
Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, const Scalar& value = 1);  // in place too

// --- order
// max(x, min). At the bound the gradient is 0, or, where the bound is a tensor, half of it each.
Tensor clamp_min(const TensorArg& x, const TensorArg& min);  // in place too
// min(x, max), likewise.
Tensor clamp_max(const TensorArg& x, const TensorArg& max);  // in place too
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
// The same where a bound is a size: clamp(x, 0, y.size(0) - 1).
template <class A, class B>
  requires(std::same_as<A, Dim> || std::same_as<B, Dim>)
Tensor clamp(const TensorArg& x, const A& min, const B& max) {
  return clamp_max({clamp_min(x, min), x.where()}, max);
}

// --- complex numbers
// real + i * imag, of two tensors of f32 or of f64.
Tensor complex(const TensorArg& real, const TensorArg& imag);
// abs * exp(i * angle), of two tensors of f32 or of f64.
Tensor polar(const TensorArg& abs, const TensorArg& angle);
// The number with the other sign of the imaginary part; a real tensor itself. Both give memory of their own for a complex one.
Tensor conj(const TensorArg& x);
Tensor conj_physical(const TensorArg& x);
// The tensor itself: no tensor is marked as a conjugate or a negative to be computed later.
Tensor resolve_conj(const TensorArg& x);
Tensor resolve_neg(const TensorArg& x);
// The angle in (-pi, pi] of a complex number; of a real one 0 or pi.
Tensor angle(const TensorArg& x);

// --- comparison: bool tensors
// a == b.
Tensor eq(const TensorArg& a, const TensorArg& b);  // in place too
// a != b.
Tensor ne(const TensorArg& a, const TensorArg& b);  // in place too
// a < b.
Tensor lt(const TensorArg& a, const TensorArg& b);  // in place too
// a <= b.
Tensor le(const TensorArg& a, const TensorArg& b);  // in place too
// a > b.
Tensor gt(const TensorArg& a, const TensorArg& b);  // in place too
// a >= b.
Tensor ge(const TensorArg& a, const TensorArg& b);  // in place too
// Whether each element is among the test elements, or, inverted, is not.
Tensor isin(const TensorArg& elements, const TensorArg& test_elements, bool assume_unique = false, bool invert = false);
// |a - b| <= atol + rtol * |b|.
Tensor isclose(const TensorArg& a, const TensorArg& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Whether all elements are close, or equal in shapes that are the same; reads the answer on the host.
bool allclose(const TensorArg& a, const TensorArg& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
bool equal(const TensorArg& a, const TensorArg& b);

// --- logic and bits
// Both are not zero.
Tensor logical_and(const TensorArg& a, const TensorArg& b);  // in place too
// One is not zero.
Tensor logical_or(const TensorArg& a, const TensorArg& b);  // in place too
// Exactly one is not zero.
Tensor logical_xor(const TensorArg& a, const TensorArg& b);  // in place too
// a & b of integers or bool.
Tensor bitwise_and(const TensorArg& a, const TensorArg& b);  // in place too
// a | b of integers or bool.
Tensor bitwise_or(const TensorArg& a, const TensorArg& b);  // in place too
// a ^ b of integers or bool.
Tensor bitwise_xor(const TensorArg& a, const TensorArg& b);  // in place too
// The largest common divisor of integers, not negative; and the smallest common multiple.
Tensor gcd(const TensorArg& a, const TensorArg& b);  // in place too
Tensor lcm(const TensorArg& a, const TensorArg& b);  // in place too
// a << b of integers.
Tensor bitwise_left_shift(const TensorArg& a, const TensorArg& b);  // in place too
// a >> b of integers, keeping the sign.
Tensor bitwise_right_shift(const TensorArg& a, const TensorArg& b);  // in place too

// --- choice
// a where the condition holds, b elsewhere.
Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b);  // no method
// The positions where it holds, one tensor per dimension.
TensorList where(const TensorArg& condition);  // no method
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
// logical_and, logical_or, logical_not. At least one operand is a tensor: numbers and sizes keep C++'s own operators.
Tensor operator&&(const TruthArg& a, const TruthArg& b);
Tensor operator||(const TruthArg& a, const TruthArg& b);
Tensor operator!(const TruthArg& a);
template <class T>
  requires(std::is_arithmetic_v<T>)
Tensor operator&&(const TruthArg& a, T b) { return logical_and(a.arg, b); }
template <class T>
  requires(std::is_arithmetic_v<T>)
Tensor operator&&(T a, const TruthArg& b) { return logical_and({a, b.arg.where()}, b.arg); }
template <class T>
  requires(std::is_arithmetic_v<T>)
Tensor operator||(const TruthArg& a, T b) { return logical_or(a.arg, b); }
template <class T>
  requires(std::is_arithmetic_v<T>)
Tensor operator||(T a, const TruthArg& b) { return logical_or({a, b.arg.where()}, b.arg); }

// --- other names of the same
inline Tensor absolute(const TensorArg& x) { return abs(x); }  // in place too
inline Tensor negative(const TensorArg& x) { return neg(x); }  // in place too
inline Tensor fix(const TensorArg& x) { return trunc(x); }  // in place too
inline Tensor arccos(const TensorArg& x) { return acos(x); }  // in place too
inline Tensor arccosh(const TensorArg& x) { return acosh(x); }  // in place too
inline Tensor arcsin(const TensorArg& x) { return asin(x); }  // in place too
inline Tensor arcsinh(const TensorArg& x) { return asinh(x); }  // in place too
inline Tensor arctan(const TensorArg& x) { return atan(x); }  // in place too
inline Tensor arctanh(const TensorArg& x) { return atanh(x); }  // in place too
inline Tensor subtract(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1) {
  return sub(a, b, alpha);
}  // in place too
inline Tensor rsub(const TensorArg& a, const TensorArg& b, const Scalar& alpha = 1) { return sub(b, a, alpha); }
inline Tensor multiply(const TensorArg& a, const TensorArg& b) { return mul(a, b); }  // in place too
inline Tensor divide(const TensorArg& a, const TensorArg& b) { return div(a, b); }  // in place too
inline Tensor true_divide(const TensorArg& a, const TensorArg& b) { return div(a, b); }  // in place too
inline Tensor greater(const TensorArg& a, const TensorArg& b) { return gt(a, b); }  // in place too
inline Tensor greater_equal(const TensorArg& a, const TensorArg& b) { return ge(a, b); }  // in place too
inline Tensor less(const TensorArg& a, const TensorArg& b) { return lt(a, b); }  // in place too
inline Tensor less_equal(const TensorArg& a, const TensorArg& b) { return le(a, b); }  // in place too
inline Tensor not_equal(const TensorArg& a, const TensorArg& b) { return ne(a, b); }  // in place too
inline Tensor arctan2(const TensorArg& a, const TensorArg& b) { return atan2(a, b); }  // in place too
inline Tensor divide(const TensorArg& a, const TensorArg& b, std::string_view rounding_mode) {
  return div(a, b, rounding_mode);
}  // in place too
inline Tensor clip(const TensorArg& x, const std::optional<Scalar>& min, const std::optional<Scalar>& max = {}) {
  return clamp(x, min, max);
}  // in place too
inline Tensor clip(const TensorArg& x, const Tensor& min, const Tensor& max = {}) {
  return clamp(x, min, max);
}  // in place too
inline Tensor igamma(const TensorArg& a, const TensorArg& x) { return gammainc(a, x); }
inline Tensor igammac(const TensorArg& a, const TensorArg& x) { return gammaincc(a, x); }


// --- activation functions

// max(x, 0).
Tensor relu(const TensorArg& x);  // in place too
// x held between 0 and 6.
Tensor relu6(const TensorArg& x);  // in place too
// x Φ(x) with Φ the normal distribution function; approximate = "tanh" for the usual approximation.
Tensor gelu(const TensorArg& x, std::string_view approximate = "none");  // in place too
// x * sigmoid(x).
Tensor silu(const TensorArg& x);  // in place too
// x * tanh(softplus(x)).
Tensor mish(const TensorArg& x);  // in place too
// x held between the two bounds.
Tensor hardtanh(const TensorArg& x, const Scalar& min_val = -1, const Scalar& max_val = 1);  // in place too
// x * relu6(x + 3) / 6.
Tensor hardswish(const TensorArg& x);  // in place too
// relu6(x + 3) / 6.
Tensor hardsigmoid(const TensorArg& x);  // in place too
// x, or slope * x below zero.
Tensor leaky_relu(const TensorArg& x, const Scalar& negative_slope = 0.01);  // in place too
// x, or alpha * (exp(x) - 1) below zero.
Tensor elu(const TensorArg& x, const Scalar& alpha = 1.0);  // in place too
// elu with the fixed scale and alpha that keep mean and variance.
Tensor selu(const TensorArg& x);  // in place too
// x, or alpha * (exp(x / alpha) - 1) below zero.
Tensor celu(const TensorArg& x, const Scalar& alpha = 1.0);  // in place too
// log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold.
Tensor softplus(const TensorArg& x, const Scalar& beta = 1.0, const Scalar& threshold = 20.0);
// log(sigmoid(x)).
Tensor logsigmoid(const TensorArg& x);
inline Tensor log_sigmoid(const TensorArg& x) { return logsigmoid(x); }  // no method
// x / (1 + |x|).
Tensor softsign(const TensorArg& x);
// x where it exceeds the threshold, `value` elsewhere.
Tensor threshold(const TensorArg& x, const Scalar& threshold, const Scalar& value);  // in place too
// The first half of a dimension times the sigmoid of its second half.
Tensor glu(const TensorArg& x, int64_t dim = -1);
// x, or 0 within lambd of zero.
Tensor hardshrink(const TensorArg& x, const Scalar& lambd = 0.5);
// x moved towards zero by lambd, and 0 within it.
Tensor softshrink(const TensorArg& x, const Scalar& lambd = 0.5);
// x - tanh(x).
Tensor tanhshrink(const TensorArg& x);
// x, or weight * x below zero; one weight, or one for each channel (dimension 1).
Tensor prelu(const TensorArg& x, const TensorArg& weight);
// x, or below zero a slope times x: drawn from [lower, upper) for each element when training, else their mean.
Tensor rrelu(const TensorArg& x, const Scalar& lower = 1.0 / 8, const Scalar& upper = 1.0 / 3,
             bool training = false);  // in place too
// softmax(-x).
Tensor softmin(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});
// A draw from the categories of logits along dim, as probabilities that become one-hot as tau goes to 0. With `hard` it is
// one-hot, with the gradient of the soft one.
Tensor gumbel_softmax(const TensorArg& logits, double tau = 1, bool hard = false, int64_t dim = -1);

}  // namespace sinter
