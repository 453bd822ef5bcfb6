#pragma once
// A compiled loop nest and how to call it.
#include <memory>
#include <string>
#include <vector>

#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/kernel_stages.h"

namespace sinter {

// A kernel of a device that queues its launches, compiled and loaded there.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  // `args` as a CPU kernel takes them: operands, params, the error cell.
  virtual void launch(const int64_t* args) const = 0;
};

struct Kernel {
  using Function = void (*)(const int64_t* args, int64_t begin, int64_t end);

  Function function = nullptr;
  std::shared_ptr<const DeviceKernel> on_device;  // in place of the function, on a GPU
  int64_t granule = 1;      // pieces of the range should be a multiple of this
  bool split_last = false;  // the range leaves out the last dimension that could be shared out
  std::vector<int> range_dims;  // the dimensions of the result (of the domain, for a scatter) whose points the range has
  std::vector<Parameter> parameters;  // their values follow the operands
  std::string name;
  std::shared_ptr<const void> code;  // keeps the function loaded
};

struct KernelOptions {
  bool stream = false;  // on a CPU: stores go past the caches, and results are aligned to 64 bytes
  bool wide = false;    // on a GPU: some operand reaches over 2^31 elements or more
  int transposed_along = -1;        // on a GPU, of a map: an axis along which some operand lies that strides along the last one
};

// Schedules, emits and compiles the nest of one op for a device. Compiled code is kept in memory and on disk.
std::shared_ptr<const Kernel> compile_kernel(const LoopNest& nest, Device device = {}, KernelOptions options = {});

// A kernel of a CPU before it is compiled: its text, and everything but the code.
struct WrittenKernel {
  Kernel kernel;
  Schedule plan;
  codegen::KernelText emitted;

  std::shared_ptr<const Kernel> compile() const;
};
WrittenKernel write_kernel(const LoopNest& nest, const std::string& name, const CpuFacts& facts = {});
// As people read it.
KernelStages stages_of(const LoopNest& nest, const WrittenKernel& written);

// About how many steps of the range one piece has, when a step touches `work` elements.
int64_t grain_of(const Kernel& kernel, int64_t work);
// Runs the kernel over [0, range) on the thread pool, or queues it on its GPU; `work` is about how many elements one step of
// the range touches.
void launch(const Kernel& kernel, const int64_t* args, int64_t range, int64_t work);

// While alive, launches of this thread do nothing: what would run is found or compiled, and no memory is touched.
class NoLaunches {
 public:
  NoLaunches();
  ~NoLaunches();
  NoLaunches(const NoLaunches&) = delete;
};
// Whether one is.
bool launches_are_off();

}  // namespace sinter
