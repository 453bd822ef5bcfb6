#pragma once
// Memory often holds the right values from before: what a step leaves unwritten shows only where it was spoilt first.
#include "sinter/engine/executable/step_observer.h"

namespace sinter::referee {

// Before the step runs: fills its results with NaN (integers with a number nobody expects), except where it works on what is
// there already.
void spoil_results(const ObservedStep& step);

}  // namespace sinter::referee
