#pragma once
// The fused steps of a plan, made and compiled together: equal ones once, different ones on all threads.
#include <functional>
#include <span>
#include <vector>

#include "sinter/engine/device/make_step.h"
#include "sinter/runtime/refusal.h"

namespace sinter {

// A fused step at its sizes and layouts; numbers have no geometry.
struct KernelJob {
  size_t step;
  const Node* node;
  std::vector<const TensorImpl*> operands, outputs;
};

// What became of a job: a step, or what a toolchain has against it.
struct KernelOutcome {
  std::shared_ptr<const CompiledStep> step;
  std::shared_ptr<const runtime::Refused> refusal;
};

// One outcome a job. `name` is the program's, for the progress of long compiles. `ahead` is done at the same time.
std::vector<KernelOutcome> compile_kernels(const std::vector<KernelJob>& jobs, const std::string& name, Device device,
                                           std::span<const std::function<void()>> ahead = {});

}  // namespace sinter
