#pragma once
// The rewrite driver: how a pass rebuilds a graph. It walks the nodes in order, asks the rule about each, and copies
// what the rule leaves alone. Inputs stay, outputs follow, and what nothing needs any more is dropped (random nodes
// stay: dropping one would change what a program draws).
#include <functional>
#include <optional>

#include "sinter/graph/graph.h"

namespace sinter {

// What a rule sees: the graph being built and the new values of the old ones.
class RewriteContext {
 public:
  Graph& graph() { return graph_; }
  // The value in the new graph that an earlier value of the old graph became.
  Value operator()(Value old) const;
  // The operands of an old node in the new graph.
  std::vector<Value> inputs(const Node& node) const;
  // Appends to the new graph; the node takes the position of the one being rewritten.
  const Node& add(const Op& op, std::vector<Value> inputs, const Attrs& attrs = {});
  Value scalar(const Scalar& value) { return graph_.add_scalar(value); }
  // The old node with its operands replaced.
  const Node& copy(const Node& node);

 private:
  friend class Rewriter;
  Graph graph_;
  std::vector<Value> values_;  // the results of all old nodes in a row
  std::vector<size_t> first_;  // by old node: where its own begin
  std::string where_;
};

// The new values of the node's results, of the same dtype and rank; nothing to copy the node. Not asked about inputs.
using RewriteRule = std::function<std::optional<std::vector<Value>>(RewriteContext& context, const Node& node)>;

struct RewriteOptions {
  bool to_fixed_point = false;  // repeat until a round changes nothing
  int max_rounds = 64;          // more is an internal error: the rule does not settle
};

Graph rewrite(const Graph& graph, const RewriteRule& rule, const RewriteOptions& options = {});

// The same graph without the nodes that no output needs, and whether there are any.
Graph drop_dead_nodes(const Graph& graph);
bool has_dead_nodes(const Graph& graph);

}  // namespace sinter
