#pragma once
// A whole graph by the referee, op by op, with what rounding on the way can do to its results.
//
// Bounds that are followed from op to op (bounds.h) say of a long program that anything is possible. Here the graph is run a
// few times more with every value disturbed by what its op may be off by, and what that moves is what is allowed.
#include <map>

#include "sinter/engine/referee/one_op.h"

namespace sinter::referee {

struct Whole {
  std::vector<Array> results;
  std::vector<std::vector<double>> allowed;  // by result and element
};

// Symbolic sizes are bound by `sizes`, by the shapes of the inputs, and by results whose sizes the data decides.
Whole evaluate_whole(const Graph& graph, std::span<const Known> inputs, const std::map<std::string, int64_t>& sizes);

// The results alone.
std::vector<Array> evaluate_graph(const Graph& graph, std::span<const Known> inputs, const std::map<std::string, int64_t>& sizes);

}  // namespace sinter::referee
