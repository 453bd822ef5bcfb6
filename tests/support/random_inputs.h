#pragma once
// Values for the inputs of any graph, the same in every run.
#include <map>
#include <string>
#include <vector>

#include "sinter/graph/graph.h"
#include "tests/support/samples.h"

namespace sinter::testing {

// One array an input, drawn from the samples' domain; one named "at<5" has whole numbers from 0 to 4. Symbolic sizes are 3, 4,
// … in the order of their first use, and told to `sizes`, by name.
std::vector<Array> random_inputs(const Graph& graph, std::map<std::string, int64_t>* sizes = nullptr);

}  // namespace sinter::testing
