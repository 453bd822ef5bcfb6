#pragma once
#include <vector>

#include "sinter/graph/graph.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/tensor/tensor.h"

namespace sinter::eager {

// Whether the node is a pool that takes this first operand, and gives a result in the same order with it; others keep to
// the loops, which write row-major results.
bool gives_channels_last_pool(const Node& node, const TensorImpl* first);

// The kernels of maxima, of their indices and of their gradient, for so many channels a thread.
std::vector<runtime::CudaSource> channels_last_pool_texts(const MaxPoolAttrs& forward, const MaxPoolGradAttrs& back,
                                                          DType dtype, int64_t channels_each);

}  // namespace sinter::eager
