#include "sinter/graph/verify.h"

#include <algorithm>

namespace sinter {

std::vector<Type> types_of(const std::vector<Value>& values) {
  std::vector<Type> out;
  out.reserve(values.size());
  for (auto& v : values) out.push_back(v.type());
  return out;
}

namespace {

bool fits(const Type& inferred, const Type& stated) {
  if (inferred.dtype != stated.dtype || inferred.device != stated.device || inferred.weak != stated.weak ||
      inferred.rank() != stated.rank())
    return false;
  for (size_t d = 0; d < stated.shape.size(); ++d) {
    const Dim &a = inferred.shape[d], &b = stated.shape[d];
    if (a.is_number() && b.is_number() && !a.same_as(b)) return false;
  }
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() const {
    size_t position = 0, inputs = 0;
    for (auto& node : graph_.nodes()) {
      expect(size_t(node.id) == position, node, "its number is not its position");
      verify_node(node);
      if (node.op->kind == OpKind::kInput) {
        expect(inputs < graph_.inputs().size() && graph_.inputs()[inputs] == node.result(), node,
               "it is not listed among the inputs in order");
        ++inputs;
      }
      ++position;
    }
    if (inputs != graph_.inputs().size()) fail("an input of the graph is no node of it");
    for (auto& v : graph_.outputs())
      if (!holds(v, graph_.nodes().size())) fail("an output is no value of this graph");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw InternalError("the graph is broken: " + reason + "\n" + shown());
  }
  void expect(bool condition, const Node& node, const std::string& reason) const {
    if (!condition) fail(format("node %{} ({}): {}", node.id, node.op ? node.op->name : "no op", reason));
  }

  // A graph too broken to print must not crash the report.
  std::string shown() const {
    for (auto& node : graph_.nodes()) {
      if (!node.op) return "(it cannot be printed: a node has no op)";
      for (auto& v : node.inputs)
        if (!v.node) return "(it cannot be printed: an operand is missing)";
    }
    for (auto& v : graph_.outputs())
      if (!v.node) return "(it cannot be printed: an output is missing)";
    return graph_.text(true);
  }

  // A value of this graph, made before the position.
  bool holds(const Value& v, size_t before) const {
    if (!v.node || v.node->id < 0 || size_t(v.node->id) >= std::min(before, graph_.nodes().size())) return false;
    return &graph_.nodes()[size_t(v.node->id)] == v.node && v.index >= 0 && size_t(v.index) < v.node->types.size();
  }

  void verify_node(const Node& node) const {
    expect(node.op != nullptr, node, "it has no op");
    expect(node.op->inputs < 0 || size_t(node.op->inputs) == node.inputs.size(), node,
           format("it takes {} operands, not {}", node.op->inputs, node.inputs.size()));
    for (auto& v : node.inputs) expect(holds(v, size_t(node.id)), node, "an operand is no earlier value of this graph");
    if (node.op->kind == OpKind::kInput) return expect(node.types.size() == 1, node, "an input has one type");
    try {
      check_fits(*node.op, infer_types(*node.op, types_of(node.inputs), node.attrs), node.types);
    } catch (const Error& error) {
      expect(false, node, error.message());
    }
  }

  const Graph& graph_;
};

}  // namespace

void check_fits(const Op& op, const std::vector<Type>& inferred, const std::vector<Type>& stated) {
  check(inferred.size() == stated.size(), "{}: gives {} results, not {}", op.name, inferred.size(), stated.size());
  for (size_t n = 0; n < stated.size(); ++n)
    check(fits(inferred[n], stated[n]), "{}: gives {}, not {}", op.name, inferred[n], stated[n]);
}

void Graph::verify() const { Verifier(*this).run(); }

}  // namespace sinter
