#pragma once
// Finds the kernel that takes an op whole on a kind of device.
#include "sinter/engine/device/op_kernel.h"

namespace sinter::eager {

// Null where there is none.
const OpKernel* find_op_kernel(const Op& op, DeviceType device);

}  // namespace sinter::eager
