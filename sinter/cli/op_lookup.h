#pragma once
#include <string>

#include "sinter/graph/op.h"

namespace sinter::cli {

// The op of this name; an Error that proposes the nearest name when there is none.
const Op& op_named(const std::string& name);

// In a few words: kind, gradient or why there is none, tolerance.
std::string summary_of(const Op& op);

}  // namespace sinter::cli
