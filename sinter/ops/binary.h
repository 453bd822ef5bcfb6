#pragma once
// Functions of several operands, element by element, broadcast and promoted as PyTorch's. An operand may be a number.
#include <optional>
#include <string_view>

#include "sinter/tensor/tensor.h"

namespace sinter {

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

}  // namespace sinter
