#pragma once
// The text that every program of CUDA kernels starts with.
#include <string>

namespace sinter::codegen {

const std::string& cuda_prelude();

}  // namespace sinter::codegen
