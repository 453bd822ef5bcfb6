#include "sinter/base/error.h"
#include <cstring>

#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"

namespace sinter {

Allocator& allocator_for(Device device) {
  static Allocator& cpu = cpu_allocator();
  if (device.is_cpu()) [[likely]]
    return cpu;
  if (!runtime::cuda_is_available()) [[unlikely]]
    throw_error(format("device {} is not available: {}", device, runtime::cuda_problem()));
  return runtime::cuda_allocator(device.index);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu())
    std::memcpy(to, from, bytes);
  else
    runtime::cuda_copy(to, to_device, from, from_device, bytes);
}

}  // namespace sinter
