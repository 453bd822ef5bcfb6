#include "sinter/passes/functionalise.h"

#include <algorithm>

#include "sinter/graph/rewrite.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/view_region.h"

namespace sinter {

namespace {

bool is_write(Value v) { return v.node->op == &known_ops().write; }
const ViewPath& path_of(const Node& write) { return write.attrs.as<WriteAttrs>().path; }

// A value as a path of views from another: from `until`, or from where the views begin.
struct Look {
  Value from;
  ViewPath path;
};
Look look_of(Value v, Value until = {}) {
  Look out{v, {}};
  while (out.from != until && out.from.node->op->kind == OpKind::kView) {
    out.path.steps.push_back({out.from.node->op, out.from.node->attrs});
    out.from = out.from.node->inputs[0];
  }
  std::reverse(out.path.steps.begin(), out.path.steps.end());
  return out;
}

bool same(const ViewPath& a, const ViewPath& b, const Type& base) { return canonical(a, base) == canonical(b, base); }

Value resolve_write(RewriteContext& context, const Node& node) {
  Value base = context(node.inputs[0]), value = context(node.inputs[1]);
  auto& path = path_of(node);
  const Type& type = node.types[0];
  if (auto back = inverse(path, type)) return apply(*back, context.graph(), value, node.where);
  if (Look look = look_of(value, base); look.from == base && same(look.path, path, type)) return base;
  if (is_write(base) && same(path_of(*base.node), path, type))
    return context.add(*node.op, {base.node->inputs[0], value}, node.attrs).result();
  return {};
}

Value resolve_read(RewriteContext& context, const Node& node) {
  Look look = look_of(context(node.inputs[0]));
  if (!is_write(look.from)) return {};
  const Node& write = *look.from.node;
  look.path = look.path.then(*node.op, node.attrs);
  const Type& base = write.types[0];
  if (same(look.path, path_of(write), base) && shows_each_once(look.path)) return write.inputs[1];
  if (disjoint(look.path, path_of(write), base)) return apply(look.path, context.graph(), write.inputs[0], node.where);
  return {};
}

}  // namespace

bool has_writes(const Graph& graph) {
  auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](auto& node) { return node.op == &known_ops().write; });
}

Graph functionalise(const Graph& graph) {
  auto rule = [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    Value value = node.op == &known_ops().write    ? resolve_write(context, node)
                  : node.op->kind == OpKind::kView ? resolve_read(context, node)
                                                   : Value();
    if (!value || value.type() != node.types[0]) return std::nullopt;
    return {{value}};
  };
  return rewrite(graph, rule, {.to_fixed_point = true});
}

}  // namespace sinter
