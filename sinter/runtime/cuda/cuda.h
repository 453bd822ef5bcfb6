#pragma once
// What a program may ask of its GPUs: whether there are any, to wait for one, how much memory it uses.
#include <cstddef>
#include <cstdint>
#include <string>

#include "sinter/base/api.h"
#include "sinter/tensor/device.h"

namespace sinter SINTER_API {

namespace runtime {

// A driver that is new enough, and at least one GPU. Looks once.
bool cuda_is_available();
// Why not, and what to do about it; empty when it is.
const std::string& cuda_problem();
int cuda_device_count();

struct CudaMemoryStats {
  int64_t allocated = 0;    // in use by tensors
  int64_t reserved = 0;     // taken from the driver
  int64_t peak = 0;         // the most that `allocated` has been
  int64_t allocations = 0;  // requests so far
  int64_t driver_calls = 0; // those among them that had to ask the driver
};

}  // namespace runtime

// Whether tensors can be made on a GPU here; runtime::cuda_problem() says why not.
using runtime::cuda_device_count;
using runtime::cuda_is_available;
using runtime::CudaMemoryStats;

// LibTorch's namespace of this name, torch::cuda::is_available(); a struct, since cuda(0) is a device.
struct cuda {
  static bool is_available() { return cuda_is_available(); }
  static int device_count() { return cuda_device_count(); }
  // Of one device, or of all.
  static void synchronize(int64_t device_index = -1);
  static bool cudnn_is_available();
};

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
