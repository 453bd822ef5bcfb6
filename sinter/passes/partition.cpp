#include "sinter/passes/partition.h"

#include <algorithm>
#include <span>

namespace sinter {

namespace {

bool is_input(const Node& node) { return node.op->kind == OpKind::kInput; }

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
  void copy(const Node& node, const Marks& marks = {}) {
    graph_.set_marks(marks);
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
        after_tangents_(descendants(joint, tangents_)) {
    for (auto& v : outputs_)
      SINTER_INTERNAL_ASSERT(!after_tangents(*v.node), "an output of the forward depends on a tangent:\n{}",
                             joint.text());
  }

  KeepQuestion question() const {
    return {.graph = joint_,
            .backward = after_tangents_,
            .for_outputs = ancestors(joint_, outputs_),
            .for_gradients = ancestors(joint_, gradients_),
            .results = {gradients_.begin(), gradients_.end()},
            .is_alive = [this](Value v) { return kept_input(v) >= 0 || is_output(v); },
            .hint = options_.hint,
            .budget = options_.recompute.budget,
            .seconds = options_.recompute.seconds};
  }

  Partition run() const {
    KeepQuestion question = this->question();
    KeepAnswer answer = choose_kept(question);
    Partition result;
    result.forward = forward(answer, result);
    result.backward = backward(question, answer);
    return result;
  }

 private:
  bool after_tangents(const Node& node) const { return after_tangents_[size_t(node.id)]; }

  // The position among the inputs of the forward, if its memory keeps the value; else -1.
  int kept_input(Value v) const {
    if (!is_input(*v.node)) return -1;
    auto at = std::ranges::find(inputs_, v) - inputs_.begin();
    return std::ranges::count(options_.overwritten, size_t(at)) == 0 ? int(at) : -1;
  }
  bool is_output(Value v) const { return std::ranges::count(outputs_, v) > 0; }

  // Also tells the partition where the saved values are found.
  Graph forward(const KeepAnswer& answer, Partition& result) const {
    std::vector<Value> outputs(outputs_.begin(), outputs_.end());
    for (auto& v : answer.kept) {
      if (int input = kept_input(v); input >= 0) {
        result.saved.push_back({.input = input});
        continue;
      }
      auto at = std::ranges::find(outputs, v) - outputs.begin();
      result.saved.push_back({.output = int(at)});
      if (size_t(at) < outputs.size()) continue;
      outputs.push_back(v);
      result.saved_bytes_hint += bytes_of(v.type(), options_.hint);
    }
    std::vector<Value> wanted = outputs;
    for (auto& node : joint_.nodes())
      if (node.op->random && !after_tangents(node)) wanted.push_back(node.result());
    NodeFlags live = ancestors(joint_, wanted);
    Copier copier(joint_);
    for (auto& v : inputs_) copier.add_input(v);
    for (auto& node : joint_.nodes())
      if (live[size_t(node.id)] && !is_input(node)) copier.copy(node, node.marks);
    return copier.finish(outputs);
  }

  Graph backward(const KeepQuestion& question, const KeepAnswer& answer) const {
    Copier copier(joint_);
    for (auto& v : answer.kept) copier.add_input(v);
    for (auto& v : tangents_) copier.add_input(v);
    for (auto* node : backward_order(question, answer))
      if (!is_input(*node)) copier.copy(*node);
    return copier.finish(gradients_);
  }

  const Graph& joint_;
  std::span<const Value> inputs_, tangents_, outputs_, gradients_;
  const PartitionOptions& options_;
  const NodeFlags after_tangents_;
};

}  // namespace

Partition partition(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                    const PartitionOptions& options) {
  SINTER_INTERNAL_ASSERT(forward_inputs <= joint.inputs().size() && forward_outputs <= joint.outputs().size(),
                         "a joint graph of {} inputs and {} outputs has no forward of {} and {}", joint.inputs().size(),
                         joint.outputs().size(), forward_inputs, forward_outputs);
  return Partitioner(joint, forward_inputs, forward_outputs, options).run();
}

std::vector<KeepPoint> partition_curve(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                                       const PartitionOptions& options, std::span<const double> budgets) {
  return keep_curve(Partitioner(joint, forward_inputs, forward_outputs, options).question(), budgets);
}

}  // namespace sinter
