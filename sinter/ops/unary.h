#pragma once
// Functions of one tensor, element by element. Those of real functions give f32 on integers.
#include "sinter/tensor/tensor.h"

namespace sinter {

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

}  // namespace sinter
