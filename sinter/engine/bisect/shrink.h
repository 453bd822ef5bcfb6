#pragma once
// Makes a failing graph smaller, one change at a time, as long as it fails: what comes before or after the fault is cut off
// and stands as an operand or not at all, nodes are left out, sizes and data become small and plain.
#include "sinter/engine/bisect/trial.h"

namespace sinter::bisection {

struct ShrinkOptions {
  double seconds = 60;
  std::function<void(const Trial& trial)> on_progress = {};
};

// `fails` has held for the trial. Numbers among its operands become constants.
Trial shrink(Trial trial, const std::function<bool(const Trial& trial)>& fails, const ShrinkOptions& options = {});

// How many ops it has, views and all.
int64_t op_count(const Graph& graph);

}  // namespace sinter::bisection
