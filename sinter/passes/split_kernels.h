#pragma once
// Kernels taken apart again, for when a toolchain refuses one: what it was made of becomes smaller kernels, and in the end ops
// by themselves. The graph means the same.
#include <set>

#include "sinter/graph/graph.h"

namespace sinter {

// `kernels` are `fused` nodes of the graph. Kernels inside one stand by themselves; contractions apart from what follows them;
// attention becomes its body; other groups become groups of at most half as many ops, in which nothing is inlined; a group of
// two, two ops. So splitting the outcome again and again ends.
Graph split_kernels(const Graph& graph, const std::set<const Node*>& kernels);

// The graph with no kernel left, only ops.
Graph without_kernels(const Graph& graph);

}  // namespace sinter
