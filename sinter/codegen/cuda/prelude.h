#pragma once
// What writers of kernels know of NVIDIA's GPUs, and the text that every program of CUDA kernels starts with.
#include <string>

#include "sinter/tensor/target.h"

namespace sinter::codegen {

inline constexpr Target kCudaTarget = gpu_target(32);

const std::string& cuda_prelude();

}  // namespace sinter::codegen
