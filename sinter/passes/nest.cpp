#include "sinter/passes/nest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sinter/base/error.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/known_ops.h"

namespace sinter {

namespace {

const Node* behind_views(const Node* node) {
  while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
  return node;
}

// Whether all views on the way to what it is a view of keep its elements in their order.
bool is_reshaped(const Node* node) {
  for (; node->op->kind == OpKind::kView; node = node->inputs[0].node)
    if (!known_ops().is_reshape(*node->op)) return false;
  return true;
}

bool is_free(const Node& node) {
  auto kind = node.op->kind;
  return kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView;
}

// Copies a graph node by node; what a pass changes it adds itself.
class Copier {
 public:
  explicit Copier(const Graph& from) : from_(from), values_(from.nodes().size()) {
    for (auto& v : from.inputs()) values_[size_t(v.node->id)] = {out_.add_input(v.type(), v.node->name)};
  }

  Graph& graph() { return out_; }

  Value value(Value old) {
    if (values_[size_t(old.node->id)].empty()) copy(*old.node);
    return values_[size_t(old.node->id)][size_t(old.index)];
  }
  void set(const Node& old, std::vector<Value> made) { values_[size_t(old.id)] = std::move(made); }
  void copy(const Node& node) {
    auto& made = values_[size_t(node.id)];
    if (!made.empty()) return;
    std::vector<Value> inputs;
    for (auto& v : node.inputs) inputs.push_back(value(v));
    const Node& copied = out_.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
    for (size_t i = 0; i < node.types.size(); ++i) values_[size_t(node.id)].push_back(copied.result(int(i)));
  }
  Graph finish() {
    std::vector<Value> outputs;
    for (auto& v : from_.outputs()) outputs.push_back(value(v));
    out_.set_outputs(std::move(outputs));
    return std::move(out_);
  }

 private:
  const Graph& from_;
  Graph out_;
  std::vector<std::vector<Value>> values_;
};

// The body of a new fused node: values of the graph outside become its operands.
class BodyMaker {
 public:
  // The operand for a value of the graph outside.
  Value operand(Value outside) {
    if (outside.node->op->kind == OpKind::kScalar) return body_.add_scalar(outside.node->attrs.as<ScalarAttrs>().value);
    auto [it, fresh] = known_.try_emplace({outside.node, outside.index});
    if (fresh) {
      it->second = body_.add_input(outside.type());
      outside_.push_back(outside);
    }
    return it->second;
  }
  Graph& body() { return body_; }
  const std::vector<Value>& outside() const { return outside_; }

  // The node itself, over operands that are in the body already.
  const Node& add(const Node& node, std::vector<Value> inputs) {
    return body_.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
  }

 private:
  Graph body_;
  std::map<std::pair<const Node*, int>, Value> known_;
  std::vector<Value> outside_;
};

// --- prologues -------------------------------------------------------------------------------------------------------

class Prologues {
 public:
  Prologues(const Graph& graph, const NestOptions& options) : graph_(graph), options_(options) {}

  // Nothing where there is none.
  std::optional<Graph> run() {
    find();
    if (hosts_.empty()) return std::nullopt;
    Copier copier(graph_);
    for (auto& node : graph_.nodes()) {
      auto kind = node.op->kind;
      if (kind == OpKind::kInput || kind == OpKind::kScalar || taken_.contains(behind_views(&node))) continue;
      auto it = hosts_.find(&node);
      if (it == hosts_.end())
        copier.copy(node);
      else
        take_in(copier, node, it->second);
    }
    return copier.finish();
  }

 private:
  bool is_contraction(const Node& node) const { return options_.takes_epilogue && options_.takes_epilogue(node); }

  bool has_contraction(const Node& node) const {
    if (is_contraction(node)) return true;
    if (node.op != &fused_op()) return false;
    auto& nodes = node.attrs.as<FusedAttrs>().body->nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](auto& n) { return is_contraction(n); });
  }

  // Whether operand `i` is the left one of every product of the node that reads it, and nothing else reads it.
  bool is_left(const Node& node, size_t i) const {
    if (is_contraction(node)) return i == 0 && !(node.inputs[1] == node.inputs[0]);
    auto& body = *node.attrs.as<FusedAttrs>().body;
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
      if (node->op != &fused_op() || node->types.size() != 1 || count != 1 || has_contraction(*node)) continue;
      if (!host || !has_contraction(*host) || !is_left(*host, i) || hosts_.contains(host)) continue;
      // What a scatter leaves as it was, is in its result only where that has memory of its own.
      if (node->attrs.as<FusedAttrs>().body->outputs()[0].node->op->kind == OpKind::kScatter) continue;
      // The product takes the kernel's elements in the order in which it computes them.
      if (!is_reshaped(host->inputs[i].node)) continue;
      auto& shape = host->inputs[i].type().shape;
      if (shape.size() != 2 || !shape[0].is_number() || shape[0].number() > options_.prologue_rows) continue;
      if (host->inputs.size() + node->inputs.size() > options_.most_operands) continue;
      hosts_[host] = i;
      taken_.insert(node);
    }
  }

  void take_in(Copier& copier, const Node& host, size_t left) {
    BodyMaker maker;
    auto inside = [&](auto& self, Value v) -> Value {
      if (!taken_.contains(behind_views(v.node))) return maker.operand(v);
      std::vector<Value> inputs;
      for (auto& in : v.node->inputs)
        inputs.push_back(v.node->op->kind == OpKind::kView ? self(self, in) : maker.operand(in));
      return maker.add(*v.node, std::move(inputs)).result(v.index);
    };
    std::vector<Value> results;
    FusedAttrs attrs;
    if (is_contraction(host)) {
      attrs.domain = host.types[0].shape;
      results = {maker.add(host, {inside(inside, host.inputs[0]), maker.operand(host.inputs[1])}).result()};
    } else {
      auto& old = host.attrs.as<FusedAttrs>();
      attrs.domain = old.domain;
      attrs.inner = old.inner;
      std::map<std::pair<const Node*, int>, Value> made;
      for (size_t i = 0; i < host.inputs.size(); ++i) {
        Value input = old.body->inputs()[i];
        made[{input.node, 0}] = i == left ? inside(inside, host.inputs[i]) : maker.operand(host.inputs[i]);
      }
      for (auto& node : old.body->nodes()) {
        if (node.op->kind == OpKind::kInput) continue;
        if (node.op->kind == OpKind::kScalar) {
          made[{&node, 0}] = maker.body().add_scalar(node.attrs.as<ScalarAttrs>().value);
          continue;
        }
        std::vector<Value> inputs;
        for (auto& v : node.inputs) inputs.push_back(made.at({v.node, v.index}));
        made[{&node, 0}] = maker.add(node, std::move(inputs)).result();
      }
      for (auto& v : old.body->outputs()) results.push_back(made.at({v.node, v.index}));
    }
    maker.body().set_outputs(std::move(results));
    attrs.body = SubGraph(std::move(maker.body()));
    std::vector<Value> operands, outputs;
    for (auto& v : maker.outside()) operands.push_back(copier.value(v));
    const Node& node = copier.graph().add_typed(fused_op(), std::move(operands), attrs, host.types, host.where);
    for (size_t r = 0; r < host.types.size(); ++r) outputs.push_back(node.result(int(r)));
    copier.set(host, std::move(outputs));
  }

  const Graph& graph_;
  const NestOptions& options_;
  std::map<const Node*, size_t> hosts_;  // and which of their operands
  std::set<const Node*> taken_;
};

// --- siblings --------------------------------------------------------------------------------------------------------

class Siblings {
 public:
  Siblings(const Graph& graph, const NestOptions& options) : graph_(graph), options_(options) {}

  // Nothing where there are none.
  std::optional<Graph> run() {
    find();
    if (by_last_.empty()) return std::nullopt;
    Copier copier(graph_);
    for (auto& node : graph_.nodes()) {
      if (is_free(node)) continue;  // made when they are read
      if (auto it = by_last_.find(&node); it != by_last_.end())
        emit(copier, it->second);
      else if (!member_.contains(&node))
        copier.copy(node);
    }
    return copier.finish();
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
    if (node.op != &fused_op()) return false;
    auto& attrs = node.attrs.as<FusedAttrs>();
    for (auto& n : attrs.body->nodes())
      if (n.op == &fused_op() || (options_.takes_epilogue && options_.takes_epilogue(n))) return false;
    Dim count = attrs.domain.numel();
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

  void emit(Copier& copier, const Members& members) {
    BodyMaker maker;
    std::vector<Value> results;
    std::vector<Type> types;
    for (auto* m : members) {
      std::vector<Value> inputs;
      for (auto& v : m->inputs) inputs.push_back(maker.operand(v));
      const Node& inside = maker.add(*m, std::move(inputs));
      for (size_t r = 0; r < m->types.size(); ++r) {
        results.push_back(inside.result(int(r)));
        types.push_back(m->types[r]);
      }
    }
    maker.body().set_outputs(std::move(results));
    FusedAttrs attrs{SubGraph(std::move(maker.body())), {}, 0};
    std::vector<Value> operands;
    for (auto& v : maker.outside()) operands.push_back(copier.value(v));
    const Node& node = copier.graph().add_typed(fused_op(), std::move(operands), attrs, std::move(types), members[0]->where);
    int at = 0;
    for (auto* m : members) {
      std::vector<Value> outputs;
      for (size_t r = 0; r < m->types.size(); ++r) outputs.push_back(node.result(at++));
      copier.set(*m, std::move(outputs));
    }
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
