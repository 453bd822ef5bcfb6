#pragma once
// Convolutions by cuDNN, or where it is missing or has no engine for one, by our product on tensor cores, which reads the
// image in place of its left operand.
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/cudnn.h"
#include "sinter/tensor/target.h"

namespace sinter {

// Those that are worth asking for, with cuDNN or without; some sizes may still be refused.
Target::Convolutions cuda_convolutions();
// Whether a convolution is one of them. Transposed ones, and the gradients of weights (convolution_weight_grad), take nothing
// behind them along, so that no pass has to know of them: cuDNN does them, nobody else.
bool has_cuda_convolution(const Op& op, DType dtype, const Attrs& attrs);

// As runtime::prepare_cuda_convolution and runtime::cuda_convolution.
bool prepare_convolution(int device, const runtime::CudaConvolution& problem);
void queue_convolution(int device, const runtime::CudaConvolution& problem);

}  // namespace sinter
