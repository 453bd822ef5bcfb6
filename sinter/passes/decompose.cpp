#include "sinter/passes/decompose.h"

#include <algorithm>

#include "sinter/graph/rewrite.h"
#include "sinter/graph/trace.h"
#include "sinter/graph/verify.h"
#include "sinter/passes/target_kernels.h"

namespace sinter {

namespace {

// Records a body on symbolic sizes. Its questions have been answered once, when the composite was recorded: sizes that
// it compares for equality are equal. Symbolic sizes are neither 0 nor 1; anything else about them stays open.
class BodyTracer final : public GraphTracer {
 public:
  bool decide(DimCompare op, const Dim& a, const Dim& b) override {
    check(op == DimCompare::kEqual, "the order of {} and {} is open", a, b);
    if (!a.is_number() && !b.is_number()) return true;
    int64_t number = a.is_number() ? a.number() : b.number();
    check(number <= 1, "whether {} is {} is open", a, b);
    return false;
  }
};

bool is_plain_number(const Value& v) { return v.node->op->kind == OpKind::kScalar; }

// The body on operands of these types as a graph with one input for each operand that is no plain number.
std::optional<Graph> body_of(const Node& node, const std::vector<Value>& inputs) {
  BodyTracer tracer;
  TracerScope scope(&tracer);
  std::vector<TensorArg> arguments;
  for (auto& v : inputs) {
    if (is_plain_number(v))
      arguments.emplace_back(v.node->attrs.as<ScalarAttrs>().value);
    else
      arguments.emplace_back(tracer.add_input(v.type()));
  }
  std::vector<Value> outputs;
  try {
    for (auto& tensor : node.op->decompose(arguments, node.attrs)) outputs.push_back(tracer.value_of(tensor));
  } catch (const Error&) {
    return std::nullopt;
  }
  SINTER_INTERNAL_ASSERT(tracer.captured().empty(), "the body of {} holds a tensor", node.op->name);
  tracer.graph().set_outputs(std::move(outputs));
  return std::move(tracer.graph());
}

// Copies a body into the new graph; the values of its outputs there.
std::vector<Value> inlined(const Graph& body, const std::vector<Value>& inputs, Graph& into, const std::string& where) {
  std::vector<std::vector<Value>> values(body.nodes().size());
  auto new_value = [&](Value v) { return values[size_t(v.node->id)][size_t(v.index)]; };
  size_t next = 0;
  for (auto& node : body.nodes()) {
    auto& results = values[size_t(node.id)];
    if (node.op->kind == OpKind::kInput) {
      while (is_plain_number(inputs[next])) ++next;
      results = {inputs[next++]};
      continue;
    }
    std::vector<Value> operands;
    for (auto& v : node.inputs) operands.push_back(new_value(v));
    const Node& copy = into.add_typed(*node.op, std::move(operands), node.attrs, node.types, where);
    for (size_t i = 0; i < node.types.size(); ++i) results.push_back(copy.result(int(i)));
  }
  std::vector<Value> out;
  for (auto& v : body.outputs()) out.push_back(new_value(v));
  return out;
}

bool stays(const Node& node, const std::vector<Value>& inputs, const DecomposeOptions& options) {
  if (node.op->kind != OpKind::kComposite || options.keep.contains(node.op->name)) return true;
  return takes_whole(options.target, OpCall{*node.op, types_of(inputs), node.attrs});
}

}  // namespace

bool has_composites(const Graph& graph, const DecomposeOptions& options) {
  auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](auto& node) { return !stays(node, node.inputs, options); });
}

Graph decompose(const Graph& graph, const DecomposeOptions& options) {
  auto rule = [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op->kind != OpKind::kComposite) return std::nullopt;
    auto inputs = context.inputs(node);
    if (stays(node, inputs, options)) return std::nullopt;
    auto body = body_of(node, inputs);
    if (!body) return std::nullopt;
    return inlined(*body, inputs, context.graph(), node.where);
  };
  // Bodies may be made of composites themselves.
  return rewrite(graph, rule, {.to_fixed_point = true});
}

}  // namespace sinter
