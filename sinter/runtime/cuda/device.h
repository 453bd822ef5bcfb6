#pragma once
// The NVIDIA GPUs of this machine. The driver is loaded at run time: one build serves machines with and without one.
#include <cstdint>
#include <string>

#include "sinter/runtime/cuda/cuda.h"

namespace sinter::runtime {

struct CudaDeviceInfo {
  std::string name;
  int major = 0, minor = 0;         // compute capability
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  int shared_bytes = 0;             // of one block, when it asks for as much as there is
  int shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;

  std::string architecture() const;  // "sm_90"
};

// The newest CUDA that the driver supports, 12040 for 12.4; 0 without a driver.
int cuda_driver_version();
// Creates the device's context when it is first met. A device that is not there is an Error that lists those that are.
const CudaDeviceInfo& cuda_device_info(int device);

// Makes the device's context current on this thread while alive.
class CudaDeviceGuard {
 public:
  explicit CudaDeviceGuard(int device);
  ~CudaDeviceGuard();
  CudaDeviceGuard(const CudaDeviceGuard&) = delete;

 private:
  void* previous_ = nullptr;
  bool changed_ = false;
};

}  // namespace sinter::runtime
