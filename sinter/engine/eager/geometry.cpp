#include "sinter/engine/eager/geometry.h"

#include <algorithm>
#include <numeric>

namespace sinter::eager {

void collapse(Geometry& g, int leader, bool reorder) {
  std::array<int, kMaxAxes> order;
  int kept = 0;
  for (int d = 0; d < g.axes; ++d)
    if (g.sizes[size_t(d)] != 1) order[size_t(kept++)] = d;
  if (reorder) {
    // Stable, so that equal strides (broadcast axes) keep the program's order; ties fall to the other operands.
    std::stable_sort(order.begin(), order.begin() + kept, [&](int a, int b) {
      int64_t x = std::abs(g.strides[size_t(leader)][size_t(a)]), y = std::abs(g.strides[size_t(leader)][size_t(b)]);
      return x > y;
    });
  }
  Geometry out;
  out.operands = g.operands;
  for (int i = 0; i < kept; ++i) {
    size_t d = size_t(order[size_t(i)]), last = size_t(out.axes) - 1;
    bool joins = out.axes > 0;
    for (int o = 0; joins && o < g.operands; ++o)
      joins = out.strides[size_t(o)][last] == g.strides[size_t(o)][d] * g.sizes[d];
    if (joins) {
      out.sizes[last] *= g.sizes[d];
    } else {
      out.add_axis(g.sizes[d]);
      last = size_t(out.axes) - 1;
    }
    for (int o = 0; o < g.operands; ++o) out.strides[size_t(o)][last] = g.strides[size_t(o)][d];
  }
  if (out.axes == 0) {
    out.add_axis(1);
    // A single element: unit strides put it in the class of contiguous data.
    for (int o = 0; o < g.operands; ++o) out.strides[size_t(o)][0] = 1;
  }
  g = out;
}

}  // namespace sinter::eager
