#pragma once
// Tuning of a finished plan.
#include "sinter/engine/executable/plan.h"

namespace sinter {

// For each step that can be computed in several ways, lets the autotuner choose on operands of the step's own geometry,
// and has the step use the winner. At most about `seconds` a choice. Equal steps are timed once.
void tune(Plan& plan, double seconds);

}  // namespace sinter
