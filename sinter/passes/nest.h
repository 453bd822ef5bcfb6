#pragma once
// Kernels that take in other kernels.
//
// A prologue: where the left operand of matrix products of few rows is all that a kernel computes (a norm, a cast), the
// products take it in and compute it when they start.
// Siblings: small kernels that do not wait for each other run side by side in one launch. Where launches are dear they are
// gathered: one that reads nothing but inputs runs with the first of these, any other when the first result of its siblings is
// wanted. An optimiser's step is a few launches then, and so are the casts of its parameters.
#include <limits>

#include "sinter/graph/graph.h"

namespace sinter {

struct NestOptions {
  bool prologues = true, siblings = true;  // whether there are such
  // Products of at most so many rows take a prologue: more are worth its split over threads.
  int64_t prologue_rows = 8;
  // And at most so many elements of it: where blocks that work side by side compute all of it each, that soon takes longer than
  // a launch.
  int64_t prologue_elements = std::numeric_limits<int64_t>::max();
  // Kernels over at most so many elements count as small; so do those that reduce nothing, over so many.
  int64_t small = 1 << 15, small_map = 1 << 15;
  bool gathers = false;
  size_t most_siblings = 8, most_operands = 40;
};

// `graph` has been through fuse.
Graph nest_kernels(const Graph& graph, const NestOptions& options = {});
// Whether fuse has made some.
bool has_kernels(const Graph& graph);

}  // namespace sinter
