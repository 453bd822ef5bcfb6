#pragma once
// The backend "sinter": planned memory, one kernel a step.
#include "sinter/engine/executable/plan.h"

namespace sinter {

// For programs whose sizes do not depend on data.
std::shared_ptr<Executable> make_planned(Program program);

}  // namespace sinter
