#pragma once
#include "sinter/runtime/device_runtime.h"

namespace sinter::runtime {

const DeviceRuntime& cuda_runtime();

}  // namespace sinter::runtime
