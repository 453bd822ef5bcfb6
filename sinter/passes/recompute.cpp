#include "sinter/passes/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/graph/nodes.h"
#include "sinter/graph/rewrite.h"

namespace sinter {

namespace {

// The phase of each node; a node is of no earlier one than what it reads.
std::vector<int> phases_of(const Graph& graph) {
  std::vector<int> phases;
  for (auto& node : graph.nodes()) {
    int phase = node.marks.phase;
    for (auto& v : node.inputs) phase = std::max(phase, phases[size_t(v.node->id)]);
    phases.push_back(phase);
  }
  return phases;
}

// One flow of gradients, and the phase before it.
class Recomputation {
 public:
  Recomputation(const Graph& graph, int flow, const RecomputeOptions& options)
      : graph_(graph),
        flow_(flow),
        options_(options),
        phases_(phases_of(graph)),
        first_(graph.nodes().size()),
        second_(graph.nodes().size()) {}

  // Nothing where nothing is computed again.
  std::optional<Graph> run() {
    KeepQuestion question = ask();
    KeepAnswer answer = choose_kept(question);
    auto order = backward_order(question, answer);
    if (std::ranges::none_of(order, [&](auto* node) { return is_forward(*node) && !is_free(*node); })) return std::nullopt;
    for (auto& v : graph_.inputs()) first_[size_t(v.node->id)] = made_.add_input(v.type(), v.node->name).node;
    for (auto& node : graph_.nodes())
      if (is_forward(node) && node.op->kind != OpKind::kInput) add(node, first_, node.marks, false);
    for (auto* node : order) {
      if (is_forward(*node))
        add(*node, second_, {.phase = flow_, .again = true, .region = node->marks.region}, true);
      else
        add(*node, first_, node->marks, true);
    }
    for (auto& node : graph_.nodes())
      if (!first_[size_t(node.id)]) add(node, first_, node.marks, false);
    made_.set_outputs(mapped(graph_.outputs(), false));
    return drop_dead_nodes(made_);
  }

  std::vector<KeepPoint> curve(std::span<const double> budgets) const { return keep_curve(ask(), budgets); }

 private:
  int phase(const Node& node) const { return phases_[size_t(node.id)]; }
  bool is_forward(const Node& node) const { return phase(node) < flow_; }

  KeepQuestion ask() const {
    std::vector<Value> flowing;
    std::set<std::pair<const Node*, int>> alive;
    auto outlives = [&](Value v) { alive.emplace(v.node, v.index); };
    for (auto& v : graph_.outputs()) outlives(v);
    for (auto& node : graph_.nodes()) {
      if (phase(node) > flow_) std::ranges::for_each(node.inputs, outlives);
      if (phase(node) == flow_) flowing.push_back(node.result());
    }
    KeepQuestion question{.graph = graph_,
                          .backward = NodeFlags(graph_.nodes().size()),
                          .for_outputs = NodeFlags(graph_.nodes().size()),
                          .for_gradients = ancestors(graph_, flowing),
                          .settled = NodeFlags(graph_.nodes().size()),
                          .results = {},
                          .is_alive = [alive](Value v) {
                            return v.node->op->kind == OpKind::kInput || alive.contains({v.node, v.index});
                          },
                          .budget = options_.budget,
                          .seconds = options_.seconds};
    for (auto& node : graph_.nodes()) {
      question.backward[size_t(node.id)] = !is_forward(node);
      question.for_outputs[size_t(node.id)] = is_forward(node);
      question.settled[size_t(node.id)] = phase(node) < flow_ - 1 && !is_free(node) && !node.types[0].weak;
    }
    return question;
  }

  std::vector<Value> mapped(const std::vector<Value>& old, bool second) const {
    std::vector<Value> out;
    for (auto& v : old) {
      const Node* made = second ? second_[size_t(v.node->id)] : nullptr;
      out.push_back((made ? made : first_[size_t(v.node->id)])->result(v.index));
    }
    return out;
  }

  // `second`: it reads what was computed a second time, where there is such.
  void add(const Node& node, std::vector<const Node*>& made, const Marks& marks, bool second) {
    made_.set_marks(marks);
    made[size_t(node.id)] = &made_.add_typed(*node.op, mapped(node.inputs, second), node.attrs, node.types, node.where);
  }

  const Graph& graph_;
  const int flow_;
  const RecomputeOptions& options_;
  const std::vector<int> phases_;
  Graph made_;
  std::vector<const Node*> first_, second_;  // by node of the old graph
};

// Puts what an optimiser makes of a gradient, pointwise, right behind the gradient: that need not wait for the others then, nor
// need they for it.
class Updates {
 public:
  explicit Updates(const Graph& graph) : graph_(graph), phases_(phases_of(graph)), place_(graph.nodes().size(), kInPlace) {}

  Graph run() {
    for (auto& v : graph_.outputs()) find(*v.node);
    std::map<int, std::vector<const Node*>> behind;
    for (auto& node : graph_.nodes())
      if (place_[size_t(node.id)] != kInPlace) behind[place_[size_t(node.id)]].push_back(&node);
    made_.resize(graph_.nodes().size());
    for (auto& v : graph_.inputs()) made_[size_t(v.node->id)] = out_.add_input(v.type(), v.node->name).node;
    for (auto& node : graph_.nodes()) {
      if (place_[size_t(node.id)] == kInPlace) add(node);
      for (auto* update : behind[node.id]) add(*update);
    }
    out_.set_outputs(mapped(graph_.outputs()));
    return std::move(out_);
  }

 private:
  static constexpr int kInPlace = -1;

  // The update that ends with this node: pointwise, of this phase, and of gradients that have just flown.
  void find(const Node& last) {
    const int phase = phases_[size_t(last.id)];
    if (phase == 0 || phase % 2 == 1) return;
    std::vector<const Node*> pending{&last};
    std::set<const Node*> update;
    int behind = -1;
    bool of_gradients = false;
    while (!pending.empty()) {
      const Node& node = *pending.back();
      pending.pop_back();
      const int its_phase = phases_[size_t(node.id)];
      if (its_phase != phase) {
        of_gradients = of_gradients || its_phase == phase - 1;
        bool there = node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar;
        if (!there) behind = std::max(behind, node.id);
        continue;
      }
      if (!update.insert(&node).second) continue;
      bool pointwise = node.op->kind == OpKind::kPointwise || is_free(node);
      if (!pointwise || node.op->random) return;
      for (auto& v : node.inputs) pending.push_back(v.node);
    }
    if (!of_gradients) return;
    for (auto* node : update) {
      int& place = place_[size_t(node->id)];
      place = place == kInPlace ? behind : std::min(place, behind);
    }
  }

  std::vector<Value> mapped(const std::vector<Value>& old) const {
    std::vector<Value> out;
    for (auto& v : old) out.push_back(made_[size_t(v.node->id)]->result(v.index));
    return out;
  }
  void add(const Node& node) {
    if (made_[size_t(node.id)]) return;
    for (auto& v : node.inputs)
      if (v.node->op->kind == OpKind::kScalar) add(*v.node);
    out_.set_marks(node.marks);
    made_[size_t(node.id)] = &out_.add_typed(*node.op, mapped(node.inputs), node.attrs, node.types, node.where);
  }

  const Graph& graph_;
  const std::vector<int> phases_;
  std::vector<int> place_;  // by node: behind which other it goes
  Graph out_;
  std::vector<const Node*> made_;
};

}  // namespace

bool has_flow(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](auto& node) { return node.marks.phase % 2 == 1; });
}

static std::set<int> flows_of(const Graph& graph) {
  std::set<int> flows;
  for (int phase : phases_of(graph))
    if (phase % 2 == 1) flows.insert(phase);
  return flows;
}

Graph recompute(const Graph& graph, const RecomputeOptions& options) {
  Graph out = drop_dead_nodes(graph);
  for (int flow : flows_of(graph))
    if (auto less = Recomputation(out, flow, options).run()) out = std::move(*less);
  return has_flow(out) ? Updates(out).run() : std::move(out);
}

std::vector<KeepPoint> recompute_curve(const Graph& graph, const RecomputeOptions& options, std::span<const double> budgets) {
  std::vector<KeepPoint> most;
  for (int flow : flows_of(graph)) {
    auto curve = Recomputation(graph, flow, options).curve(budgets);
    if (most.empty() || curve.front().bytes > most.front().bytes) most = std::move(curve);
  }
  return most;
}

}  // namespace sinter
