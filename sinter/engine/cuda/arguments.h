#pragma once
// How a generated CUDA kernel is launched, and what a recording keeps.
#include <cstdint>
#include <vector>

#include "sinter/engine/device/recording.h"
#include "sinter/engine/step/arguments.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

// Arguments that a kernel has at most.
constexpr size_t kMostSlots = 448;

// The recording under way on this thread. Records what its launches must keep.
class CudaRecording final : public Recording {
 public:
  // `block`: the device address of the parameter block.
  explicit CudaRecording(int64_t block) : block_(block) {}

  // A thread that works for a GPU has no others.
  static CudaRecording* current() { return static_cast<CudaRecording*>(Recording::current()); }
  int64_t block() const { return block_; }
  // Memory that the graph uses again in every run.
  void keep(BufferPtr buffer) { kept_.push_back(std::move(buffer)); }
  std::vector<BufferPtr> take_kept() { return std::move(kept_); }
  // For CudaScratch: steps of one graph run one after the other and share it.
  BufferPtr scratch(Device device, size_t bytes);

 private:
  int64_t block_;
  std::vector<BufferPtr> kept_;
  BufferPtr scratch_;
};

// Memory for the time of one step: to be held until its last kernel is queued. Afterwards it serves other work, which comes
// behind that of the step. A step holds one at a time.
class CudaScratch {
 public:
  CudaScratch(Device device, size_t bytes);
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }

 private:
  BufferPtr buffer_;
};

// For what cannot read places (library calls): an Error that says so, which keeps the program from being recorded.
void refuse_place(const char* who, const void* address);

// The next kernel of this thread starts when all before it have ended, even if it may overlap with its predecessor: that one
// is not of the same program, and may write what kernels of a program take to stay.
void begin_cuda_program();

// Keeps the device's stream busy for about so many seconds, doing nothing.
void hold_up_cuda(Device device, double seconds);

// Queues the kernel with these slots as its parameter, `Args` in codegen/cuda.
void cuda_launch(const runtime::CudaFunction& function, Device device, const runtime::CudaGrid& grid, int64_t range,
                 const StepArguments& slots);

}  // namespace sinter
