#pragma once
// GPU kernels on the CPU: their text is compiled for the host behind a dialect of its own, and the threads of a block run as
// fibers. A fiber runs until it waits for the others of its block (a barrier) or of its warp (a shuffle), so that both really
// exchange values, among as many lanes as the target has.
#include <memory>
#include <string>
#include <vector>

#include "sinter/tensor/target.h"
#include "sinter/codegen/gpu/geometry.h"

namespace sinter::testing {

// Kernels of one program, compiled together.
class KernelsOnHost {
 public:
  // `prelude` in place of host_prelude(target), for what a test plants in it.
  KernelsOnHost(const std::vector<codegen::GpuKernelText>& kernels, const Target& target,
                const std::string& prelude = {});

  // Runs a kernel over its range, block after block. Gives what went wrong among its threads: one that ended or waits for its
  // block while others of its warp exchange values, a warp that is not whole, a lane outside of it; empty where nothing did.
  std::string run(const codegen::GpuKernelText& kernel, const codegen::GpuGeometry& geometry, int64_t range,
                  const std::vector<int64_t>& slots) const;

  static std::string host_prelude(const Target& target);

 private:
  Target target_;
  std::shared_ptr<const void> code_;
  std::vector<std::pair<std::string, void (*)(const void*)>> entries_;
  void** host_ = nullptr;  // the program's variable that names the block at work
};

}  // namespace sinter::testing
