#pragma once
// Drops what no output needs. Inputs stay, and so do draws of random numbers.
#include "sinter/graph/graph.h"

namespace sinter {

Graph dead_code(const Graph& graph);

}  // namespace sinter
