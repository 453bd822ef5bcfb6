#pragma once
#include "sinter/graph/graph.h"
#include "sinter/tensor/tensor.h"

namespace sinter::eager {

// Whether the node is a pool that takes this first operand, and gives a result in the same order with it; others keep to
// the loops, which write row-major results.
bool gives_channels_last_pool(const Node& node, const TensorImpl* first);

}  // namespace sinter::eager
