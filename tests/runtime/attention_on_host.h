#pragma once
// The texts of attention's CUDA kernels on the CPU: threads of a block run as fibers, and what the texts have instructions for
// (tensor cores, matrices from shared memory, copies that arrive later) is computed by its definition among real lanes.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/runtime/cuda/module.h"

namespace sinter::runtime {

class AttentionOnHost {
 public:
  explicit AttentionOnHost(std::span<const CudaSource> sources);

  // Both are allowed to a GPU: copies to shared memory arrive when they are waited for and the first threads run ahead, or
  // copies arrive at once and the last threads run ahead.
  enum class Order { kLateCopies, kEarlyCopies };
  // Runs a kernel, block after block, each with shared memory full of NaN. Gives what went wrong among its threads, a barrier
  // that some never come to; empty where nothing did.
  std::string run(size_t kernel, const CudaGrid& grid, std::span<const std::byte> params, Order order) const;

 private:
  std::shared_ptr<const CpuCode> code_;
  std::vector<void (*)(const void*)> entries_;
};

}  // namespace sinter::runtime
