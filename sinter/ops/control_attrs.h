#pragma once
// The graphs that the ops of control flow carry.
#include "sinter/graph/subgraph.h"
#include "sinter/ops/define.h"

namespace sinter {

// Operands: the predicate, then what both branches take.
struct CondAttrs {
  SubGraph then_branch, else_branch;
  SINTER_FIELDS(then_branch, else_branch)
};

// Operands: the state, then what else the two graphs take. The state is as long as the results of the body.
struct WhileAttrs {
  SubGraph condition, body;
  SINTER_FIELDS(condition, body)
};

}  // namespace sinter
