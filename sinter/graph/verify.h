#pragma once
// What it means that the types of a node are right.
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

std::vector<Type> types_of(const std::vector<Value>& values);

// An Error unless the stated types are what was inferred. Sizes of which one is symbolic may differ in form: a capture
// knows equalities that the expressions alone do not show.
void check_fits(const Op& op, const std::vector<Type>& inferred, const std::vector<Type>& stated);

}  // namespace sinter
