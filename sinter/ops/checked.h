#pragma once
// Rules that values must obey, whose breach only the values tell. Eagerly on the CPU they are asked at once; elsewhere, in
// compiled functions and on a GPU, the kernel that reads the values notes the fault, which is thrown as an index out of
// range is (base/fault.h).
#include "sinter/base/fault.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// `x`, whose every element obeys the rule, or the Error of the fault. `holds` is true where the rule does. A compiled
// function asks only if it uses what is given back.
Tensor checked(const Tensor& x, const Tensor& holds, Fault fault);

// Indices for an op that reads by them: where `holds` is not, one that it will report as the fault.
Tensor checked_index(const Tensor& index, const Tensor& holds, Fault fault);

}  // namespace sinter
