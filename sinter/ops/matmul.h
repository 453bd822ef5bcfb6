#pragma once
// Matrix products. Operands of one product have one dtype; half types accumulate in f32 and round once.
#include "sinter/tensor/tensor.h"

namespace sinter {

// [n, k] x [k, m] → [n, m].
Tensor mm(const TensorArg& a, const TensorArg& b);
// [b, n, k] x [b, k, m] → [b, n, m].
Tensor bmm(const TensorArg& a, const TensorArg& b);
// Inner product of two vectors, 0-d.
Tensor dot(const TensorArg& a, const TensorArg& b);
// [n, k] x [k] → [n].
Tensor mv(const TensorArg& a, const TensorArg& vector);
// [n] x [m] → [n, m].
Tensor outer(const TensorArg& a, const TensorArg& b);
// Product of any ranks with broadcast batch dimensions, as PyTorch's matmul.
Tensor matmul(const TensorArg& a, const TensorArg& b);
// beta * input + alpha * (a @ b). With beta 0 the input is not read.
Tensor addmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta = 1,
             const Scalar& alpha = 1);
// beta * input + alpha * (a @ b), batched.
Tensor baddbmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta = 1,
               const Scalar& alpha = 1);
// beta * input + alpha * (a @ vector).
Tensor addmv(const TensorArg& input, const TensorArg& a, const TensorArg& vector, const Scalar& beta = 1,
             const Scalar& alpha = 1);
// x @ weight^T + bias, with weight [out, in] (or [in]) and bias [out].
Tensor linear(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {});
// Sum over the paired dimensions of a and b: the result has the rest of a's, then the rest of b's.
Tensor tensordot(const TensorArg& a, const TensorArg& b, const IntList& dims_a, const IntList& dims_b);

}  // namespace sinter
