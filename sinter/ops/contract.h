#pragma once
// Small helpers shared by the contractions, the pools and the composites around them.
#include <array>

#include "sinter/graph/op.h"
#include "sinter/ops/dims.h"
#include "sinter/tensor/buffer.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// The product of two scalars in the computing type of `dtype`: half types multiply in f32.
Elem multiply(ElementBuilder& b, DType dtype, Elem x, Elem y);

// Of the op `convolution`. The output padding is of Dims: a gradient's depends on the input's size, perhaps symbolic.
struct ConvolutionAttrs {
  IntList stride, padding, dilation;
  bool transposed = false;
  Shape output_padding;
  int64_t groups = 1;
  SINTER_FIELDS(stride, padding, dilation, transposed, output_padding, groups)
};

struct ConvolutionWeightGradAttrs {
  IntList stride, padding, dilation;
  Shape kernel;
  int64_t groups = 1;
  SINTER_FIELDS(stride, padding, dilation, kernel, groups)
};
struct MaxPoolAttrs {
  IntList kernel, stride, padding, dilation;
  bool ceil_mode = false;
  SINTER_FIELDS(kernel, stride, padding, dilation, ceil_mode)
};
// Of the op `max_pool_grad`: `reach` is a window's extent, dilation included; `size` are the pooled sizes of the input.
struct MaxPoolGradAttrs {
  IntList reach, stride, padding;
  Shape size;
  SINTER_FIELDS(reach, stride, padding, size)

  // How many windows hold an element at most, by dimension.
  IntList windows() const {
    IntList out;
    for (size_t d = 0; d < reach.size(); ++d) out.push_back((reach[d] + stride[d] - 1) / stride[d]);
    return out;
  }
};
// Both directions of a sum over windows: `size` are the pooled sizes of the result.
struct WindowSumAttrs {
  IntList kernel, stride, padding;
  Shape size;
  bool transposed = false;
  SINTER_FIELDS(kernel, stride, padding, size, transposed)
};

// Of the op `scaled_dot_product_attention`: query, key, value, perhaps a mask, and with dropout the seed and the offset of its draw.
struct AttentionAttrs {
  bool is_causal = false;
  std::optional<double> scale;
  bool enable_gqa = false;
  double dropout_p = 0;
  SINTER_FIELDS(is_causal, scale, enable_gqa, dropout_p)

  // Operands at the end that say what is drawn.
  size_t drawn() const { return dropout_p > 0 ? 2 : 0; }
};
// A row of weights draws for so many keys: rows begin with a counter of their own, which four keys share.
inline Dim drawn_keys(const Dim& keys) { return (keys + 3) / 4 * 4; }
// Of the op `paged_attention`: query, pages of keys, pages of values, table, starts, lengths.
struct PagedAttentionAttrs {
  std::optional<double> scale;
  int64_t window = 0;
  SINTER_FIELDS(scale, window)
};
const Op& paged_attention_op();
// Whether it is one of the ops of attention.cpp or paged_attention.cpp: what the kernels of attention take whole.
bool is_attention(const Op& op);
const Op& attention_backward_op();
// Both halves of attention for those who keep what lies between them: `logarithms` is that of each row's sum of exp(score); with
// dropout, `draw` holds the seed and the offset of what was drawn.
struct AttentionHalf {
  Tensor output, logarithms;
  std::vector<TensorArg> draw;
};
AttentionHalf attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
                                bool is_causal, std::optional<double> scale);
// The gradients of query, key and value, and where it is wanted that of the mask.
TensorList attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                              const AttentionHalf& forward, double dropout_p, bool is_causal, std::optional<double> scale,
                              bool wants_mask_grad);
// The position of the mask among its operands, where it has one.
size_t attention_mask_operand(const Op& op);
bool has_attention_mask(const Op& op, size_t operands, const AttentionAttrs& attrs);

// Keys' cubic kernel with the parameter PyTorch uses: the weights of the elements at -1, 0, 1 and 2, for t in [0, 1).
std::array<Tensor, 4> cubic_weights(const Tensor& t);

// Of conv.cpp, for the family's list.
const Op& convolution_op();
const Op& convolution_weight_grad_op();

// The operand as a tensor; an Error naming the op when it is a plain number or undefined.
const Tensor& tensor_operand(const char* op, const TensorArg& arg);

// f32 for the half types, else the type itself: what composites compute in before they round once.
inline DType wide_dtype(DType d) { return item_size(d) < 4 && is_floating(d) ? kFloat32 : d; }
inline Tensor widened(const Tensor& x) { return wide_dtype(x.dtype()) == x.dtype() ? x : x.to(wide_dtype(x.dtype())); }
inline Tensor narrowed(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : x.to(dtype); }

// a <= b, asked of the tracer while capturing; left open by symbols elsewhere, where the question was answered before.
inline bool fits(const Dim& a, const Dim& b) { return Tracer::current() ? a <= b : possibly_le(a, b); }

// An Error where the device has no memory of ours; a graph may name any device.
inline void check_available(const Device& device) {
  if (!device.is_cpu() && !Tracer::current()) allocator_for(device);
}

// All sizes but the last `count`, followed by `tail`.
inline Shape with_tail(const Shape& shape, int64_t count, const Shape& tail) {
  check(count <= shape.rank(), "{} has no {} dimensions to replace", shape, count);
  Shape out(shape.begin(), shape.end() - count);
  out.append(tail);
  return out;
}

}  // namespace sinter
