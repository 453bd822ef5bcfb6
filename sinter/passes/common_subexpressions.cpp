#include "sinter/passes/common_subexpressions.h"

#include <map>
#include <tuple>

#include "sinter/graph/rewrite.h"
#include "sinter/passes/known_ops.h"

namespace sinter {

// Adding to a graph merges what is written alike; what is left are operands in the other order.
Graph common_subexpressions(const Graph& graph) {
  using Key = std::tuple<const Op*, int, int, int, int>;
  std::map<Key, Value> seen;
  auto key = [](const Op& op, Value a, Value b) { return Key(&op, a.node->id, a.index, b.node->id, b.index); };
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (!known_ops().is_commutative(*node.op)) return std::nullopt;
    auto inputs = context.inputs(node);
    auto exchanged = seen.find(key(*node.op, inputs[1], inputs[0]));
    if (exchanged != seen.end() && exchanged->second.type() == node.types[0]) return {{exchanged->second}};
    Value value = context.copy(node).result();
    seen.emplace(key(*node.op, inputs[0], inputs[1]), value);
    return {{value}};
  });
}

}  // namespace sinter
