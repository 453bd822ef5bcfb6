#pragma once
// Convolutions by cuDNN, or where it is missing or has no engine for one, by our product on tensor cores, which reads the
// image in place of its left operand.
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/cudnn.h"

namespace sinter {

// Whether convolutions of this kind are worth asking for; some sizes may still be refused.
bool has_cuda_convolution(DType dtype, const ConvolutionAttrs& attrs);

// As runtime::prepare_cuda_convolution and runtime::cuda_convolution.
bool prepare_convolution(int device, const runtime::CudaConvolution& problem);
void queue_convolution(int device, const runtime::CudaConvolution& problem);

}  // namespace sinter
