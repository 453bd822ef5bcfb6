#pragma once
// Operands that a few words of C++ make.
#include "sinter/engine/bisect/trial.h"

namespace sinter::bisection {

// Inputs of the same dtype, shape and device, the plainest first: all ones, seeded draws, the same elements rounded to a few
// digits. `random(seed, shape)` is what print.h defines.
std::vector<TrialInput> plain_inputs(const Tensor& tensor);

// The tensor as C++: what makes it, or its elements.
std::string input_text(const TrialInput& input);

}  // namespace sinter::bisection
