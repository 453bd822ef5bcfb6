#pragma once
// Programs on AMD's GPUs. Compiled, never run on one.
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/gpu/nest.h"

namespace sinter {

// The kernels that a fused node without contractions becomes, launched one after the other. No device is needed.
std::vector<GpuSibling> emit_hip_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                      std::span<const TensorImpl* const> outputs, const Target& target,
                                      int multiprocessors);

// Makes no use of the device until it is asked for something of it.
const DeviceEngine& hip_engine(Device device);

}  // namespace sinter
