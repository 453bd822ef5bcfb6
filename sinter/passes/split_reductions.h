#pragma once
// A reduction of few long rows becomes two: over the last dimensions first, then over what is left. The first half is a
// reduction of many rows, which the ops before it can be fused with; a long row by itself would be the work of one thread.
//
// Only where something is there to be fused: a reduction of what is in memory anyway has a kernel that splits it. Sums are
// added up in another order.
//
// On a GPU the same is done to reductions of long columns: a block takes a few columns, and as many blocks as there are
// columns do not keep it busy. A part of each column first, then the parts: of a bias's gradient, of a batch norm's means.
#include "sinter/graph/graph.h"
#include "sinter/passes/fuse.h"

namespace sinter {

Graph split_reductions(const Graph& graph, const FuseOptions& options = {});
bool has_long_reductions(const Graph& graph, const FuseOptions& options = {});

}  // namespace sinter
