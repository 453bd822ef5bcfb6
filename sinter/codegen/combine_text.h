#pragma once
// Combinations of a reduction as C++ text.
#include <string>

#include "sinter/graph/op.h"

namespace sinter::codegen {

// The neutral element of a combination, as a literal of the accumulator's type.
std::string identity_text(Combine combine, DType accumulator);
std::string combine_text(Combine combine, const std::string& a, const std::string& b);
// The function that joins the lanes of an accumulator.
const char* horizontal_text(Combine combine);

}  // namespace sinter::codegen
