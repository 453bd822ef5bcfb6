#pragma once
// Moving tensors between devices.
#include "sinter/tensor/tensor.h"

namespace sinter {

// A copy on the device; the tensor itself where it is there already. Its gradient goes back the same way.
// `non_blocking`: see Tensor::to.
Tensor to_device(const TensorArg& x, Device device, bool non_blocking = false);

}  // namespace sinter
