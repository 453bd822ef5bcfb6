#pragma once
// Computes what depends on numbers alone: a node whose operands are plain numbers or tensors filled with one (or without
// elements), and whose result is again filled with one number, becomes `full`. The result keeps its type (an operation on plain numbers
// gives a 0-d tensor, which promotes otherwise than a number) and is rounded to its dtype, as storing it would.
#include "sinter/graph/graph.h"

namespace sinter {

Graph fold(const Graph& graph);
// Whether some node can be computed here.
bool has_constant_nodes(const Graph& graph);

}  // namespace sinter
