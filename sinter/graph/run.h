#pragma once
// Runs a graph node by node through the dispatcher: eagerly on eager tensors; under a tracer it is recorded again, which
// is how one graph is inlined into another.
#include <functional>

#include "sinter/base/api.h"
#include "sinter/graph/graph.h"

namespace sinter SINTER_API {

// The value of a symbolic size, by name.
using SizeOf = std::function<Dim(const std::string& symbol)>;

// Told of each node once it has run, with its operands and attributes as they were and its results.
using NodeObserver = std::function<void(const Node& node, std::span<const TensorArg> inputs, const Attrs& attrs,
                                        std::span<const Tensor> results)>;

// One operand a graph input: a tensor, or a number where the input's type is weak. Symbols are bound by the shapes of
// the operands where an input's size is the bare symbol; `size_of` gives the others.
TensorList run_graph(const Graph& graph, std::span<const TensorArg> inputs, const SizeOf& size_of = {},
                     const NodeObserver& observer = {});

}  // namespace sinter
