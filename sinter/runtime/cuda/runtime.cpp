#include "sinter/runtime/cuda/runtime.h"

#include "sinter/runtime/cuda/ceilings.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

class CudaQueuePoint final : public QueuePoint {
 public:
  explicit CudaQueuePoint(int device) : device_(device), event_(device, /*timed=*/false) {
    event_.record(cuda_stream(device));
  }
  void wait() const override {
    event_.wait();
    check_cuda_errors(device_);
  }

 private:
  int device_;
  CudaEvent event_;
};

class CudaRuntime final : public DeviceRuntime {
 public:
  const std::string& problem() const override { return cuda_problem(); }
  const std::string& compiler_problem() const override { return nvrtc_problem(); }
  std::string architecture(int index) const override { return cuda_device_info(index).architecture(); }
  const Ceilings& ceilings(int index) const override { return cuda_ceilings(index); }
  Allocator& allocator(int index) const override { return cuda_allocator(index); }
  int64_t memory_peak(int index) const override { return cuda_memory_stats(index).peak; }
  void reset_memory_peak(int index) const override { reset_cuda_memory_peak(index); }
  int64_t error_cell(int index, const std::string& ops) const override { return cuda_error_cell(index, ops); }
  Allocator* pinned_allocator() const override { return &runtime::pinned_allocator(); }
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
            bool non_blocking) const override {
    cuda_copy(to, to_device, from, from_device, bytes, non_blocking);
  }
  std::unique_ptr<QueuePoint> queue_point(int index) const override { return std::make_unique<CudaQueuePoint>(index); }
};

}  // namespace

const DeviceRuntime& cuda_runtime() {
  static const CudaRuntime runtime;
  return runtime;
}

}  // namespace sinter::runtime
