#pragma once
// Replaces composite ops by their bodies, except those that a later stage takes whole.
#include <set>
#include <string>

#include "sinter/graph/graph.h"
#include "sinter/tensor/target.h"

namespace sinter {

struct DecomposeOptions {
  std::set<std::string, std::less<>> keep = {};  // composite ops that stay, by name
  Target target = {};                            // those that it takes whole stay too
};

// A composite whose body asks what symbolic sizes alone do not answer stays as well: it is run by its body when the
// sizes are known.
Graph decompose(const Graph& graph, const DecomposeOptions& options = {});
// Whether some composite does not stay for its name or its operands.
bool has_composites(const Graph& graph, const DecomposeOptions& options = {});

}  // namespace sinter
