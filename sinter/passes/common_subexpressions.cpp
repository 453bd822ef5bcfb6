#include "sinter/passes/common_subexpressions.h"

#include <map>
#include <set>
#include <tuple>

#include "sinter/graph/rewrite.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// A commutative op and its operands, by the numbers of their nodes.
using Key = std::tuple<const Op*, int, int, int, int>;
Key key_of(const Op& op, Value a, Value b) { return Key(&op, a.node->id, a.index, b.node->id, b.index); }

}  // namespace

bool has_exchanged_operands(const Graph& graph) {
  std::set<Key> seen;
  for (auto& node : graph.nodes()) {
    if (!known_ops().is_commutative(*node.op)) continue;
    if (seen.contains(key_of(*node.op, node.inputs[1], node.inputs[0]))) return true;
    seen.insert(key_of(*node.op, node.inputs[0], node.inputs[1]));
  }
  return false;
}

// Adding to a graph merges what is written alike; what is left are operands in the other order.
Graph common_subexpressions(const Graph& graph) {
  std::map<Key, Value> seen;
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (!known_ops().is_commutative(*node.op)) return std::nullopt;
    auto inputs = context.inputs(node);
    auto exchanged = seen.find(key_of(*node.op, inputs[1], inputs[0]));
    if (exchanged != seen.end() && exchanged->second.type() == node.types[0]) return {{exchanged->second}};
    Value value = context.copy(node).result();
    seen.emplace(key_of(*node.op, inputs[0], inputs[1]), value);
    return {{value}};
  });
}

}  // namespace sinter
