#pragma once
// Kernels that take longer than their ops one by one.
#include "sinter/engine/bisect/bisect.h"
#include "sinter/engine/bisect/witness.h"

namespace sinter::bisection {

// The medians of both, run in turns for about a second after a first run of each.
Speed take_turns(const std::function<void()>& compiled, const std::function<void()>& eager);

// Nothing is found where the whole program is as fast as eager ops are, or no kernel alone is to blame.
Bisection find_slow(const WitnessedCall& call, const BisectOptions& options);

}  // namespace sinter::bisection
