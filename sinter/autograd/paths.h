#pragma once
// Which ways gradients would take: questions about the tape for which nothing has to flow.
#include <cstdint>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::autograd {

// For each root, whether a gradient of it flows to each of the targets.
std::vector<std::vector<bool>> leads_to(const TensorList& roots, const TensorList& targets);
// For each two of the tensors, whether gradients of both go through one node.
std::vector<std::vector<bool>> paths_meet(const TensorList& tensors);
// The same for roots whose gradients take the same paths to these targets, of ops that have the same operands.
uint64_t hash_of_paths(const TensorList& roots, const TensorList& targets);

}  // namespace sinter::autograd
