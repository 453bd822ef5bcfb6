#pragma once
// How a tensor lies in memory that is made like another one.
#include <optional>

#include "sinter/tensor/tensor.h"

namespace sinter {

// The strides of a fresh tensor with x's sizes in this format, kPreserve being the order that x has. Nothing where that is row by
// row because x is, or where x has no layout (a value of a plain graph). The Error names `function`.
std::optional<IntList> strides_like(const char* function, const Tensor& x, MemoryFormat format);
// `made`, a fresh row-major tensor of x's sizes, in that order.
Tensor laid_like(const char* function, const Tensor& x, MemoryFormat format, Tensor made);

}  // namespace sinter
