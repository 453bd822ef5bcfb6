#pragma once
// Graphs given as text, run: what the programs that a bisection writes consist of.
#include <string>
#include <string_view>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::bisection {

// The results of the graph: compiled as compile() would ("sinter"), or by another backend.
TensorList run_text(std::string_view graph, const std::vector<TensorArg>& inputs, const std::string& backend = "sinter");

// What a run of the graph takes, compiled and op by op: medians of runs that take turns.
struct Speed {
  double compiled = 0, eager = 0;
};
Speed time_text(std::string_view graph, const std::vector<TensorArg>& inputs);

}  // namespace sinter::bisection
