#pragma once
// A fused node as one nest: the rows' reductions sweep by sweep, then the elements. Intermediates live in registers.
#include "sinter/loops/lower.h"
#include "sinter/ops/fused.h"

namespace sinter {

// Matrix products and convolutions.
bool is_contraction(const Node& node);
// Those of a body, in its order.
std::vector<const Node*> contractions_of(const Graph& body);

// By input of a fused body: whether an element of a result depends on another element of it than the one in its own place,
// other than through a reduction.
std::vector<bool> read_elsewhere(const Graph& body);

// The nest of a fused node. `layouts`: of its operands, then of its results; `named` has what their symbols and those of sizes
// stand for. Axes that every access walks as one are joined. `order` has the dimensions of the domain from the outermost loop
// to the innermost; it counts only where nothing is reduced, and may be left out.
LoopNest lower_fused(const FusedAttrs& attrs, std::span<const Layout> layouts, const Parameters& named = {},
                     const IntList& order = {});

}  // namespace sinter
