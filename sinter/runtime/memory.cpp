#include "sinter/runtime/cpu/memory.h"
#include "sinter/base/error.h"

namespace sinter {

Allocator& allocator_for(Device device) {
  static Allocator& cpu = cpu_allocator();
  if (!device.is_cpu()) [[unlikely]]
    throw_error(format("device {} is not available: this build has no CUDA backend yet", device));
  return cpu;
}

}  // namespace sinter
