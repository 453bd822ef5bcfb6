#pragma once
// GPU memory for tensors: a caching allocator, since the driver's own allocation waits for the device. Segments of the
// driver's memory are cut into blocks; a freed block serves the next request of its stream.
#include <cstddef>
#include <cstdint>

#include "sinter/runtime/cuda/cuda.h"
#include "sinter/tensor/buffer.h"

namespace sinter::runtime {

Allocator& cuda_allocator(int device);

CudaMemoryStats cuda_memory_stats(int device);
// From now on `peak` is the most since this call.
void reset_cuda_memory_peak(int device);
// Gives segments that nobody uses back to the driver.
void empty_cuda_cache(int device);
// Taking more than this from the driver throws OutOfMemoryError; 0: no limit but the device's. Out of memory means: the
// cache was emptied and tried again first; the message has the largest blocks in use, and the process goes on.
void set_cuda_memory_limit(int device, size_t bytes);

// Page-locked host memory, kept for reuse: copies from and to it run beside the host.
Allocator& pinned_allocator();

// Copies bytes between devices or host and device on this thread's stream of the device concerned. Host memory may be
// changed or read on return, except pinned memory with `asynchronous`.
void cuda_copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes, bool asynchronous = false);
// Fills with a byte.
void cuda_fill(void* to, int device, unsigned char byte, size_t bytes);

}  // namespace sinter::runtime
