#pragma once
// What a program may ask of its GPUs: whether there are any, to wait for one, how much memory it uses.
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/tensor/device.h"

namespace sinter {

// Whether tensors can be made on a GPU here; runtime::cuda_problem() says why not.
using runtime::cuda_device_count;
using runtime::cuda_is_available;
using runtime::CudaMemoryStats;

// Ops on a GPU return before they are done. Waits for those queued so far, and throws what went wrong in them.
void cuda_synchronize(Device device = cuda());

CudaMemoryStats cuda_memory_stats(Device device = cuda());
// From now on `peak` is the most since this call.
void reset_cuda_memory_peak(Device device = cuda());
// Gives memory that is kept for reuse back to the driver.
void empty_cuda_cache(Device device = cuda());
// Beyond this many bytes an allocation throws OutOfMemoryError; 0: no limit but the device's.
void set_cuda_memory_limit(size_t bytes, Device device = cuda());

}  // namespace sinter
