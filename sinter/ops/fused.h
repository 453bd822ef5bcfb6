#pragma once
// `fused`: several ops as one kernel. What the fusion pass makes of a group: its body is a graph of pointwise ops, views,
// copies and reductions over one domain, rows × inner. Each element of an inner result is computed where it is stored;
// reductions run over the inner dimensions, one number a row. Or it ends in one reduction over other dimensions, a search or
// a scan, with all that it reads computed where it is read.
#include "sinter/graph/subgraph.h"

namespace sinter {

struct FusedAttrs {
  SubGraph body;
  Shape domain;       // of the inner values
  int64_t inner = 0;  // how many of its last dimensions are reduced over; 0: nothing is
  SINTER_FIELDS(body, domain, inner)
};

const Op& fused_op();

// A group of one op, of one result.
FusedAttrs alone(const Op& op, std::span<const Type> inputs, const Attrs& attrs);

// Verifies the bodies of the graph's fused nodes, and that operands have their sizes; InternalError shows the graph that is
// broken.
void verify_fused(const Graph& graph);

// Whether a kernel has more digits of such a value in a register than memory has.
inline bool rounds_when_stored(DType dtype) { return dtype == kBFloat16 || dtype == kFloat16; }

// Whether computing the op costs far more than a load and a store.
bool is_expensive(const Op& op);

// Whether a product of this dtype may be finished in memory of that one: sums of doubles need doubles, all others are
// floats, which rounding makes shorter.
inline bool holds_product(DType memory, DType product) {
  return is_floating(memory) && (memory == kFloat64) == (product == kFloat64);
}

// The dimensions that are not known to be 1: two shapes that agree in these have their elements in the same places.
Shape without_ones(const Shape& shape);

}  // namespace sinter
