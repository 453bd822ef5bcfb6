#include "sinter/engine/executable/specialize.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/graph/trace.h"
#include "sinter/graph/verify.h"

namespace sinter {

namespace {

// Records the graph once more, composites that no template takes by their bodies. Nodes keep the user's line.
class Specializer : public GraphTracer {
 public:
  Specializer(const Program& program, std::span<const int64_t> sizes) : program_(program), sizes_(sizes) {}

  Specialized run() {
    TracerScope scope(this);
    const Graph& from = program_.graph;
    results_.resize(from.nodes().size());
    for (size_t i = 0; i < from.inputs().size(); ++i) {
      auto& v = from.inputs()[i];
      Type type = v.type();
      for (auto& d : type.shape) d = number(d);
      Tensor given = add_input(type, v.node->name);
      bool frozen = i < program_.frozen.size() && program_.frozen[i].defined();
      results_[size_t(v.node->id)] = {frozen ? program_.frozen[i] : given};
    }
    for (auto& node : from.nodes()) copy(node);
    std::vector<Value> outputs;
    for (auto& v : from.outputs()) outputs.push_back(argument(v));
    graph().set_outputs(std::move(outputs));
    return {std::move(graph()), captured()};
  }

  std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override {
    if (op.kind == OpKind::kComposite) {
      auto types = eager::operand_types(inputs);
      // A number of the caller is a weak value of the graph.
      for (size_t i = 0; i < inputs.size(); ++i)
        if (!inputs[i].is_scalar()) types[i] = value_of(inputs[i].tensor()).type();
      if (!eager::has_own_kernel(OpCall{op, types, attrs})) return op.decompose(inputs, attrs);
    }
    std::vector<Value> values;
    for (auto& arg : inputs)
      values.push_back(arg.is_scalar() ? graph().add_scalar(arg.scalar()) : value_of(arg.tensor()));
    const Node& node = graph().add(op, std::move(values), attrs, where_);
    std::vector<Tensor> results;
    for (size_t i = 0; i < node.types.size(); ++i) results.push_back(tensor_of(node.result(int(i))));
    return results;
  }

 private:
  Dim number(const Dim& d) const {
    return d.substitute([&](const std::string& name) {
      auto it = std::find(program_.symbols.begin(), program_.symbols.end(), name);
      check(it != program_.symbols.end(), "the graph has a symbolic size {} that the program does not list", name);
      return Dim(sizes_[size_t(it - program_.symbols.begin())]);
    });
  }

  Value argument(Value v) {
    if (v.node->op->kind == OpKind::kScalar) return graph().add_scalar(v.node->attrs.as<ScalarAttrs>().value);
    return value_of(results_[size_t(v.node->id)][size_t(v.index)]);
  }

  void copy(const Node& node) {
    if (node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar) return;
    where_ = node.where;
    std::vector<TensorArg> inputs;
    for (auto& v : node.inputs) {
      if (v.node->op->kind == OpKind::kScalar)
        inputs.emplace_back(v.node->attrs.as<ScalarAttrs>().value);
      else
        inputs.emplace_back(results_[size_t(v.node->id)][size_t(v.index)]);
    }
    results_[size_t(node.id)] = record(*node.op, inputs, node.attrs.map_dims([&](const Dim& d) { return number(d); }));
  }

  const Program& program_;
  std::span<const int64_t> sizes_;
  std::vector<TensorList> results_;
  std::string where_;
};

}  // namespace

bool depends_on_data(const Graph& graph, std::span<const std::string> symbols) {
  for (auto& node : graph.nodes())
    for (auto& type : node.types)
      for (auto& d : type.shape)
        for (auto& name : d.symbols())
          if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) return true;
  return false;
}

Device device_of(const Graph& graph) {
  for (auto& node : graph.nodes())
    for (auto& type : node.types)
      if (!type.weak && !type.device.is_cpu()) return type.device;
  return {};
}

bool is_on_one_device(const Graph& graph) {
  Device device = device_of(graph);
  for (auto& node : graph.nodes())
    for (auto& type : node.types)
      if (!type.weak && type.device != device) return false;
  return true;
}

bool is_plannable(const Graph& graph, std::span<const std::string> symbols) {
  return !depends_on_data(graph, symbols) && is_on_one_device(graph);
}

namespace {

bool is_special(const Program& program) {
  auto defined = [](const Tensor& t) { return t.defined(); };
  if (!program.symbols.empty() || std::any_of(program.frozen.begin(), program.frozen.end(), defined)) return false;
  for (auto& node : program.graph.nodes()) {
    if (node.op->kind == OpKind::kComposite && !eager::has_own_kernel(OpCall{*node.op, types_of(node.inputs), node.attrs})) return false;
    for (auto& type : node.types)
      if (!type.shape.is_static()) return false;
  }
  return true;
}

}  // namespace

Specialized specialize(const Program& program, std::span<const int64_t> sizes) {
  if (is_special(program)) return {};
  return Specializer(program, sizes).run();
}

}  // namespace sinter
