#pragma once
// What writers of kernels know of AMD's GPUs, and the text that every program of HIP kernels starts with. Compiled by the tests
// for several architectures, but never run.
#include <string>
#include <string_view>

#include "sinter/tensor/target.h"

namespace sinter::codegen {

// Of an architecture such as "gfx90a": up to gfx9 64 lanes, from gfx10 on 32. An Error where it is not such a name.
Target hip_target(std::string_view architecture);

std::string hip_prelude(const Target& target);

}  // namespace sinter::codegen
