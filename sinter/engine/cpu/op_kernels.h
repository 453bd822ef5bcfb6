#pragma once
// The kernels of this device that take ops whole, by the file that has them.
#include "sinter/engine/device/op_kernel.h"

namespace sinter::eager {

std::span<const OpKernel> product_kernels_of_cpu();
std::span<const OpKernel> attention_kernels_of_cpu();
std::span<const OpKernel> paged_attention_kernels_of_cpu();
std::span<const OpKernel> convolution_kernels_of_cpu();
std::span<const OpKernel> fourier_kernels_of_cpu();
std::span<const OpKernel> grouped_kernels_of_cpu();

}  // namespace sinter::eager
