#include "sinter/passes/dead_code.h"

#include "sinter/graph/rewrite.h"

namespace sinter {

Graph dead_code(const Graph& graph) { return drop_dead_nodes(graph); }

}  // namespace sinter
