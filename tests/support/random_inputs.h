#pragma once
// Values for the inputs of any graph, the same in every run.
#include <vector>

#include "sinter/graph/graph.h"
#include "tests/support/samples.h"

namespace sinter::testing {

// One array an input, drawn from the samples' domain; symbolic sizes are 3, 4, … in the order of their first use.
std::vector<Array> random_inputs(const Graph& graph);

}  // namespace sinter::testing
