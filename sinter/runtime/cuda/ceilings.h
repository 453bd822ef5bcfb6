#pragma once
// What a GPU can do at best, measured as users of it would: a large copy inside its memory, a large product by the library.
#include "sinter/runtime/cpu/ceilings.h"

namespace sinter::runtime {

// Measured at the first call, in a few hundredths of a second, and then remembered. Operations are those of bf16 matrix
// products, 0 where there is no library to do them.
const Ceilings& cuda_ceilings(int device);

}  // namespace sinter::runtime
