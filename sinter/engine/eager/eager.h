#pragma once
// Eager execution on the CPU, one function a kind of op. Inputs are eager tensors or plain numbers, already checked to be
// on the CPU; results are fresh tensors, or `out` where one is given.
#include <span>

#include "sinter/graph/op.h"

namespace sinter::eager {

Tensor run_pointwise(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out);
Tensor run_reduce(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
// kLoop, kScatter, kScan, and views that cannot alias: the op's own loops, compiled for this class of shapes.
TensorList run_loops(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
Tensor run_view(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);

// The types of eager operands.
std::vector<Type> operand_types(std::span<const TensorArg> inputs);

// An op that an ahead-of-time kernel takes whole, when there is one for these operands.
using Template = bool (*)(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, TensorList& outputs);
Template find_template(const Op& op);

}  // namespace sinter::eager
