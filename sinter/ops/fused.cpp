#include "sinter/ops/fused.h"

#include <set>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/run.h"
#include "sinter/ops/define.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/results.h"

namespace sinter {

namespace {

struct Fused : Opaque {
  static constexpr auto name = "fused";
  static constexpr int inputs = -1;
  using Attributes = FusedAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& body = call.as<FusedAttrs>().body;
    check(bool(body), "fused: the body is missing");
    check(body->inputs().size() == call.inputs.size(), "fused: the body takes {} operands, not {}", body->inputs().size(),
          call.inputs.size());
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      auto& takes = body->inputs()[i].type();
      check(takes.dtype == call.inputs[i].dtype && takes.rank() == call.inputs[i].rank() &&
                takes.weak == call.inputs[i].weak,
            "fused: operand {} of the body is {}, not {}", i, takes, call.inputs[i]);
    }
    std::vector<Type> types;
    for (auto& v : body->outputs()) types.push_back(v.type());
    return types;
  }
  static void interpret(InterpretCall& c) {
    std::vector<Array> arrays;
    for (auto* array : c.inputs) arrays.push_back(*array);
    c.outputs = sinter::interpret(*c.call.as<FusedAttrs>().body, arrays);
  }
  // Node by node: only for a graph that is run without being compiled.
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& body = *attrs.as<FusedAttrs>().body;
    std::vector<TensorArg> operands;
    for (size_t i = 0; i < inputs.size(); ++i)
      operands.push_back(body.inputs()[i].type().weak ? TensorArg(inputs[i].item()) : TensorArg(inputs[i]));
    return fresh_results(run_graph(body, operands), inputs);
  }
  static constexpr NotDifferentiable grad{"it is made after gradients have been taken"};
  SINTER_SAMPLES("f32[2, 3] | body={%0 = input : f32[2, 3]; %1 = exp(%0) : f32[2, 3]; %2 = sum(%1) {dims=[1], keepdim=true} : "
                 "f32[2, 1]; %3 = div(%1, %2) : f32[2, 3]; return %3}, domain=[2, 3], inner=1")
};

}  // namespace

const Op& fused_op() { return op_of<Fused>; }

FusedAttrs alone(const Op& op, std::span<const Type> inputs, const Attrs& attrs) {
  Graph body;
  std::vector<Value> operands;
  for (auto& type : inputs) operands.push_back(body.add_input(type));
  Value result = body.add(op, std::move(operands), attrs).result();
  body.set_outputs({result});
  Shape domain = result.type().shape;
  return {SubGraph(std::move(body)), std::move(domain), 0};
}

void verify_fused(const Graph& graph) {
  for (auto& node : graph.nodes()) {
    if (node.op != &fused_op()) continue;
    auto& body = *node.attrs.as<FusedAttrs>().body;
    body.verify();
    verify_fused(body);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto &given = node.inputs[i].type().shape, &takes = body.inputs()[i].type().shape;
      for (size_t d = 0; d < takes.size(); ++d)
        if (given[d].is_number() && takes[d].is_number() && !given[d].same_as(takes[d]))
          throw InternalError(format("node %{} (fused): operand {} is {}, its body takes {}\n{}", node.id, i,
                                     node.inputs[i].type(), body.inputs()[i].type(), graph.text(true)));
    }
  }
}

bool is_expensive(const Op& op) {
  static const std::set<std::string_view> names{"exp",  "exp2", "expm1", "log",  "log2",    "log10", "log1p", "pow",  "sin",
                                                "cos",  "tan",  "asin",  "acos", "atan",    "atan2", "sinh",  "cosh", "tanh",
                                                "erf",  "erfc", "erfinv", "gelu", "sigmoid", "silu",  "mish",  "softplus"};
  return op.kind == OpKind::kPointwise && names.count(op.name);
}

Shape without_ones(const Shape& shape) {
  Shape out;
  for (auto& d : shape)
    if (!d.same_as(1)) out.push_back(d);
  return out;
}

OpFamily fused_ops() {
  static const Op* const ops[] = {&op_of<Fused>};
  return ops;
}

}  // namespace sinter
