#pragma once
// Small questions that passes and lowering ask of nodes.
#include <optional>
#include <span>

#include "sinter/graph/graph.h"

namespace sinter {

// What a view looks at; the node itself where it is none.
inline const Node* behind_views(const Node* node) {
  while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
  return node;
}

// What a look at pairs of numbers gives of the other one's result: that one's operand. Nothing for every other op.
inline std::optional<Value> undone_look(const Op& op, std::span<const Value> operands) {
  if (!op.sees_complex || !operands[0].node->op->sees_complex) return std::nullopt;
  return operands[0].node->inputs[0];
}

// Nothing runs for it.
inline bool is_free(const Node& node) {
  auto kind = node.op->kind;
  return kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView;
}

}  // namespace sinter
