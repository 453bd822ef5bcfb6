#pragma once
// Algebra that changes no bits: x * 1, views of views, copies of values. Where the result of a rule would differ in the
// sign of a zero, in a NaN or by the rounding of an explicit cast, there is no such rule: x * 0, x - x, x + 0 of floats
// and f32 → bf16 → f32 stay. Only x**2 and x**-1 change, to x * x and 1 / x, which round no worse.
#include "sinter/graph/graph.h"

namespace sinter {

Graph simplify(const Graph& graph);

}  // namespace sinter
