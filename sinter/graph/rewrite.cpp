#include "sinter/graph/rewrite.h"

#include <algorithm>

#include "sinter/graph/verify.h"

namespace sinter {

Value RewriteContext::operator()(Value old) const {
  Value now = values_[first_[size_t(old.node->id)] + size_t(old.index)];
  SINTER_INTERNAL_ASSERT(now, "%{} was not rebuilt before its use", old.node->id);
  return now;
}

std::vector<Value> RewriteContext::inputs(const Node& node) const {
  std::vector<Value> out;
  out.reserve(node.inputs.size());
  for (auto& v : node.inputs) out.push_back((*this)(v));
  return out;
}

const Node& RewriteContext::add(const Op& op, std::vector<Value> inputs, const Attrs& attrs) {
  return graph_.add(op, std::move(inputs), attrs, where_);
}

namespace {

bool mentions_only(const Dim& size, const std::vector<Type>& operands) {
  for (auto& name : size.symbols()) {
    bool found = false;
    for (auto& type : operands)
      for (auto& d : type.shape) found = found || d.depends_on(Dim::symbol(name));
    if (!found) return false;
  }
  return true;
}

// The types of a node whose operands changed theirs. Sizes that the operands do not give keep their names: inferring
// alone would name the sizes of data-dependent results anew.
std::vector<Type> retyped(const Node& node, const std::vector<Type>& before, const std::vector<Type>& after) {
  auto types = infer_types(*node.op, after, node.attrs);
  for (size_t i = 0; i < types.size() && i < node.types.size(); ++i) {
    auto& shape = types[i].shape;
    auto& old = node.types[i].shape;
    for (size_t d = 0; d < shape.size() && d < old.size(); ++d)
      if (!mentions_only(old[d], before)) shape[d] = old[d];
  }
  return types;
}

}  // namespace

const Node& RewriteContext::copy(const Node& node) {
  auto operands = inputs(node);
  bool same_types = true;
  for (size_t i = 0; i < operands.size(); ++i) same_types = same_types && operands[i].type() == node.inputs[i].type();
  auto types = same_types ? node.types : retyped(node, types_of(node.inputs), types_of(operands));
  return graph_.add_typed(*node.op, std::move(operands), node.attrs, std::move(types), node.where);
}

namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (auto& v : graph.outputs()) live[size_t(v.node->id)] = true;
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    if (it->op->random || it->op->kind == OpKind::kInput) live[size_t(it->id)] = true;
    if (!live[size_t(it->id)]) continue;
    for (auto& v : it->inputs) live[size_t(v.node->id)] = true;
  }
  return live;
}

size_t count_live_nodes(const Graph& graph) {
  auto live = live_nodes(graph);
  return size_t(std::count(live.begin(), live.end(), true));
}

}  // namespace

// One walk over a graph.
class Rewriter {
 public:
  Rewriter(const Graph& old, const RewriteRule& rule) : old_(old), rule_(rule) {}

  Graph run() {
    auto live = live_nodes(old_);
    size_t results = 0;
    for (auto& node : old_.nodes()) {
      context_.first_.push_back(results);
      results += node.types.size();
    }
    context_.values_.resize(results);
    for (auto& node : old_.nodes())
      if (live[size_t(node.id)]) visit(node);
    std::vector<Value> outputs;
    for (auto& v : old_.outputs()) outputs.push_back(context_(v));
    context_.graph_.set_outputs(std::move(outputs));
    return std::move(context_.graph_);
  }

 private:
  void visit(const Node& node) {
    Value* results = &context_.values_[context_.first_[size_t(node.id)]];
    if (node.op->kind == OpKind::kInput) {
      results[0] = context_.graph_.add_input(node.types[0], node.name);
      return;
    }
    context_.where_ = node.where;
    context_.graph_.set_marks(node.marks);
    if (rule_) {
      if (auto replaced = rule_(context_, node)) {
        check_replacement(node, *replaced);
        std::copy(replaced->begin(), replaced->end(), results);
        return;
      }
    }
    const Node& copy = context_.copy(node);
    for (size_t i = 0; i < node.types.size(); ++i) results[i] = copy.result(int(i));
  }

  void check_replacement(const Node& node, const std::vector<Value>& values) const {
    SINTER_INTERNAL_ASSERT(values.size() == node.types.size(), "a rule gives {} values for the {} of %{} ({})",
                           values.size(), node.types.size(), node.id, node.op->name);
    for (size_t i = 0; i < values.size(); ++i) {
      auto &before = node.types[i], &after = values[i].type();
      SINTER_INTERNAL_ASSERT(
          before.dtype == after.dtype && before.rank() == after.rank() && before.device == after.device,
          "a rule turns %{} ({}) from {} into {}", node.id, node.op->name, before, after);
    }
  }

  const Graph& old_;
  const RewriteRule& rule_;
  RewriteContext context_;
};

Graph drop_dead_nodes(const Graph& graph) { return Rewriter(graph, {}).run(); }

bool has_dead_nodes(const Graph& graph) { return count_live_nodes(graph) != graph.nodes().size(); }

Graph rewrite(const Graph& graph, const RewriteRule& rule, const RewriteOptions& options) {
  auto clean = [](Graph result) { return has_dead_nodes(result) ? drop_dead_nodes(result) : std::move(result); };
  auto settled = [](const Graph& before, const Graph& after) {
    return before.hash() == after.hash() && count_live_nodes(before) == count_live_nodes(after);
  };
  Graph current = Rewriter(graph, rule).run();
  if (!options.to_fixed_point || settled(graph, current)) return clean(std::move(current));
  for (int rounds = 1; rounds < options.max_rounds; ++rounds) {
    Graph next = Rewriter(current, rule).run();
    if (settled(current, next)) return clean(std::move(next));
    current = std::move(next);
  }
  SINTER_INTERNAL_ASSERT(false, "a rewrite does not settle in {} rounds:\n{}", options.max_rounds, current.text());
}

}  // namespace sinter
