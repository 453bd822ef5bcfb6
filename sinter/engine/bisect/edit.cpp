#include "sinter/engine/bisect/edit.h"

#include <algorithm>
#include <set>

#include "sinter/base/error.h"
#include "sinter/graph/rewrite.h"

namespace sinter::bisection {

namespace {

class Editor {
 public:
  Editor(const Trial& trial, const Edit& edit) : trial_(trial), edit_(edit), from_(*trial.graph) {}

  Trial run() {
    std::vector<Value> outputs = edit_.outputs.empty() ? from_.outputs() : edit_.outputs;
    find_needed(outputs);
    for (auto& node : from_.nodes())
      if (needed_.contains(node.id)) copy(node);
    std::vector<Value> now;
    for (auto& v : outputs) now.push_back(value(v));
    graph_.set_outputs(std::move(now));
    Trial out{std::make_shared<const Graph>(std::move(graph_)), std::move(inputs_), trial_.symbols, trial_.sizes, {}};
    for (auto& v : outputs) out.writes.push_back(written_into(v));
    if (std::all_of(out.writes.begin(), out.writes.end(), [](int i) { return i < 0; })) out.writes.clear();
    return out;
  }

 private:
  Value resolved(Value v) const {
    for (auto it = edit_.instead.find(v); it != edit_.instead.end(); it = edit_.instead.find(v)) v = it->second;
    return v;
  }

  void find_needed(const std::vector<Value>& outputs) {
    std::vector<Value> open = outputs;
    while (!open.empty()) {
      Value v = resolved(open.back());
      open.pop_back();
      bool fresh = needed_.insert(v.node->id).second;
      if (!fresh || edit_.given.contains(v)) continue;
      open.insert(open.end(), v.node->inputs.begin(), v.node->inputs.end());
    }
  }

  Value value(Value old) { return values_.at(resolved(old)); }

  Type type_of(Type type) const {
    if (edit_.sizes)
      for (auto& d : type.shape) d = edit_.sizes(d);
    return type;
  }

  void add_operand(Value old, const Type& type, const std::string& name, TrialInput operand) {
    if (operand.value.is_scalar() && !type.weak) {
      values_[old] = graph_.add_scalar(operand.value.scalar());
      return;
    }
    values_[old] = graph_.add_input(type, name);
    inputs_.push_back(std::move(operand));
  }

  void copy(const Node& node) {
    if (node.op->kind == OpKind::kInput) {
      size_t i = size_t(std::find(from_.inputs().begin(), from_.inputs().end(), node.result()) - from_.inputs().begin());
      new_place_[int(i)] = int(inputs_.size());
      Type type = type_of(node.types[0]);
      // A number stands in the graph itself.
      if (trial_.inputs[i].value.is_scalar()) type.weak = false;
      return add_operand(node.result(), type, node.name, edit_.inputs ? edit_.inputs(i, trial_.inputs[i]) : trial_.inputs[i]);
    }
    bool all_given = true;
    for (size_t r = 0; r < node.types.size(); ++r) {
      auto given = edit_.given.find(node.result(int(r)));
      if (given == edit_.given.end())
        all_given = false;
      else
        add_operand(given->first, type_of(node.types[r]), "", {TensorArg(given->second)});
    }
    if (all_given) return;
    std::vector<Value> operands;
    for (auto& v : node.inputs) operands.push_back(value(v));
    const Node& now = graph_.add(*node.op, operands, edit_.sizes ? node.attrs.map_dims(edit_.sizes) : node.attrs, node.where);
    check(now.types.size() == node.types.size(), "another number of results");
    for (size_t r = 0; r < node.types.size(); ++r) values_.try_emplace(node.result(int(r)), now.result(int(r)));
  }

  int written_into(Value output) const {
    auto& outputs = from_.outputs();
    size_t j = size_t(std::find(outputs.begin(), outputs.end(), output) - outputs.begin());
    if (j >= trial_.writes.size() || trial_.writes[j] < 0) return -1;
    auto place = new_place_.find(trial_.writes[j]);
    return place == new_place_.end() ? -1 : place->second;
  }

  const Trial& trial_;
  const Edit& edit_;
  const Graph& from_;
  Graph graph_;
  std::vector<TrialInput> inputs_;
  std::set<int> needed_;
  std::unordered_map<Value, Value, Edit::Hash> values_;
  std::map<int, int> new_place_;  // of inputs
};

}  // namespace

std::optional<Trial> edited(const Trial& trial, const Edit& edit) {
  try {
    return Editor(trial, edit).run();
  } catch (const Error&) {
    return {};
  } catch (const std::out_of_range&) {
    return {};  // a value that was left out is needed after all
  }
}

}  // namespace sinter::bisection
