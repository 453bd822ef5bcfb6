#pragma once
// Products of half-precision matrices whose rows do not begin at multiples of a vector run at a fraction of the speed on tensor
// cores. A product that is large enough to pay for it gets operands with columns of zeros behind them, and of its result the
// part that was asked for is looked at: a vocabulary of 50257 words is multiplied as 50264.
//
// Zeros add nothing to a sum, so no result changes but by the order in which a library adds up.
#include "sinter/graph/graph.h"
#include "sinter/passes/fuse.h"

namespace sinter {

Graph align_products(const Graph& graph, const FuseOptions& options);
bool has_unaligned_products(const Graph& graph, const FuseOptions& options);

}  // namespace sinter
