#pragma once
// A fused node as one nest: the rows' reductions sweep by sweep, then the elements. Intermediates live in registers.
#include "sinter/loops/lower.h"
#include "sinter/ops/fused.h"

namespace sinter {

// By input of a fused body: whether an element of a result depends on another element of it than the one in its own place,
// other than through a reduction.
std::vector<bool> read_elsewhere(const Graph& body);

// The nest of a fused node of one nest: rows, a combination or an epilogue. `layouts`: of its operands, tiles left out, then of
// its results; `named` has what their symbols and those of sizes
// stand for. Axes that every access walks as one are joined. `order` has the dimensions of the domain from the outermost loop
// to the innermost; it counts only where nothing is reduced, and may be left out.
LoopNest lower_fused(const FusedAttrs& attrs, std::span<const Layout> layouts, const Parameters& named = {},
                     const IntList& order = {});

}  // namespace sinter
