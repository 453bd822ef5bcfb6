#pragma once
// Results of code that may give anything back: a graph that an op carries, a user's kernel.
#include <span>

#include "sinter/tensor/tensor.h"

namespace sinter {

// The results of an op, each in memory of its own: one that shares an operand's or an earlier result's is copied.
TensorList fresh_results(TensorList results, std::span<const Tensor> operands);

}  // namespace sinter
