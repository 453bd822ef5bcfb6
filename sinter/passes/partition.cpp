#include "sinter/passes/partition.h"

#include <algorithm>
#include <span>

#include "sinter/ops/known_ops.h"
#include "sinter/passes/min_cut.h"

namespace sinter {

namespace {

// A flag a node.
using Marks = std::vector<bool>;

// What the values are computed from, themselves included.
Marks ancestors(const Graph& graph, std::span<const Value> values) {
  Marks found(graph.nodes().size());
  for (auto& v : values) found[size_t(v.node->id)] = true;
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it)
    if (found[size_t(it->id)])
      for (auto& v : it->inputs) found[size_t(v.node->id)] = true;
  return found;
}

// What is computed from the values, themselves included.
Marks descendants(const Graph& graph, std::span<const Value> values) {
  Marks found(graph.nodes().size());
  for (auto& v : values) found[size_t(v.node->id)] = true;
  for (auto& node : graph.nodes())
    for (auto& v : node.inputs)
      if (found[size_t(v.node->id)]) found[size_t(node.id)] = true;
  return found;
}

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

// Builds a graph out of nodes of another.
class Copier {
 public:
  explicit Copier(const Graph& from) : values_(from.nodes().size()) {}

  // The value is given from outside.
  void add_input(Value v) {
    auto& results = values_[size_t(v.node->id)];
    results.resize(v.node->types.size());
    results[size_t(v.index)] = graph_.add_input(v.type(), v.node->name);
  }
  void copy(const Node& node) {
    const Node& made = graph_.add_typed(*node.op, map(node.inputs), node.attrs, node.types, node.where);
    auto& results = values_[size_t(node.id)];
    for (size_t i = 0; i < node.types.size(); ++i) results.push_back(made.result(int(i)));
  }
  Graph finish(std::span<const Value> outputs) {
    graph_.set_outputs(map(outputs));
    graph_.verify();
    return std::move(graph_);
  }

 private:
  std::vector<Value> map(std::span<const Value> old) const {
    std::vector<Value> out;
    for (auto& v : old) out.push_back(values_[size_t(v.node->id)][size_t(v.index)]);
    return out;
  }

  Graph graph_;
  std::vector<std::vector<Value>> values_;  // by node of the other graph
};

class Partitioner {
 public:
  Partitioner(const Graph& joint, size_t forward_inputs, size_t forward_outputs, const PartitionOptions& options)
      : joint_(joint),
        inputs_(std::span(joint.inputs()).first(forward_inputs)),
        tangents_(std::span(joint.inputs()).subspan(forward_inputs)),
        outputs_(std::span(joint.outputs()).first(forward_outputs)),
        gradients_(std::span(joint.outputs()).subspan(forward_outputs)),
        options_(options),
        after_tangents_(descendants(joint, tangents_)),
        for_outputs_(ancestors(joint, outputs_)),
        for_gradients_(ancestors(joint, gradients_)) {
    for (auto& v : outputs_)
      SINTER_INTERNAL_ASSERT(!after_tangents(*v.node), "an output of the forward depends on a tangent:\n{}",
                             joint.text());
  }

  Partition run() {
    find_fixed();
    cut();
    Partition result;
    result.forward = forward(result);
    result.backward = backward();
    return result;
  }

 private:
  bool after_tangents(const Node& node) const { return after_tangents_[size_t(node.id)]; }
  bool for_outputs(const Node& node) const { return for_outputs_[size_t(node.id)]; }
  bool for_gradients(const Node& node) const { return for_gradients_[size_t(node.id)]; }

  int64_t bytes(const Type& type) const {
    // A double does not overflow; the bound leaves room for prices and their sum.
    double count = double(item_size(type.dtype));
    for (auto& size : type.shape) count *= double(number(size));
    return int64_t(std::clamp(count, 1.0, 0x1p40));
  }
  int64_t number(const Dim& size) const {
    if (size.is_number()) return size.number();
    return options_.hint ? options_.hint(size) : size.substitute([](const std::string&) { return Dim(64); }).number();
  }

  // The position among the inputs of the forward, if its memory keeps the value; else -1.
  int kept_input(Value v) const {
    if (!is_input(*v.node)) return -1;
    auto at = std::ranges::find(inputs_, v) - inputs_.begin();
    return std::ranges::count(options_.overwritten, size_t(at)) == 0 ? int(at) : -1;
  }
  bool is_output(Value v) const { return std::ranges::count(outputs_, v) > 0; }

  // What gradients ask to be equal to something: which element was the largest.
  Marks compared() const {
    Marks found(joint_.nodes().size());
    for (auto& node : joint_.nodes()) {
      if (node.op != &known_ops().eq || !for_gradients(node)) continue;
      for (Value v : node.inputs) {
        // A cast by the gradient rounds what was computed again otherwise than it was.
        while (v.node->op->kind == OpKind::kView || v.node->op == &known_ops().cast) v = v.node->inputs[0];
        if (is_floating(v.type().dtype) && !is_inner_number(v)) found[size_t(v.node->id)] = true;
      }
    }
    return found;
  }

  // Finds the nodes that only the forward runs.
  void find_fixed() {
    fixed_.resize(joint_.nodes().size());
    Marks exact = compared();
    std::vector<int> chain(joint_.nodes().size());  // ops run in a row to compute the node again
    for (auto& node : joint_.nodes()) {
      if (after_tangents(node)) continue;
      bool again = for_outputs(node), free = node.op->kind == OpKind::kView || is_inner_number(node.result());
      int length = 0;
      for (auto& v : node.inputs) length = std::max(length, chain[size_t(v.node->id)]);
      if (again && !free) ++length;
      bool fixed = is_input(node) || node.op->random || (again && (!may_run_again(node) || length > kLongestChain || exact[size_t(node.id)]));
      fixed_[size_t(node.id)] = fixed;
      chain[size_t(node.id)] = fixed ? 0 : length;
    }
  }

  // What saving the value costs: its bytes, and far below them what decides between equals.
  int64_t price(Value v) const {
    constexpr int64_t kByte = 256;
    if (is_inner_number(v)) return MinCut::kInfinite;
    if (kept_input(v) >= 0 || is_output(v)) return 1;
    bool rather_not = v.node->op->kind == OpKind::kView || !for_outputs(*v.node);
    return bytes(v.type()) * kByte + (rather_not ? 1 : 0);
  }

  // A node is a vertex, followed by one for each result. On the sink's side they are at hand in the backward: a node
  // because it runs there, a result because its node does or because the edge between them is cut: it is saved.
  void cut() {
    MinCut cut;
    int source = cut.add_vertices(), sink = cut.add_vertices();
    std::vector<int> vertex(joint_.nodes().size(), -1);
    auto needs = [&](int user, Value v) {
      if (!after_tangents(*v.node)) cut.add_edge(vertex[size_t(v.node->id)] + 1 + v.index, user, MinCut::kInfinite);
    };
    for (auto& node : joint_.nodes()) {
      if (!for_gradients(node)) continue;
      int self = sink;
      if (!after_tangents(node)) {
        self = vertex[size_t(node.id)] = cut.add_vertices(1 + int(node.types.size()));
        if (fixed_[size_t(node.id)]) cut.add_edge(source, self, MinCut::kInfinite);
        for (int i = 0; i < int(node.types.size()); ++i) cut.add_edge(self, self + 1 + i, price(node.result(i)));
      }
      for (auto& v : node.inputs) needs(self, v);
    }
    for (auto& v : gradients_) needs(sink, v);

    Marks at_hand = cut.sink_side(source, sink);
    in_backward_.resize(joint_.nodes().size());
    for (auto& node : joint_.nodes()) {
      if (!for_gradients(node)) continue;
      size_t self = size_t(vertex[size_t(node.id)]);
      in_backward_[size_t(node.id)] = after_tangents(node) || at_hand[self];
      if (in_backward_[size_t(node.id)]) continue;
      for (size_t i = 0; i < node.types.size(); ++i)
        if (at_hand[self + 1 + i]) saved_.push_back(node.result(int(i)));
    }
  }

  // Also tells the partition where the saved values are found.
  Graph forward(Partition& result) const {
    std::vector<Value> outputs(outputs_.begin(), outputs_.end());
    for (auto& v : saved_) {
      if (int input = kept_input(v); input >= 0) {
        result.saved.push_back({.input = input});
        continue;
      }
      auto at = std::ranges::find(outputs, v) - outputs.begin();
      result.saved.push_back({.output = int(at)});
      if (size_t(at) < outputs.size()) continue;
      outputs.push_back(v);
      result.saved_bytes_hint += bytes(v.type());
    }
    std::vector<Value> wanted = outputs;
    for (auto& node : joint_.nodes())
      if (node.op->random && !after_tangents(node)) wanted.push_back(node.result());
    Marks live = ancestors(joint_, wanted);
    Copier copier(joint_);
    for (auto& v : inputs_) copier.add_input(v);
    for (auto& node : joint_.nodes())
      if (live[size_t(node.id)] && !is_input(node)) copier.copy(node);
    return copier.finish(outputs);
  }

  Graph backward() const {
    Copier copier(joint_);
    for (auto& v : saved_) copier.add_input(v);
    for (auto& v : tangents_) copier.add_input(v);
    for (auto& node : joint_.nodes())
      if (in_backward_[size_t(node.id)] && !is_input(node)) copier.copy(node);
    return copier.finish(gradients_);
  }

  const Graph& joint_;
  std::span<const Value> inputs_, tangents_, outputs_, gradients_;
  const PartitionOptions& options_;
  Marks after_tangents_, for_outputs_, for_gradients_, fixed_, in_backward_;
  std::vector<Value> saved_;
};

}  // namespace

Partition partition(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                    const PartitionOptions& options) {
  SINTER_INTERNAL_ASSERT(forward_inputs <= joint.inputs().size() && forward_outputs <= joint.outputs().size(),
                         "a joint graph of {} inputs and {} outputs has no forward of {} and {}", joint.inputs().size(),
                         joint.outputs().size(), forward_inputs, forward_outputs);
  return Partitioner(joint, forward_inputs, forward_outputs, options).run();
}

}  // namespace sinter
