#pragma once
// Which ops a target takes whole, by kernels by hand or by libraries: passes leave them together, and fusion makes kernels of
// them.
#include "sinter/graph/op.h"
#include "sinter/tensor/target.h"

namespace sinter {

// Whether there is a kernel for this composite on all operands of these types, whatever their memory looks like: it need not be
// taken apart.
bool takes_whole(const Target& target, const OpCall& call);

}  // namespace sinter
