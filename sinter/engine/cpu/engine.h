#pragma once
#include "sinter/engine/device/device_engine.h"

namespace sinter {

const DeviceEngine& cpu_engine();

}  // namespace sinter
