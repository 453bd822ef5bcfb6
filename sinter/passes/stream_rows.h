#pragma once
// A large product whose rows are used one by one, and the ops that do so, are computed in pieces of rows, one piece after the
// other: the logits of a language model, its loss and their gradients are never in memory whole. Found by what ops read
// (row_axes.h), not by their names. Sums over rows are added up piece by piece, in f32 where they are half types; all other bits
// stay but for those that a product of fewer rows rounds otherwise.
#include "sinter/graph/graph.h"

namespace sinter {

struct StreamOptions {
  int64_t least_bytes = int64_t(64) << 20;  // of a product that is worth it
  int64_t piece_bytes = int64_t(32) << 20;  // or more, of a piece of it
  int64_t most_pieces = 4;  // each adds to the sums over rows once more
};

// Whether some product is that large.
bool has_large_products(const Graph& graph, const StreamOptions& options);

Graph stream_rows(const Graph& graph, const StreamOptions& options = {});

}  // namespace sinter
