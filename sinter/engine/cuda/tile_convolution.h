#pragma once
// Convolutions by cuDNN, or where it is missing or has no engine for one, by our product on tensor cores, which reads the
// image in place of its left operand.
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/cudnn.h"
#include "sinter/tensor/target.h"

namespace sinter {

// Those that are worth asking for, with cuDNN or without; some sizes may still be refused.
Target::Convolutions cuda_convolutions();
// Whether this is one of them.
bool has_cuda_convolution(DType dtype, const ConvolutionAttrs& attrs);

// As runtime::prepare_cuda_convolution and runtime::cuda_convolution.
bool prepare_convolution(int device, const runtime::CudaConvolution& problem);
void queue_convolution(int device, const runtime::CudaConvolution& problem);

}  // namespace sinter
