#include "sinter/passes/split_kernels.h"

#include <algorithm>
#include <optional>

#include "sinter/graph/extract.h"
#include "sinter/graph/nodes.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/decompose.h"
#include "sinter/passes/fuse.h"

namespace sinter {

namespace {

// Products that have a prologue: that one by itself, then the rest as one kernel. Nothing where there is none.
std::optional<Graph> without_prologue(const FusedAttrs& attrs) {
  const Graph& body = *attrs.body;
  auto is_prologue = [](const Node& node) {
    const Node* from = behind_views(&node);
    return from->op == &fused_op() && !is_fused(*from, FusedKind::kEpilogue);
  };
  if (std::none_of(body.nodes().begin(), body.nodes().end(), is_prologue)) return std::nullopt;
  Extraction rest([&](const Node& node) { return !is_prologue(node); });
  FusedAttrs host = attrs;
  host.body = SubGraph(rest.finish(body.outputs()));
  Extraction out = begin_copy(body);
  std::vector<Value> operands;
  std::vector<Type> types;
  for (auto& v : rest.operands()) operands.push_back(out(v));
  for (auto& v : body.outputs()) types.push_back(v.type());
  const Node& node = out.graph().add_typed(fused_op(), std::move(operands), host, std::move(types));
  for (size_t r = 0; r < node.types.size(); ++r) out.set(body.outputs()[r], node.result(int(r)));
  return out.finish(body.outputs());
}

// What the kernel becomes, as a graph of the same inputs and outputs; nothing: its body as it is.
std::optional<Graph> smaller(const FusedAttrs& attrs) {
  if (attrs.kind == FusedKind::kSiblings) return std::nullopt;
  if (attrs.kind == FusedKind::kAttention) return fuse(decompose(*attrs.body), {});
  if (attrs.is_contraction()) {
    auto apart = without_prologue(attrs);
    return apart ? std::move(apart) : fuse(without_kernels(*attrs.body), {});
  }
  auto& nodes = attrs.body->nodes();
  FuseOptions options;
  options.inlines = false;
  options.most_members = size_t(std::count_if(nodes.begin(), nodes.end(), [](auto& n) { return !is_free(n); })) / 2;
  return options.most_members < 2 ? std::nullopt : std::optional(fuse(*attrs.body, options));
}

}  // namespace

Graph split_kernels(const Graph& graph, const std::set<const Node*>& kernels) {
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (!kernels.contains(&node)) return std::nullopt;
    auto& attrs = node.attrs.as<FusedAttrs>();
    auto made = smaller(attrs);
    return inline_graph(made ? *made : *attrs.body, context.inputs(node), context.graph());
  });
}

Graph without_kernels(const Graph& graph) {
  auto inline_one = [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op != &fused_op()) return std::nullopt;
    return inline_graph(*node.attrs.as<FusedAttrs>().body, context.inputs(node), context.graph());
  };
  return rewrite(graph, inline_one, {.to_fixed_point = true});
}

}  // namespace sinter
