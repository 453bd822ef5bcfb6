#pragma once
#include <string>

#include "sinter/graph/op.h"

namespace sinter::cli {

// The op of this name; an Error that proposes the nearest name when there is none.
const Op& op_named(const std::string& name);

}  // namespace sinter::cli
