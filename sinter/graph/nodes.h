#pragma once
// Small questions that passes and lowering ask of nodes.
#include "sinter/graph/graph.h"

namespace sinter {

// What a view looks at; the node itself where it is none.
inline const Node* behind_views(const Node* node) {
  while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
  return node;
}

// Nothing runs for it.
inline bool is_free(const Node& node) {
  auto kind = node.op->kind;
  return kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView;
}

}  // namespace sinter
