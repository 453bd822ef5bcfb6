#pragma once
// What the templates that end in a GEMM share.
#include <optional>

#include "sinter/engine/eager/eager.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter::eager {

// Null for types the GEMM cores do not take.
std::optional<runtime::GemmType> gemm_type(DType dtype);

}  // namespace sinter::eager
