#pragma once
// AMD's GPUs: HIP's libraries, opened when they are first wanted. Their kernels are compiled by the tests, but were never run on
// a GPU: none was at hand.
#include <string>

#include "sinter/runtime/device_runtime.h"

namespace sinter::runtime {

const DeviceRuntime& hip_runtime();

struct HipDeviceInfo {
  std::string architecture;  // "gfx90a"
  int multiprocessors = 0;
  int64_t l2_bytes = 0;
};
// An Error where there is no such device.
const HipDeviceInfo& hip_device_info(int index);

// A kernel that is loaded on a device, for as long as the process lives.
using HipFunction = struct ihipModuleSymbol_t*;

// The kernel `name` of a text without includes; compiled where neither this process nor the store has it. Refused where the
// compiler does not take it.
HipFunction load_hip(const std::string& text, const std::string& name, int index);

// Queues the kernel behind all that was queued on the device. `params` is its one parameter, a struct by value.
void hip_launch(HipFunction function, int index, unsigned blocks, const unsigned (&threads)[2], const void* params);
// Waits for all that was queued, then throws what kernels have reported.
void hip_synchronize(int index);
void hip_fill(void* to, int index, unsigned char byte, size_t bytes);

}  // namespace sinter::runtime
