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
#include "sinter/passes/fuse_views.h"

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
      if (Dim count = shape.numel(); count.is_number() && count.number() > options_.prologue_elements) continue;
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
    out.graph().set_marks(host.marks);
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
    options_.gathers ? gather() : find();
    if (groups_.empty()) return std::nullopt;
    std::map<const Node*, std::vector<const Members*>> before;
    for (auto& group : groups_) before[group.reader].push_back(&group.members);
    Extraction out = begin_copy(graph_);
    auto emit_before = [&](const Node* reader) {
      for (auto* members : before[reader]) emit(out, *members);
    };
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;  // made when they are read
      emit_before(&node);
      if (!member_.contains(&node)) out.copy(node);
    }
    emit_before(nullptr);
    return out.finish(graph_.outputs());
  }

 private:
  using Members = std::vector<const Node*>;
  // Siblings, and the node before which they run; null: after all others.
  struct SiblingGroup {
    Members members;
    const Node* reader;
  };

  void close(Members& members, const Node* reader) {
    if (members.size() > 1) {
      member_.insert(members.begin(), members.end());
      groups_.push_back({members, reader});
    }
    members.clear();
  }

  // Small kernels in a row, with nothing between them that could wait for one.
  void find() {
    Members members;
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;
      if (!is_small(node) || !fits(members, node)) close(members, &node);
      if (is_small(node)) members.push_back(&node);
    }
    close(members, nullptr);
  }

  // Small kernels until somebody reads one of them; those that read nothing but inputs, when the first of them would run.
  void gather() {
    Members early, waiting;
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;
      const bool small = is_small(node);
      if (small && reads_inputs(node)) {
        if (!has_room(early, node)) close(early, early.front());
        early.push_back(&node);
        continue;
      }
      if (reads(node, waiting) || !is_of_one_piece(waiting, node) || (small && !has_room(waiting, node))) close(waiting, &node);
      if (small) waiting.push_back(&node);
    }
    if (!early.empty()) close(early, early.front());
    close(waiting, nullptr);
  }

  bool is_small(const Node& node) const {
    bool reduces = node.op->kind == OpKind::kReduce;
    const Shape* domain = reduces ? &node.inputs[0].type().shape : &node.types[0].shape;
    if (node.op == &fused_op()) {
      auto& attrs = node.attrs.as<FusedAttrs>();
      if (!attrs.is_one_nest()) return false;
      reduces = attrs.inner > 0 || attrs.kind == FusedKind::kCombination;
      domain = &attrs.domain;
    } else if (!options_.gathers || !is_lone_kernel(node)) {
      return false;
    }
    Dim count = domain->numel();
    return count.is_number() && count.number() <= (reduces ? options_.small : options_.small_map);
  }

  // An op that fusion found nothing for.
  static bool is_lone_kernel(const Node& node) {
    if (node.op->kind == OpKind::kReduce)
      return !node.op->payload && node.types[0].rank() > 0 && node.inputs[0].type().rank() > 0;
    return node.op->kind == OpKind::kPointwise && !node.op->random;
  }

  static bool reads_inputs(const Node& node) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [](Value v) {
      auto kind = behind_views(v.node)->op->kind;
      return kind == OpKind::kInput || kind == OpKind::kScalar;
    });
  }

  static bool reads(const Node& node, const Members& members) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](Value v) {
      return std::find(members.begin(), members.end(), behind_views(v.node)) != members.end();
    });
  }

  bool has_room(const Members& members, const Node& node) const {
    if (members.size() >= options_.most_siblings) return false;
    size_t operands = node.inputs.size() + node.types.size();
    for (auto* m : members) operands += m->inputs.size() + m->types.size();
    return operands <= options_.most_operands;
  }

  static bool is_of_one_piece(const Members& members, const Node& node) {
    return members.empty() || members.front()->marks.piece == node.marks.piece;
  }

  bool fits(const Members& members, const Node& node) const {
    return has_room(members, node) && !reads(node, members) && is_of_one_piece(members, node);
  }

  // The node as a kernel, which an op by itself is not yet.
  static void add_kernel(Extraction& body, const Node& node) {
    if (node.op == &fused_op()) {
      body.copy(node);
      return;
    }
    Extraction own([](const Node&) { return false; });
    own.copy(node);
    const bool reduces = node.op->kind == OpKind::kReduce;
    const size_t tail = reduces ? reduced_tail(node) : 0;
    const Value result = node.result();
    FusedAttrs attrs{.kind = reduces && tail == 0 ? FusedKind::kCombination : FusedKind::kRows,
                     .body = SubGraph(own.finish({&result, 1})),
                     .domain = reduces ? node.inputs[0].type().shape : node.types[0].shape,
                     .inner = int64_t(tail)};
    std::vector<Value> operands;
    for (auto& v : own.operands()) operands.push_back(body(v));
    body.set(result, body.graph().add_typed(fused_op(), std::move(operands), attrs, node.types, node.where).result());
  }

  static void emit(Extraction& out, const Members& members) {
    Extraction body([](const Node&) { return false; });
    std::vector<Value> results, operands;
    std::vector<Type> types;
    std::string where = members[0]->where;
    // Equal ones (a cast of one weight, forward and again in the gradients) are one kernel.
    std::vector<Value> inner, all;
    for (auto* m : members) {
      add_kernel(body, *m);
      for (size_t r = 0; r < m->types.size(); ++r) {
        all.push_back(m->result(int(r)));
        if (std::find(inner.begin(), inner.end(), body(all.back())) != inner.end()) continue;
        inner.push_back(body(all.back()));
        results.push_back(all.back());
        types.push_back(m->types[r]);
      }
    }
    auto place_of = [&](Value v) { return int(std::find(inner.begin(), inner.end(), body(v)) - inner.begin()); };
    std::vector<int> places;
    for (auto& v : all) places.push_back(place_of(v));
    FusedAttrs attrs{.kind = FusedKind::kSiblings, .body = SubGraph(body.finish(results))};
    for (auto& v : body.operands()) operands.push_back(out(v));
    out.graph().set_marks(members[0]->marks);
    const Node& node = out.graph().add_typed(fused_op(), std::move(operands), attrs, std::move(types), where);
    for (size_t n = 0; n < all.size(); ++n) out.set(all[n], node.result(places[n]));
  }

  const Graph& graph_;
  const NestOptions& options_;
  std::vector<SiblingGroup> groups_;
  std::set<const Node*> member_;  // of them
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
