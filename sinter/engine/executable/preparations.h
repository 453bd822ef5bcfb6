#pragma once
// What the steps of a plan on a GPU compile for themselves when they first run: attention, gathers, scans.
#include <functional>
#include <vector>

#include "sinter/engine/executable/plan.h"

namespace sinter {

// One task a kernel, which compiles it beforehand; they may run at the same time, on any threads. What fails stays silent:
// the step will say so when it runs.
std::vector<std::function<void()>> preparations(const Plan& plan);

}  // namespace sinter
