#pragma once
// The gradient of a whole graph, for ops that carry graphs. Defined in autograd/, which they do not see.
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

// The gradients of the outputs, weighted by `grads` (undefined: none flows), with respect to the inputs that are
// `needed`; undefined where no output depends on one. Computed with public ops: eagerly, or recorded under a tracer.
TensorList differentiate(const Graph& graph, const TensorList& inputs, const std::vector<bool>& needed,
                         const TensorList& grads);

}  // namespace sinter
