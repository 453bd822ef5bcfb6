#pragma once
// What the files of the indexing family share. Users include indexing.h.
#include "sinter/ops/registry.h"

namespace sinter {

// An Error unless the operand holds integers.
void check_index_operand(const OpCall& call, int operand);
// An Error when there are indices into a dimension of size 0.
void check_has_room(const OpCall& call, int operand, const Dim& extent);
// An Error unless every index lies in [-extent, extent): in-place writes ask before they touch anything. Those that are
// traced or on another device are left to the kernel's own check.
void check_indices(const char* op, const TensorArg& index, const Dim& extent);
// A tensor in x's dtype; numbers stay numbers.
TensorArg cast_source(const TensorArg& source, const TensorArg& x);

OpFamily gather_ops();
OpFamily scatter_ops();
OpFamily advanced_index_ops();

}  // namespace sinter
