#include "sinter/passes/nest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sinter/base/error.h"
#include "sinter/graph/extract.h"
#include "sinter/graph/nodes.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// Whether all views on the way to what it is a view of keep its elements in their order.
bool is_reshaped(const Node* node) {
  for (; node->op->kind == OpKind::kView; node = node->inputs[0].node)
    if (!known_ops().is_reshape(*node->op)) return false;
  return true;
}

// --- prologues -------------------------------------------------------------------------------------------------------

class Prologues {
 public:
  Prologues(const Graph& graph, const NestOptions& options) : graph_(graph), options_(options) {}

  // Nothing where there is none.
  std::optional<Graph> run() {
    find();
    if (hosts_.empty()) return std::nullopt;
    Extraction out = begin_copy(graph_);
    for (auto& node : graph_.nodes()) {
      if (is_free(node) || taken_.contains(&node)) continue;  // made when they are read
      if (hosts_.contains(&node))
        take_in(out, node);
      else
        out.copy(node);
    }
    return out.finish(graph_.outputs());
  }

 private:
  static const FusedAttrs& attrs_of(const Node& node) { return node.attrs.as<FusedAttrs>(); }

  // Whether operand `i` is the left one of the node's products, and nothing else reads it.
  static bool is_left(const Node& node, size_t i) {
    auto& body = *attrs_of(node).body;
    Value input = body.inputs()[i];
    for (auto& n : body.nodes())
      for (size_t j = 0; j < n.inputs.size(); ++j)
        if (n.inputs[j] == input && (j != 0 || !is_contraction(n))) return false;
    for (auto& v : body.outputs())
      if (v == input) return false;
    return true;
  }

  void find() {
    struct Readers {
      int count = 0;
      const Node* one = nullptr;  // none: an output
      size_t operand = 0;
    };
    std::vector<Readers> readers(graph_.nodes().size());
    auto note = [&](Value v, const Node* reader, size_t operand) {
      auto& known = readers[size_t(behind_views(v.node)->id)];
      known = {known.count + 1, reader, operand};
    };
    for (auto& node : graph_.nodes())
      if (node.op->kind != OpKind::kView)
        for (size_t i = 0; i < node.inputs.size(); ++i) note(node.inputs[i], &node, i);
    for (auto& v : graph_.outputs()) note(v, nullptr, 0);
    for (auto& each : graph_.nodes()) {
      const Node* node = &each;
      auto [count, host, i] = readers[size_t(node->id)];
      if (node->op != &fused_op() || node->types.size() != 1 || count != 1 || !attrs_of(*node).is_one_nest()) continue;
      if (!host || !is_fused(*host, FusedKind::kProduct) || !is_left(*host, i) || hosts_.contains(host)) continue;
      // What a scatter leaves as it was, is in its result only where that has memory of its own.
      if (attrs_of(*node).body->outputs()[0].node->op->kind == OpKind::kScatter) continue;
      // The product takes the kernel's elements in the order in which it computes them.
      if (!is_reshaped(host->inputs[i].node)) continue;
      auto& shape = host->inputs[i].type().shape;
      if (shape.size() != 2 || !shape[0].is_number() || shape[0].number() > options_.prologue_rows) continue;
      if (host->inputs.size() + node->inputs.size() > options_.most_operands) continue;
      hosts_.insert(host);
      taken_.insert(node);
    }
  }

  void take_in(Extraction& out, const Node& host) const {
    FusedAttrs attrs = attrs_of(host);
    const Graph& old = *attrs.body;
    Extraction body([&](const Node& node) { return taken_.contains(behind_views(&node)); });
    for (size_t i = 0; i < host.inputs.size(); ++i) body.set(old.inputs()[i], body(host.inputs[i]));
    for (auto& node : old.nodes())
      if (node.op->kind != OpKind::kInput && node.op->kind != OpKind::kScalar) body.copy(node);
    attrs.body = SubGraph(body.finish(old.outputs()));
    std::vector<Value> operands;
    for (auto& v : body.operands()) operands.push_back(out(v));
    const Node& node = out.graph().add_typed(fused_op(), std::move(operands), attrs, host.types, host.where);
    for (size_t r = 0; r < host.types.size(); ++r) out.set(host.result(int(r)), node.result(int(r)));
  }

  const Graph& graph_;
  const NestOptions& options_;
  std::set<const Node*> hosts_, taken_;  // products, and the kernels that become their prologues
};

// --- siblings --------------------------------------------------------------------------------------------------------

class Siblings {
 public:
  Siblings(const Graph& graph, const NestOptions& options) : graph_(graph), options_(options) {}

  // Nothing where there are none.
  std::optional<Graph> run() {
    find();
    if (by_last_.empty()) return std::nullopt;
    Extraction out = begin_copy(graph_);
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;  // made when they are read
      if (auto it = by_last_.find(&node); it != by_last_.end())
        emit(out, it->second);
      else if (!member_.contains(&node))
        out.copy(node);
    }
    return out.finish(graph_.outputs());
  }

 private:
  using Members = std::vector<const Node*>;

  // Small kernels in a row, with nothing between them that could wait for one.
  void find() {
    Members members;
    auto close = [&] {
      if (members.size() > 1) {
        member_.insert(members.begin(), members.end());
        by_last_[members.back()] = members;
      }
      members.clear();
    };
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;
      if (!is_small(node) || !fits(members, node)) close();
      if (is_small(node)) members.push_back(&node);
    }
    close();
  }

  bool is_small(const Node& node) const {
    if (node.op != &fused_op() || !node.attrs.as<FusedAttrs>().is_one_nest()) return false;
    Dim count = node.attrs.as<FusedAttrs>().domain.numel();
    return count.is_number() && count.number() <= options_.small;
  }

  bool fits(const Members& members, const Node& node) const {
    if (members.size() >= options_.most_siblings) return false;
    size_t operands = node.inputs.size() + node.types.size();
    for (auto* m : members) operands += m->inputs.size() + m->types.size();
    if (operands > options_.most_operands) return false;
    return std::none_of(node.inputs.begin(), node.inputs.end(), [&](Value v) {
      return std::find(members.begin(), members.end(), behind_views(v.node)) != members.end();
    });
  }

  static void emit(Extraction& out, const Members& members) {
    Extraction body([](const Node&) { return false; });
    std::vector<Value> results, operands;
    std::vector<Type> types;
    std::string where = members[0]->where;
    for (auto* m : members) {
      body.copy(*m);
      for (size_t r = 0; r < m->types.size(); ++r) {
        results.push_back(m->result(int(r)));
        types.push_back(m->types[r]);
      }
    }
    FusedAttrs attrs{.kind = FusedKind::kSiblings, .body = SubGraph(body.finish(results))};
    for (auto& v : body.operands()) operands.push_back(out(v));
    const Node& node = out.graph().add_typed(fused_op(), std::move(operands), attrs, std::move(types), where);
    for (size_t r = 0; r < results.size(); ++r) out.set(results[r], node.result(int(r)));
  }

  const Graph& graph_;
  const NestOptions& options_;
  std::map<const Node*, Members> by_last_;  // the siblings, by the last of them
  std::set<const Node*> member_;
};

}  // namespace

bool has_kernels(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](auto& node) { return node.op == &fused_op(); });
}

Graph nest_kernels(const Graph& graph, const NestOptions& options) {
  auto prologues = options.prologues ? Prologues(graph, options).run() : std::nullopt;
  auto siblings = options.siblings ? Siblings(prologues ? *prologues : graph, options).run() : std::nullopt;
  if (siblings) return std::move(*siblings);
  return prologues ? std::move(*prologues) : drop_dead_nodes(graph);
}

}  // namespace sinter
