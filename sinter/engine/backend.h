#pragma once
// Backends: who runs the graphs of compiled functions. One that looks into a graph includes graph/graph.h or graph/run.h.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

class Graph;

// A graph as a function: one operand a graph input, a tensor, or a number where the input's type is weak; results as the
// graph's outputs. Called from any number of threads at once.
using GraphFunction = std::function<TensorList(std::span<const TensorArg> inputs)>;
using Backend = std::function<GraphFunction(const Graph& graph)>;
// Adds a backend under a name of its own; "sinter", "eager" and "interpreter" exist.
void register_backend(const std::string& name, Backend backend);
std::vector<std::string> list_backends();

}  // namespace sinter
