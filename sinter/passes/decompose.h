#pragma once
// Replaces composite ops by their bodies, except those that a later stage takes whole.
#include <functional>
#include <set>
#include <string>

#include "sinter/graph/graph.h"

namespace sinter {

struct DecomposeOptions {
  std::set<std::string, std::less<>> keep = {};  // names of composite ops that stay
  // Those that stay for operands of these types.
  std::function<bool(const OpCall& call)> has_own_kernel = {};
};

// A composite whose body asks what symbolic sizes alone do not answer stays as well: it is run by its body when the
// sizes are known.
Graph decompose(const Graph& graph, const DecomposeOptions& options = {});
// Whether some composite does not stay for its name or its operands.
bool has_composites(const Graph& graph, const DecomposeOptions& options = {});

}  // namespace sinter
