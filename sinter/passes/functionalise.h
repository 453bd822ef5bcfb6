#pragma once
// Resolves `write` where the graph can tell what became of the elements: a read of what was just written is the value
// written, a read beside it is a read of the base, a second write to the same place forgets the first, and a write of
// all elements is the value itself, rearranged. What is left is a partial update, which a later stage makes in place.
#include "sinter/graph/graph.h"

namespace sinter {

Graph functionalise(const Graph& graph);
// Whether there is a `write` at all.
bool has_writes(const Graph& graph);

}  // namespace sinter
