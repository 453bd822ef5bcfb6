#pragma once
// Equal nodes become one: the same op on the same values with the same attributes, the operands in either order where
// it does not matter. Draws of random numbers stay apart.
#include "sinter/graph/graph.h"

namespace sinter {

Graph common_subexpressions(const Graph& graph);
// Whether two nodes are equal but for the order of their operands; nodes that are equal as written are one already.
bool has_exchanged_operands(const Graph& graph);

}  // namespace sinter
