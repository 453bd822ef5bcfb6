#include "sinter/engine/device/device_engine.h"

#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/cuda/engine.h"
#include "sinter/engine/hip/engine.h"

namespace sinter {

const DeviceEngine& engine_of(Device device) {
  switch (device.type()) {
    case DeviceType::kCUDA: return cuda_engine(device);
    case DeviceType::kHIP: return hip_engine(device);
    case DeviceType::kCPU: break;
  }
  return cpu_engine();
}

}  // namespace sinter
