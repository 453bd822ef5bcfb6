#include "sinter/passes/split_kernels.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sinter/graph/rewrite.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/fuse.h"

namespace sinter {

namespace {

using Values = std::map<std::pair<const Node*, int>, Value>;

bool is_free(const Node& node) {
  auto kind = node.op->kind;
  return kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView;
}

const Node* behind_views(const Node* node) {
  while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
  return node;
}

// Adds a node to `to`, its operands already there.
void copy(const Node& node, Graph& to, Values& made) {
  if (node.op->kind == OpKind::kScalar) {
    made[{&node, 0}] = to.add_scalar(node.attrs.as<ScalarAttrs>().value);
    return;
  }
  std::vector<Value> inputs;
  for (auto& v : node.inputs) inputs.push_back(made.at({v.node, v.index}));
  const Node& copied = to.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
  for (size_t i = 0; i < node.types.size(); ++i) made[{&node, int(i)}] = copied.result(int(i));
}

// A body that begins with a kernel of its own, the prologue: that one by itself, then the rest as one kernel.
Graph without_prologue(const FusedAttrs& attrs) {
  const Graph& body = *attrs.body;
  auto is_before = [](const Node& node) { return behind_views(&node)->op == &fused_op(); };
  Graph out, rest;
  Values outside, inside;
  for (auto& v : body.inputs()) outside[{v.node, 0}] = out.add_input(v.type(), v.node->name);
  for (auto& node : body.nodes())
    if (is_before(node)) copy(node, out, outside);
  std::vector<Value> operands;
  for (auto& node : body.nodes()) {
    if (node.op->kind == OpKind::kInput || is_before(node)) continue;
    for (auto& v : node.inputs)
      if (!inside.contains({v.node, v.index})) {
        inside[{v.node, v.index}] = rest.add_input(v.type());
        operands.push_back(outside.at({v.node, v.index}));
      }
    copy(node, rest, inside);
  }
  std::vector<Value> results, outputs;
  std::vector<Type> types;
  for (auto& v : body.outputs()) {
    results.push_back(inside.at({v.node, v.index}));
    types.push_back(v.type());
  }
  rest.set_outputs(std::move(results));
  const Node& host = out.add_typed(fused_op(), std::move(operands),
                                   FusedAttrs{SubGraph(std::move(rest)), attrs.domain, attrs.inner}, types);
  for (size_t i = 0; i < types.size(); ++i) outputs.push_back(host.result(int(i)));
  out.set_outputs(std::move(outputs));
  return out;
}

// What the kernel becomes, as a graph of the same inputs and outputs; nothing: its body as it is.
std::optional<Graph> smaller(const FusedAttrs& attrs, const std::function<bool(const Node& node)>& is_contraction) {
  auto& nodes = attrs.body->nodes();
  auto any = [&](auto&& is) { return std::any_of(nodes.begin(), nodes.end(), is); };
  if (any([](const Node& node) { return node.op == &fused_op(); })) {
    bool hosts = any([](const Node& node) { return !is_free(node) && node.op != &fused_op(); });
    return hosts ? std::optional(without_prologue(attrs)) : std::nullopt;
  }
  FuseOptions options;
  if (!any(is_contraction)) {
    options.inlines = false;
    options.most_members = size_t(std::count_if(nodes.begin(), nodes.end(), [](auto& n) { return !is_free(n); })) / 2;
    if (options.most_members < 2) return std::nullopt;
  }
  return fuse(*attrs.body, options);
}

}  // namespace

Graph split_kernels(const Graph& graph, const std::set<const Node*>& kernels,
                    const std::function<bool(const Node& node)>& is_contraction) {
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (!kernels.contains(&node)) return std::nullopt;
    auto& attrs = node.attrs.as<FusedAttrs>();
    auto made = smaller(attrs, is_contraction);
    const Graph& parts = made ? *made : *attrs.body;
    Values values;
    for (size_t i = 0; i < parts.inputs().size(); ++i) values[{parts.inputs()[i].node, 0}] = context(node.inputs[i]);
    for (auto& part : parts.nodes())
      if (part.op->kind != OpKind::kInput) copy(part, context.graph(), values);
    std::vector<Value> results;
    for (auto& v : parts.outputs()) results.push_back(values.at({v.node, v.index}));
    return results;
  });
}

}  // namespace sinter
