#pragma once
// Matrix products, and what is made of them. Operands of one product have one dtype; half types accumulate in f32 and round
// once.
#include <optional>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

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
             const Scalar& alpha = 1);  // in place too
// beta * input + alpha * (a @ b), batched.
Tensor baddbmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta = 1,
               const Scalar& alpha = 1);  // in place too
// beta * input + alpha * (a @ vector).
Tensor addmv(const TensorArg& input, const TensorArg& a, const TensorArg& vector, const Scalar& beta = 1,
             const Scalar& alpha = 1);  // in place too
// x @ weight^T + bias, with weight [out, in] (or [in]) and bias [out].
Tensor linear(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {});  // no method
// Sum over the paired dimensions of a and b: the result has the rest of a's, then the rest of b's.
Tensor tensordot(const TensorArg& a, const TensorArg& b, const IntList& dims_a, const IntList& dims_b);

// einsum("bij,bjk->bik", {a, b}). Letters name dimensions: those missing on the right are summed over; "..." stands for
// dimensions that broadcast; a letter twice in one operand takes its diagonal. Without "->" the result has the
// dimensions of "..." and the letters that occur once, in alphabetical order. Operands are contracted from left to right.
Tensor einsum(std::string_view equation, const TensorList& operands, Where where = Where::current());

// softmax(query key^T * scale + mask) value over the last two dimensions: query [..., l, e], key [..., s, e], value
// [..., s, v]. Scores and softmax are computed in f32. A bool mask says which positions may be seen, a floating one is
// added; either broadcasts to [..., l, s]. is_causal lets position i see 0 to i. scale is 1 / sqrt(e) by default. With
// enable_gqa, dimension -3 of query may be a multiple of that of key and value: head h uses theirs at h / multiple. A row
// that may see nothing gives zeros, as PyTorch does since 2.5.
Tensor scaled_dot_product_attention(const TensorArg& query, const TensorArg& key, const TensorArg& value,
                                    const Tensor& attn_mask = {}, double dropout_p = 0, bool is_causal = false,
                                    std::optional<double> scale = {}, bool enable_gqa = false);  // no method

}  // namespace sinter
