#pragma once
// An op with one more dimension in front: what index notation gives for free. The definition of the op is read as it is, with
// the first coordinate taken off the result and put before those of the operands that have it.
#include "sinter/graph/op.h"

namespace sinter {

// The op on operands of which these have a batch dimension in front; every result has one. For ops that are defined by
// elements, except reductions, whose dimensions are named. It is called "vmap10::gather": find_op knows it by that name.
const Op& batched_op(const Op& op, const std::vector<bool>& batched);
bool has_batched_op(const Op& op);
// Null when it is not the name of such an op.
const Op* find_batched_op(std::string_view name);

}  // namespace sinter
