#include "sinter/engine/device/device_engine.h"

#include "sinter/engine/cpu/engine.h"
#include "sinter/engine/cuda/engine.h"

namespace sinter {

const DeviceEngine& engine_of(Device device) { return device.is_cuda() ? cuda_engine(device) : cpu_engine(); }

}  // namespace sinter
