#pragma once
// The kernels of this device that take ops whole, by the file that has them.
#include "sinter/engine/device/op_kernel.h"

namespace sinter::eager {

std::span<const OpKernel> product_kernels_of_cuda();
std::span<const OpKernel> attention_kernels_of_cuda();
std::span<const OpKernel> convolution_kernels_of_cuda();
std::span<const OpKernel> pool_kernels_of_cuda();
std::span<const OpKernel> sort_kernels_of_cuda();
std::span<const OpKernel> linalg_kernels_of_cuda();
std::span<const OpKernel> fourier_kernels_of_cuda();

}  // namespace sinter::eager
