#pragma once
// Runs a graph node by node through the dispatcher: eagerly on eager tensors; under a tracer it is recorded again, which
// is how one graph is inlined into another.
#include <functional>

#include "sinter/graph/graph.h"

namespace sinter {

// The value of a symbolic size, by name.
using SizeOf = std::function<Dim(const std::string& symbol)>;

// One operand a graph input: a tensor, or a number where the input's type is weak. Symbols are bound by the shapes of
// the operands where an input's size is the bare symbol; `size_of` gives the others.
TensorList run_graph(const Graph& graph, std::span<const TensorArg> inputs, const SizeOf& size_of = {});

}  // namespace sinter
