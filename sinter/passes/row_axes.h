#pragma once
// How the rows of a node's result come from rows of its operands: read off the op's definition, run once with symbols.
#include <optional>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

// By operand: the dimension in which the walked coordinate stands by itself; kWhole where the operand is read without it.
inline constexpr int kWhole = -1;
using RowAxes = std::vector<int>;

// A row of the only result, its place in dimension `axis`, is computed from that row of the operands alone; nothing where
// other rows take part.
std::optional<RowAxes> rows_of_result(const Node& node, int axis);

// Of an op that sums: it sums over the rows of its operands, among others. One answer for each of its reduced coordinates.
std::vector<RowAxes> rows_summed(const Node& node);

}  // namespace sinter
