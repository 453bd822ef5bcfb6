#pragma once
#include "sinter/tensor/tensor.h"

namespace sinter {
class Attrs;
}

namespace sinter::eager {

// Whether the pool takes this operand, and gives a result in the same order with it; others keep to the loops, which write
// row-major results.
bool takes_channels_last_pool(const TensorImpl& x, const Attrs& attrs);

}  // namespace sinter::eager
