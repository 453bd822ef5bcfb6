#include "sinter/runtime/cuda/cuda.h"

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/cudnn.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter {

namespace {

int index_of(Device device, const char* function) {
  check(device.is_cuda(), "{}: {} is not a GPU", function, device);
  return device.index();
}

}  // namespace

void cuda_synchronize(Device device) { runtime::cuda_synchronize(index_of(device, "cuda_synchronize")); }
void cuda::synchronize(int64_t device_index) {
  if (device_index >= 0) return cuda_synchronize(Device(kCUDA, int(device_index)));
  for (int i = 0; i < cuda_device_count(); ++i) cuda_synchronize(Device(kCUDA, i));
}
bool cuda::cudnn_is_available() { return cuda_is_available() && runtime::cudnn_problem().empty(); }
CudaMemoryStats cuda_memory_stats(Device device) {
  return runtime::cuda_memory_stats(index_of(device, "cuda_memory_stats"));
}
void reset_cuda_memory_peak(Device device) {
  runtime::reset_cuda_memory_peak(index_of(device, "reset_cuda_memory_peak"));
}
void empty_cuda_cache(Device device) { runtime::empty_cuda_cache(index_of(device, "empty_cuda_cache")); }
void set_cuda_memory_limit(size_t bytes, Device device) {
  runtime::set_cuda_memory_limit(index_of(device, "set_cuda_memory_limit"), bytes);
}

}  // namespace sinter
