#pragma once
// Reading a state dict.
#include <string_view>

#include "sinter/io/safetensors.h"

namespace sinter::optim {

// The tensor of this name; an Error where there is none.
const Tensor& state_of(const NamedTensors& state, std::string_view name);

}  // namespace sinter::optim
