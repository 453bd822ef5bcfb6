#pragma once
// Ops that a GPU's hand-written kernels and libraries take whole; see eager::Template.
#include "sinter/engine/eager/eager.h"

namespace sinter::eager {

// mm and bmm by cuBLASLt. Integers keep to the loops.
bool cuda_matrix_product(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                         TensorList& outputs);
bool cuda_attention_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                             TensorList& outputs);
// Compiles its kernel; see eager::prepare.
void prepare_cuda_attention(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out);
// By cuDNN, where it is there.
bool cuda_convolution_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                               TensorList& outputs);
// Of channels-last images; others keep to the loops, which write row-major results.
bool cuda_max_pool_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                            TensorList& outputs);
// Whether it takes this operand, and a result in the same order with it.
bool takes_channels_last_pool(const TensorImpl& x, const Attrs& attrs);
// Orderings and searches. What decides the size of a result waits for the device.
bool cuda_sort_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                        TensorList& outputs);
bool cuda_topk_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                        TensorList& outputs);
bool cuda_nonzero_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                           TensorList& outputs);
bool cuda_unique_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                          TensorList& outputs);
bool cuda_searchsorted_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                                TensorList& outputs);

}  // namespace sinter::eager
