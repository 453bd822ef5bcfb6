// Which device has which memory.
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/cuda/runtime.h"
#include "sinter/runtime/hip/hip.h"

namespace sinter {

namespace runtime {

const DeviceRuntime& runtime_of(Device device) {
  switch (device.type()) {
    case DeviceType::kCUDA: return cuda_runtime();
    case DeviceType::kHIP: return hip_runtime();
    case DeviceType::kCPU: break;
  }
  SINTER_INTERNAL_ASSERT(false, "{} has no runtime of its own", device);
}

const Ceilings& ceilings_of(Device device) {
  return device.is_cpu() ? measured_ceilings() : runtime_of(device).ceilings(device.index());
}

}  // namespace runtime

namespace {

const runtime::DeviceRuntime& available_runtime(Device device) {
  auto& runtime = runtime::runtime_of(device);
  if (!runtime.problem().empty()) [[unlikely]]
    throw_error(format("device {} is not available: {}", device, runtime.problem()));
  return runtime;
}

}  // namespace

Allocator& allocator_for(Device device) {
  static Allocator& cpu = cpu_allocator();
  if (device.is_cpu()) [[likely]]
    return cpu;
  return available_runtime(device).allocator(device.index());
}

Allocator* pinned_allocator_for(Device device) {
  return device.is_cpu() ? nullptr : available_runtime(device).pinned_allocator();
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes, bool non_blocking) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu())
    std::memcpy(to, from, bytes);
  else
    runtime::runtime_of(to_device.is_cpu() ? from_device : to_device)
        .copy(to, to_device, from, from_device, bytes, non_blocking);
}

}  // namespace sinter
