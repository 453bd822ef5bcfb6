#pragma once
// A compiled loop nest and how to call it.
#include <memory>
#include <string>
#include <vector>

#include "sinter/loops/loop_nest.h"

namespace sinter {

struct CudaLoopKernel;

struct Kernel {
  using Function = void (*)(const int64_t* args, int64_t begin, int64_t end);

  Function function = nullptr;
  bool split_last = false;          // the range leaves out the last parallel axis
  int64_t granule = 1;              // pieces of the range should be a multiple of this
  std::vector<std::string> params;  // symbols whose values follow the operands
  std::vector<int> parallel_axes;   // which coordinates of the result (of the domain, for a scatter) run in parallel
  std::string name;
  std::shared_ptr<const void> code;  // keeps the function loaded
  std::shared_ptr<const CudaLoopKernel> cuda;  // in place of the function, on a GPU
};

struct KernelOptions {
  bool stream = false;  // on a CPU: stores go past the caches, and results are aligned to 64 bytes
  bool wide = false;    // on a GPU: some operand reaches over 2^31 elements or more
  int turn = -1;        // on a GPU, of a map: an axis along which some operand lies that strides along the last one
};

// Schedules, emits and compiles the nest for a device. Compiled code is kept in memory and on disk.
std::shared_ptr<const Kernel> compile_kernel(const LoopNest& nest, Device device = {}, KernelOptions options = {});

// About how many steps of the range one piece has, when a step touches `work` elements.
int64_t grain_of(const Kernel& kernel, int64_t work);
// Runs the kernel over [0, range) on the thread pool, or queues it on its GPU; `work` is about how many elements one step of the range touches.
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
