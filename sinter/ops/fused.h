#pragma once
// `fused`: several ops as one kernel. What the fusion pass makes of a group: a graph of these ops, its body, and what kind of
// kernel it is for.
#include "sinter/graph/subgraph.h"

namespace sinter {

enum class FusedKind : uint8_t {
  // Pointwise ops, views, copies and reductions over one domain, rows × inner. Each element of an inner result is computed
  // where it is stored; reductions run over the inner dimensions, one number a row.
  kRows,
  // One reduction over other dimensions, a search or a scan, with all that it reads computed where it is read.
  kCombination,
  // Matrix products of one left operand. That may be computed by a kernel of the body, the prologue; what follows the products
  // is one epilogue for all, where they have one shape, else one for each. Right operands may be dequantized, then all of them.
  // Nothing else is in the body but views of these.
  kProduct,
  // A convolution, and perhaps its epilogue.
  kConvolution,
  // An op of attention, which reads the operands as they are; nothing else is in the body.
  kAttention,
  // What follows contractions, inside one of these: the first operands are `tiles`, their results. Inner are the dimensions
  // that are columns of a tile.
  kEpilogue,
  // Kernels that do not wait for each other: nothing else is in the body.
  kSiblings
};
std::string field_text(FusedKind kind);
void parse_field(std::string_view text, FusedKind& out);

struct FusedAttrs {
  FusedKind kind = FusedKind::kRows;
  SubGraph body = {};
  Shape domain = {};  // of the inner values
  int64_t inner = 0;  // how many of its last dimensions are reduced over; 0: nothing is
  int64_t tiles = 0;
  SINTER_FIELDS(kind, body, domain, inner, tiles)

  bool is_one_nest() const { return kind == FusedKind::kRows || kind == FusedKind::kCombination; }
  bool is_contraction() const { return kind == FusedKind::kProduct || kind == FusedKind::kConvolution; }
  // Whether a template computes what is in the body, and chooses how results lie.
  bool has_template() const { return is_contraction() || kind == FusedKind::kAttention; }
};

const Op& fused_op();

// The node as a kernel of the given kind; false where it is another node.
bool is_fused(const Node& node, FusedKind kind);

// Matrix products and convolutions; other loops that combine (pools, gradients of weights) are not.
bool is_contraction(const Node& node);
// What the template of a kernel that has one computes: the attention, or the first contraction.
const Node& template_op_in(const FusedAttrs& attrs);

// Verifies the bodies of the graph's fused nodes, and that operands have their sizes; InternalError shows the graph that is
// broken.
void verify_fused(const Graph& graph);

// The nodes of a body that compute, those of kernels inside in their place.
std::vector<const Node*> ops_in(const Graph& body);
// The names of the ops of a body, joined, those of an epilogue in their place; of many the first few.
std::string fused_name(const Graph& body);

// Whether a kernel has more digits of such a value in a register than memory has.
inline bool rounds_when_stored(DType dtype) { return dtype == kBFloat16 || dtype == kFloat16; }

// Whether a product of this dtype may be finished in memory of that one: sums of doubles need doubles, all others are
// floats, which rounding makes shorter.
inline bool holds_product(DType memory, DType product) {
  return is_floating(memory) && (memory == kFloat64) == (product == kFloat64);
}

// The dimensions that are not known to be 1: two shapes that agree in these have their elements in the same places.
Shape without_ones(const Shape& shape);

}  // namespace sinter
