#include "sinter/graph/run.h"

#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

class Run {
 public:
  Run(const Graph& graph, const SizeOf& size_of, const NodeObserver& observer)
      : graph_(graph), size_of_(size_of), observer_(observer), results_(graph.nodes().size()) {
    std::vector<bool> seen(graph.nodes().size(), false);
    dies_at_.resize(graph.nodes().size());
    for (auto& v : graph.outputs()) seen[size_t(v.node->id)] = true;
    for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it)
      for (auto& v : it->inputs)
        if (!seen[size_t(v.node->id)]) {
          seen[size_t(v.node->id)] = true;
          dies_at_[size_t(it->id)].push_back(v.node->id);
        }
  }

  TensorList operator()(std::span<const TensorArg> inputs) {
    check(inputs.size() == graph_.inputs().size(), "the graph takes {} inputs, not {}", graph_.inputs().size(),
          inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) bind(graph_.inputs()[i], inputs[i]);
    for (auto& node : graph_.nodes()) {
      run(node);
      for (int id : dies_at_[size_t(node.id)]) results_[size_t(id)].clear();
    }
    TensorList out;
    for (auto& v : graph_.outputs()) {
      const TensorArg& result = argument(v);
      out.push_back(result.is_scalar() ? scalar_tensor(result.scalar()) : result.tensor());
    }
    return out;
  }

 private:
  void bind(Value input, const TensorArg& given) {
    results_[size_t(input.node->id)] = {given};
    bind_sizes(input.type().shape, given);
  }

  // Sizes that are plain symbols take the value seen; those that only the data knows are seen once their node has run.
  void bind_sizes(const Shape& shape, const TensorArg& seen) {
    for (size_t d = 0; d < shape.size(); ++d) {
      auto names = shape[d].symbols();
      if (names.size() == 1 && shape[d].same_as(Dim::symbol(names[0]))) sizes_.try_emplace(names[0], seen.size(int64_t(d)));
    }
  }

  Dim size_of(const std::string& name) const {
    if (auto it = sizes_.find(name); it != sizes_.end()) return it->second;
    check(bool(size_of_), "no input of the graph gives the symbolic size {} a value", name);
    return size_of_(name);
  }

  const TensorArg& argument(Value v) const { return results_[size_t(v.node->id)][size_t(v.index)]; }

  void run(const Node& node) {
    auto& results = results_[size_t(node.id)];
    if (node.op->kind == OpKind::kInput) return;
    if (node.op->kind == OpKind::kScalar) {
      results.emplace_back(node.attrs.as<ScalarAttrs>().value);
      return;
    }
    std::vector<TensorArg> inputs;
    for (auto& v : node.inputs) inputs.push_back(argument(v));
    // The values of a graph are row-major; an eager tensor that is not has no such view of itself.
    if (node.op->name == "view" || node.op->name == "as_strided")
      if (const Tensor& x = inputs[0].tensor(); !x.is_contiguous()) inputs[0] = TensorArg(x.contiguous());
    Attrs attrs = node.attrs.substitute([&](const std::string& name) { return size_of(name); });
    TensorList made = Dispatcher::instance().run(*node.op, inputs, attrs);
    if (observer_) observer_(node, inputs, attrs, made);
    for (auto& t : made) {
      size_t at = results.size();
      results.emplace_back(t);
      bind_sizes(node.types[at].shape, t);
    }
  }

  const Graph& graph_;
  const SizeOf& size_of_;
  const NodeObserver& observer_;
  std::vector<std::vector<TensorArg>> results_;
  std::vector<std::vector<int>> dies_at_;  // by node: those that nobody needs after it
  std::map<std::string, Dim> sizes_;
};

}  // namespace

TensorList run_graph(const Graph& graph, std::span<const TensorArg> inputs, const SizeOf& size_of, const NodeObserver& observer) {
  return Run(graph, size_of, observer)(inputs);
}

}  // namespace sinter
