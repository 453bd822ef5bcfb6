#include "sinter/passes/keep.h"

#include <algorithm>
#include <climits>

#include "sinter/ops/known_ops.h"
#include "sinter/passes/min_cut.h"

namespace sinter {

NodeFlags ancestors(const Graph& graph, std::span<const Value> values) {
  NodeFlags found(graph.nodes().size());
  for (auto& v : values) found[size_t(v.node->id)] = true;
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it)
    if (found[size_t(it->id)])
      for (auto& v : it->inputs) found[size_t(v.node->id)] = true;
  return found;
}

NodeFlags descendants(const Graph& graph, std::span<const Value> values) {
  NodeFlags found(graph.nodes().size());
  for (auto& v : values) found[size_t(v.node->id)] = true;
  for (auto& node : graph.nodes())
    for (auto& v : node.inputs)
      if (found[size_t(v.node->id)]) found[size_t(node.id)] = true;
  return found;
}

int64_t bytes_of(const Type& type, const std::function<int64_t(const Dim& size)>& hint) {
  auto number = [&](const Dim& size) {
    if (size.is_number()) return size.number();
    return hint ? hint(size) : size.substitute([](const std::string&) { return Dim(64); }).number();
  };
  // A double does not overflow; the bound leaves room for prices and their sum.
  double count = double(item_size(type.dtype));
  for (auto& size : type.shape) count *= double(number(size));
  return int64_t(std::clamp(count, 1.0, 0x1p40));
}

namespace {

bool is_input(const Node& node) { return node.op->kind == OpKind::kInput; }
// A number that is no input exists only inside a graph.
bool is_inner_number(Value v) { return v.type().weak && !is_input(*v.node); }

bool may_run_again(const Node& node) {
  switch (node.op->kind) {
    case OpKind::kScalar:
    case OpKind::kPointwise:
    case OpKind::kView: return !node.op->random;
    case OpKind::kLoop: return !node.op->random && node.op->combine == Combine::kNone;
    default: return is_inner_number(node.result());
  }
}

// Whether an op that may not run again for nothing may do so for a budget.
bool may_run_for_budget(const Node& node) {
  switch (node.op->kind) {
    case OpKind::kInput:
    case OpKind::kOpaque:
    case OpKind::kScatter: return false;
    default: return true;
  }
}
// One that takes memory of its own wherever it runs.
bool is_expensive(const Node& node) {
  return !may_run_again(node) && !node.op->random && node.op->kind != OpKind::kReduce;
}

class Chooser {
 public:
  explicit Chooser(const KeepQuestion& question)
      : q_(question),
        nodes_(question.graph.nodes().size()),
        exact_(compared()),
        leaves_region_(leaving()),
        stored_(stored()),
        dropped_(nodes_) {}

  KeepAnswer run() {
    KeepAnswer least = cut();
    if (q_.budget >= 1) return least;
    auto candidates = by_time_for_bytes(least);
    const int64_t most = int64_t(q_.budget * double(least.bytes));
    // More candidates never keep more.
    size_t low = 0, high = candidates.size();
    while (low < high) {
      size_t count = (low + high) / 2;
      if (cut_without(candidates, count).bytes <= most)
        high = count;
      else
        low = count + 1;
    }
    return cut_without(candidates, low);
  }

 private:
  static bool is(const NodeFlags& flags, const Node& node) { return flags[size_t(node.id)]; }

  // What gradients ask to be equal to something: which element was the largest.
  NodeFlags compared() const {
    NodeFlags found(nodes_);
    for (auto& node : q_.graph.nodes()) {
      if (node.op != &known_ops().eq || !is(q_.for_gradients, node)) continue;
      for (Value v : node.inputs) {
        // A cast by the gradient rounds what was computed again otherwise than it was.
        while (v.node->op->kind == OpKind::kView || v.node->op == &known_ops().cast) v = v.node->inputs[0];
        if (is_floating(v.type().dtype) && !is_inner_number(v)) found[size_t(v.node->id)] = true;
      }
    }
    return found;
  }

  // Of a call of checkpoint(): what others of the forward read.
  NodeFlags leaving() const {
    NodeFlags found(nodes_);
    for (auto& node : q_.graph.nodes()) {
      for (size_t i = 0; node.marks.region && i < node.types.size(); ++i)
        if (q_.is_alive(node.result(int(i)))) found[size_t(node.id)] = true;
      if (is(q_.backward, node)) continue;
      for (auto& v : node.inputs)
        if (v.node->marks.region && v.node->marks.region != node.marks.region) found[size_t(v.node->id)] = true;
    }
    return found;
  }

  // Inside a call of checkpoint().
  bool is_not_kept(const Node& node) const {
    bool settled = !q_.settled.empty() && is(q_.settled, node);
    return node.marks.region && !is(leaves_region_, node) && !is(exact_, node) && !settled && may_run_for_budget(node);
  }

  // The nodes that only the forward runs.
  NodeFlags fixed() const {
    NodeFlags found(nodes_);
    std::vector<int> chain(nodes_), expensive(nodes_);  // ops run in a row to compute the node again
    for (auto& node : q_.graph.nodes()) {
      if (is(q_.backward, node)) continue;
      const size_t id = size_t(node.id);
      bool again = is(q_.for_outputs, node), free = node.op->kind == OpKind::kView || is_inner_number(node.result());
      for (auto& v : node.inputs) {
        chain[id] = std::max(chain[id], chain[size_t(v.node->id)]);
        expensive[id] = std::max(expensive[id], expensive[size_t(v.node->id)]);
      }
      if (again && !free) ++chain[id];
      if (again && is_expensive(node)) {
        ++expensive[id];
        chain[id] = 0;
      }
      bool allowed = is(dropped_, node) ? expensive[id] <= kMostExpensive : may_run_again(node);
      bool fixed = is_input(node) || (!q_.settled.empty() && is(q_.settled, node)) || (node.op->random && !allowed) ||
                   (again && (!allowed || chain[id] > kLongestChain || is(exact_, node) || is(leaves_region_, node)));
      if (is_not_kept(node)) fixed = false;
      found[id] = fixed;
      if (fixed) chain[id] = expensive[id] = 0;
    }
    return found;
  }

  // When the backward reads a node of the forward first and last, by its own nodes: through what runs again, too.
  struct Reads {
    int first, last;
  };
  std::vector<Reads> reads_in_backward(const KeepAnswer& answer) const {
    std::vector<Reads> reads(nodes_, {INT_MAX, -1});
    auto& nodes = q_.graph.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!is(answer.in_backward, *node)) continue;
      Reads now = is(q_.backward, *node) ? Reads{node->id, node->id} : reads[size_t(node->id)];
      for (auto& v : node->inputs) {
        Reads& of = reads[size_t(v.node->id)];
        of = {std::min(of.first, now.first), std::max(of.last, now.last)};
      }
    }
    return reads;
  }

  // What a budget may let run again, that first which takes the least time for the bytes it saves. What the backward reads
  // before it is through with as many bytes of other values saves less: it is there again before there is room.
  std::vector<const Node*> by_time_for_bytes(const KeepAnswer& least) const {
    SINTER_INTERNAL_ASSERT(q_.seconds, "a budget needs to know what ops take");
    auto reads = reads_in_backward(least);
    auto bytes_before = [&](int now) {
      double bytes = 0;
      for (auto& v : least.kept)
        if (!q_.is_alive(v) && reads[size_t(v.node->id)].last < now) bytes += double(bytes_of(v.type(), q_.hint));
      return bytes;
    };
    std::vector<std::pair<double, const Node*>> found;
    for (auto& node : q_.graph.nodes()) {
      if (is(q_.backward, node) || !is(q_.for_gradients, node) || may_run_again(node) || !may_run_for_budget(node)) continue;
      double bytes = 0;
      for (auto& type : node.types) bytes += double(bytes_of(type, q_.hint));
      double saved = std::max(1.0, std::min(bytes, bytes_before(reads[size_t(node.id)].first)));
      found.emplace_back(q_.seconds(node) / saved, &node);
    }
    std::ranges::stable_sort(found, {}, [](auto& each) { return each.first; });
    std::vector<const Node*> out;
    for (auto& [ratio, node] : found) out.push_back(node);
    return out;
  }

  KeepAnswer cut_without(std::span<const Node* const> candidates, size_t count) {
    dropped_.assign(nodes_, false);
    for (auto* node : candidates.first(count)) dropped_[size_t(node->id)] = true;
    return cut();
  }

  // What keeping the value costs: its bytes, a little more where it is stored for this alone, and far below what decides
  // between equals.
  int64_t price(Value v) const {
    constexpr int64_t kByte = 256, kStore = 8;
    if (is_inner_number(v)) return MinCut::kInfinite;
    if (q_.is_alive(v)) return 1;
    if (is_not_kept(*v.node)) return MinCut::kInfinite;
    bool rather_not = v.node->op->kind == OpKind::kView || !is(q_.for_outputs, *v.node);
    return bytes_of(v.type(), q_.hint) * (is(stored_, *v.node) ? kByte : kByte + kStore) + (rather_not ? 1 : 0);
  }

  // What no kernel of the forward hands on without storing it: what contractions and their like read, and their results where
  // something other than pointwise ops reads these.
  NodeFlags stored() const {
    NodeFlags found(nodes_);
    for (auto& node : q_.graph.nodes()) {
      if (is(q_.backward, node) || node.op->kind == OpKind::kView || may_run_again(node)) continue;
      for (Value v : node.inputs) {
        while (v.node->op->kind == OpKind::kView) v = v.node->inputs[0];
        if (is_expensive(node) || is_expensive(*v.node)) found[size_t(v.node->id)] = true;
      }
    }
    return found;
  }

  // A node is a vertex, followed by one for each result. On the sink's side they are at hand in the backward: a node
  // because it runs there, a result because its node does or because the edge between them is cut: it is kept.
  KeepAnswer cut() const {
    const NodeFlags fixed = this->fixed();
    MinCut cut;
    int source = cut.add_vertices(), sink = cut.add_vertices();
    std::vector<int> vertex(nodes_, -1);
    auto needs = [&](int user, Value v) {
      if (!is(q_.backward, *v.node)) cut.add_edge(vertex[size_t(v.node->id)] + 1 + v.index, user, MinCut::kInfinite);
    };
    for (auto& node : q_.graph.nodes()) {
      if (!is(q_.for_gradients, node)) continue;
      int self = sink;
      if (!is(q_.backward, node)) {
        self = vertex[size_t(node.id)] = cut.add_vertices(1 + int(node.types.size()));
        if (is(fixed, node)) cut.add_edge(source, self, MinCut::kInfinite);
        for (int i = 0; i < int(node.types.size()); ++i) cut.add_edge(self, self + 1 + i, price(node.result(i)));
      }
      for (auto& v : node.inputs) needs(self, v);
    }
    for (auto& v : q_.results) needs(sink, v);

    NodeFlags at_hand = cut.sink_side(source, sink);
    KeepAnswer answer;
    answer.in_backward.resize(nodes_);
    for (auto& node : q_.graph.nodes()) {
      if (!is(q_.for_gradients, node)) continue;
      size_t self = size_t(vertex[size_t(node.id)]);
      answer.in_backward[size_t(node.id)] = is(q_.backward, node) || at_hand[self];
      if (is(answer.in_backward, node)) {
        bool second = !is(q_.backward, node) && is(q_.for_outputs, node);
        if (second && q_.seconds && !may_run_again(node)) answer.seconds += q_.seconds(node);
        continue;
      }
      for (size_t i = 0; i < node.types.size(); ++i) {
        Value v = node.result(int(i));
        if (!at_hand[self + 1 + i]) continue;
        answer.kept.push_back(v);
        if (!q_.is_alive(v)) answer.bytes += bytes_of(v.type(), q_.hint);
      }
    }
    return answer;
  }

  const KeepQuestion& q_;
  const size_t nodes_;
  const NodeFlags exact_, leaves_region_, stored_;
  NodeFlags dropped_;  // runs again for the budget
};

}  // namespace

KeepAnswer choose_kept(const KeepQuestion& question) { return Chooser(question).run(); }

std::vector<KeepPoint> keep_curve(KeepQuestion question, std::span<const double> budgets) {
  std::vector<KeepPoint> points;
  for (double budget : budgets) {
    question.budget = budget;
    KeepAnswer answer = choose_kept(question);
    points.push_back({budget, answer.bytes, answer.seconds});
  }
  return points;
}

std::vector<const Node*> backward_order(const KeepQuestion& question, const KeepAnswer& answer) {
  NodeFlags placed(question.graph.nodes().size());
  std::vector<const Node*> order, pending;
  auto place = [&](const Node& last) {
    // Operands first; without recursion, since a chain may be as long as the forward.
    pending.push_back(&last);
    while (!pending.empty()) {
      const Node& node = *pending.back();
      size_t before = pending.size();
      for (auto& v : node.inputs)
        if (answer.in_backward[size_t(v.node->id)] && !placed[size_t(v.node->id)]) pending.push_back(v.node);
      if (pending.size() > before) continue;
      pending.pop_back();
      if (placed[size_t(node.id)]) continue;
      placed[size_t(node.id)] = true;
      order.push_back(&node);
    }
  };
  for (auto& node : question.graph.nodes())
    if (question.backward[size_t(node.id)] && answer.in_backward[size_t(node.id)]) place(node);
  for (auto& v : question.results)
    if (answer.in_backward[size_t(v.node->id)]) place(*v.node);
  return order;
}

}  // namespace sinter
