#pragma once
#include "sinter/engine/device/device_engine.h"

namespace sinter {

const DeviceEngine& cuda_engine(Device device);

}  // namespace sinter
