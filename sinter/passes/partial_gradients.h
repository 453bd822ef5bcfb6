#pragma once
// The graph of a program's gradients where gradients flow into some of its results only: what nothing flows through is
// not computed, as a tape would do it. A gradient of zeros is another thing: 0 * inf is nan, and an optimiser takes a step.
#include "sinter/graph/graph.h"

namespace sinter {

// The last inputs of the graph are the tangents, one for each of `flowing`, in all of which it is linear. The result has its
// inputs, and those of its outputs that are wanted.
Graph partial_gradients(const Graph& whole, const std::vector<bool>& flowing, const std::vector<bool>& wanted);

}  // namespace sinter
