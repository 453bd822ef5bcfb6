#pragma once
// Fusion: groups of pointwise ops, reductions and the views between them become single `fused` nodes.
//
// A group works on one domain, rows × inner. Its values are of the whole domain, or one number a row; its reductions run
// over the inner dimensions, which are the last ones. A node joins the group of its latest operand, so that groups can
// run in the order of their making and no cycle can arise. Matrix products of one left operand may be the first of their
// group: the others then work on their results while they are hot. What is read at other coordinates than its own may be
// inlined: see fuse_views.h. What is fused saves the bytes of every value that only the group reads, and of every operand
// that its members share.
#include "sinter/graph/graph.h"
#include "sinter/tensor/target.h"

namespace sinter {

struct FuseOptions {
  // Reductions of fewer rows than this with longer rows than that are left to kernels that split a row over threads.
  int64_t few_rows = 8, long_row = 1 << 16;
  // Products of at least so many multiply-adds get operands in whole vectors (align_products.h).
  double least_aligned = 1e8;
  // Kernels of one domain with at most this many elements run as one, whatever they read.
  int64_t small = 1 << 14;
  // Whether copies and values at other coordinates are inlined, and whether groups that only read the same are merged.
  bool inlines = true, siblings = true;
  size_t most_operands = 30, most_members = 64, most_products = 8;
  // What it takes becomes kernels: contractions with what follows them, attention by itself.
  Target target = {};
};

Graph fuse(const Graph& graph, const FuseOptions& options = {});

}  // namespace sinter
