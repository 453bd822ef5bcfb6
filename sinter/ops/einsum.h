#pragma once
// Einstein's summation over any number of operands.
#include <string_view>

#include "sinter/tensor/tensor.h"

namespace sinter {

// einsum("bij,bjk->bik", {a, b}). Letters name dimensions: those missing on the right are summed over; "..." stands for
// dimensions that broadcast; a letter twice in one operand takes its diagonal. Without "->" the result has the
// dimensions of "..." and the letters that occur once, in alphabetical order. Operands are contracted from left to right.
Tensor einsum(std::string_view equation, const TensorList& operands, Where where = Where::current());

}  // namespace sinter
