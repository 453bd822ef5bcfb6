#pragma once
// Eager execution on the CPU, one function a kind of op. Inputs are eager tensors or plain numbers, already checked to be
// on the CPU; results are fresh tensors, or `out` where one is given.
#include <bit>
#include <span>

#include "sinter/graph/op.h"

namespace sinter::eager {

Tensor run_pointwise(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out);
Tensor run_reduce(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
// kLoop, kScatter, kScan, and views that cannot alias: the op's own loops, compiled for this class of shapes.
TensorList run_loops(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
Tensor run_view(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);

// The first element of a tensor.
inline char* data_of(const TensorImpl& t) { return static_cast<char*>(t.buffer->data()) + t.offset * item_size(t.dtype); }
// An operand as a kernel takes it: the address of a tensor, the bits of a number.
inline int64_t slot_of(const TensorImpl& t) { return int64_t(reinterpret_cast<uintptr_t>(data_of(t))); }
inline int64_t slot_of(const Scalar& s) { return s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int(); }

// The types of eager operands.
std::vector<Type> operand_types(std::span<const TensorArg> inputs);

// An op that an ahead-of-time kernel takes whole, when there is one for these operands.
using Template = bool (*)(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, TensorList& outputs);
Template find_template(const Op& op);

}  // namespace sinter::eager
