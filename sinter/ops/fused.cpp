#include "sinter/ops/fused.h"

#include <algorithm>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/nodes.h"
#include "sinter/graph/run.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dequantize.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/results.h"

namespace sinter {

namespace {

// What is wrong with a body for its kind; empty: nothing.
std::string structure_fault(const FusedAttrs& attrs) {
  const bool contraction = attrs.is_contraction(), siblings = attrs.kind == FusedKind::kSiblings;
  const bool attention = attrs.kind == FusedKind::kAttention;
  if ((attrs.tiles > 0) != (attrs.kind == FusedKind::kEpilogue)) return "tiles are what an epilogue works on";
  if (attrs.tiles > int64_t(attrs.body->inputs().size())) return "there are more tiles than operands";
  int contractions = 0, attentions = 0;
  for (auto& node : attrs.body->nodes()) {
    if (node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar) continue;
    if (attention && !is_attention(*node.op)) return "something stands beside attention";
    if (is_free(node)) continue;
    if (node.op == &fused_op()) {
      if (!contraction && !siblings) return "a kernel is inside another that holds none";
      const bool follows = contraction && is_fused(node, FusedKind::kEpilogue);
      if (!follows && !node.attrs.as<FusedAttrs>().is_one_nest())
        return siblings ? "a sibling is not one nest" : "what is beside a contraction is not one nest";
      continue;
    }
    if (is_attention(*node.op)) {
      if (!attention) return "attention is inside a kernel of another kind";
      ++attentions;
      continue;
    }
    if (siblings) return "an op stands among siblings";
    if (contraction && node.op == &dequantize_op()) continue;
    if (contraction && !is_contraction(node)) return "an op stands beside a contraction";
    if (!contraction && is_contraction(node)) return "a contraction is inside a kernel of another kind";
    contractions += contraction;
  }
  if (contraction && contractions == 0) return "there is no contraction";
  if (attrs.kind == FusedKind::kConvolution && contractions > 1) return "convolutions run alone";
  if (attention && attentions != 1) return "there is one attention, and nothing else";
  return {};
}

struct Fused : Opaque {
  static constexpr auto name = "fused";
  static constexpr int inputs = -1;
  using Attributes = FusedAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& body = call.as<FusedAttrs>().body;
    check(bool(body), "fused: the body is missing");
    std::string fault = structure_fault(call.as<FusedAttrs>());
    check(fault.empty(), "fused, kind={}: {}", field_text(call.as<FusedAttrs>().kind), fault);
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

bool is_fused(const Node& node, FusedKind kind) {
  return node.op == &fused_op() && node.attrs.as<FusedAttrs>().kind == kind;
}

bool is_contraction(const Node& node) {
  auto& ops = known_ops();
  return node.op == &ops.mm || node.op == &ops.bmm || node.op == &convolution_op();
}

const Node& template_op_in(const FusedAttrs& attrs) {
  auto& nodes = attrs.body->nodes();
  auto found = std::find_if(nodes.begin(), nodes.end(),
                            [](auto& node) { return is_contraction(node) || is_attention(*node.op); });
  SINTER_INTERNAL_ASSERT(found != nodes.end(), "a kernel without a template");
  return *found;
}

static constexpr std::pair<FusedKind, std::string_view> kKinds[] = {
    {FusedKind::kRows, "rows"},           {FusedKind::kCombination, "combination"},
    {FusedKind::kProduct, "product"},     {FusedKind::kConvolution, "convolution"},
    {FusedKind::kAttention, "attention"}, {FusedKind::kEpilogue, "epilogue"},
    {FusedKind::kSiblings, "siblings"}};

std::string field_text(FusedKind kind) {
  for (auto& [known, name] : kKinds)
    if (known == kind) return std::string(name);
  return {};
}

void parse_field(std::string_view text, FusedKind& out) {
  std::string names;
  for (auto& [kind, name] : kKinds) {
    if (name == text) {
      out = kind;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw_error(format("'{}' is no kind of fused kernel: there are {}", text, names));
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

std::vector<const Node*> ops_in(const Graph& body) {
  std::vector<const Node*> out;
  for (auto& node : body.nodes()) {
    if (is_free(node)) continue;
    auto inner = node.op == &fused_op() ? ops_in(*node.attrs.as<FusedAttrs>().body) : std::vector<const Node*>{&node};
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

std::string fused_name(const Graph& body) {
  constexpr size_t kMost = 5;
  std::vector<std::string_view> names;
  auto add = [&](auto& self, const Graph& graph) -> void {
    for (auto& node : graph.nodes()) {
      if (is_free(node)) continue;
      if (is_fused(node, FusedKind::kEpilogue))
        self(self, *node.attrs.as<FusedAttrs>().body);
      else
        names.push_back(node.op->name);
    }
  };
  add(add, body);
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) out += (i ? "_" : "") + std::string(names[i]);
  return names.size() > kMost ? out + "_and_" + std::to_string(names.size() - kMost) : out;
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
