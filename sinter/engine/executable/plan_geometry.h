#pragma once
// Tensors of a plan: sizes and strides without memory.
#include <optional>

#include "sinter/graph/graph.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

int64_t bytes_of(const TensorImpl& t);
// A tensor without memory, at the start of its storage.
Tensor geometry_of(DType dtype, const IntList& sizes, const IntList& strides, Device device = {});
bool same_place(const TensorImpl& a, const TensorImpl& b);
// Whether no two elements share a place in memory: what may be written.
bool is_injective(const TensorImpl& t);
// The view as an alias. as_strided counts positions of a row-major value, whatever the memory of this one looks like.
std::optional<Tensor> alias(const Op& op, const TensorArg& base, const Attrs& attrs);

}  // namespace sinter
