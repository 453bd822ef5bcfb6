#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <cstring>

#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/pinned.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

// The driver has copied this much of pageable memory aside by the time it returns.
constexpr size_t kStaged = 64 << 10;

CUdeviceptr address(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

void check_copy(CUresult result, size_t bytes, Device to, Device from) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    throw_driver_error(result, format("copying {} bytes from {} to {}", bytes, from, to));
}

// Each device's stream waits for the other: the source is ready before, and may be reused after.
void copy_between(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  check_not_capturing("a copy between devices");
  CudaStream to_stream = cuda_stream(to_device), from_stream = cuda_stream(from_device);
  CudaEvent ready(from_device, /*timed=*/false), done(to_device, /*timed=*/false);
  ready.record(from_stream);
  CudaDeviceGuard guard(to_device);
  ready.hold_back(to_stream);
  check_copy(driver().cuMemcpyPeerAsync(address(to), cuda_device(to_device).context, address(from),
                                        cuda_device(from_device).context, bytes, to_stream),
             bytes, cuda(to_device), cuda(from_device));
  done.record(to_stream);
  CudaDeviceGuard from_guard(from_device);
  done.hold_back(from_stream);
}

}  // namespace

void cuda_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes, bool asynchronous) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (to_device.is_cuda() && from_device.is_cuda() && to_device != from_device)
    return copy_between(to, to_device.index(), from, from_device.index(), bytes);
  int device = to_device.is_cuda() ? to_device.index() : from_device.index();
  CudaDeviceGuard guard(device);
  CudaStream stream = cuda_stream(device);
  auto& api = driver();
  if (to_device == from_device)
    return check_copy(api.cuMemcpyDtoDAsync(address(to), address(from), bytes, stream), bytes, to_device, from_device);
  const void* host = to_device.is_cpu() ? to : from;
  bool pinned = is_pinned(host);
  if (!asynchronous || !pinned) check_not_capturing("a copy from or to host memory that is not page-locked");
  if (to_device.is_cuda())
    check_copy(api.cuMemcpyHtoDAsync(address(to), from, bytes, stream), bytes, to_device, from_device);
  else
    check_copy(api.cuMemcpyDtoHAsync(to, address(from), bytes, stream), bytes, to_device, from_device);
  if (asynchronous && pinned) {
    if (!is_capturing_cuda_graph()) note_pinned_use(host, device, stream);
    return;
  }
  if (to_device.is_cuda() && !pinned && bytes <= kStaged) return;
  cuda_synchronize(device);
}

void cuda_fill(void* to, int device, unsigned char byte, size_t bytes) {
  if (bytes == 0) return;
  CudaDeviceGuard guard(device);
  check_driver(driver().cuMemsetD8Async(address(to), byte, bytes, cuda_stream(device)), "filling memory");
}

}  // namespace sinter::runtime
#endif
