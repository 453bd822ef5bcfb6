#pragma once
// Steps that run as eager ops do: single ops whose kernel serves a class of shapes, and ops with a kernel of their own.
#include <functional>

#include "sinter/engine/executable/plan.h"

namespace sinter {

// `target` is that of a write.
void run_eager_step(const Step& step, std::span<const TensorArg> inputs, const Tensor& out, const Tensor& target);

// One task a kernel that such steps of the plan would find or compile when they first run: it does so beforehand, and runs
// nothing. They may run at the same time, on any threads. What fails stays silent: the step will say so when it runs.
std::vector<std::function<void()>> eager_preparations(const Plan& plan);

}  // namespace sinter
