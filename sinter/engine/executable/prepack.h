#pragma once
// Frozen weights of a plan, rearranged for the kernels that read them.
#include "sinter/engine/executable/plan.h"

namespace sinter {

// `captured`: the tensors behind the program's inputs, which are the same in every call.
void pack_weights(Plan& plan, const TensorList& captured);

}  // namespace sinter
