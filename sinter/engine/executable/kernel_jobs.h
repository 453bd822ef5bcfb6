#pragma once
// The kernels that a plan needs, compiled together: equal ones once, different ones on all threads.
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "sinter/engine/fused_kernel.h"

namespace sinter {

// A fused step at its sizes and layouts; numbers have no geometry.
struct KernelJob {
  size_t step;
  const Attrs* attrs;
  std::vector<const TensorImpl*> operands, outputs;
};

// By step. `name` is the program's, for the progress of long compiles. On a GPU `ahead` is done at the same time.
std::vector<std::pair<size_t, std::shared_ptr<const FusedKernel>>> compile_kernels(
    const std::vector<KernelJob>& jobs, const std::string& name, Device device,
    std::span<const std::function<void()>> ahead = {});

}  // namespace sinter
