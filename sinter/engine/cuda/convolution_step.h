#pragma once
// A convolution and what follows it on a GPU: all of it by cuDNN or our own product where they can, else its convolution and a
// generated kernel.
#include "sinter/engine/cuda/step.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/cudnn.h"

namespace sinter {

// The memory order that a convolution of this type with `rank` dimensions works in: tensor cores want channels last.
MemoryFormat cuda_convolution_format(DType dtype, size_t rank);

// The problem of an op on operands and with a result of these geometries, all in that format, without addresses: of a
// convolution, which is the gradient of another's input where it is transposed, or of a convolution_weight_grad.
runtime::CudaConvolution cuda_convolution_problem(const Op& op, const Attrs& attrs, DType dtype, const IntList& left,
                                                  const IntList& right, const IntList& result, MemoryFormat format);

// As make_cuda_step, for a convolution.
std::unique_ptr<CudaStep> make_convolution_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
