#pragma once
// What cuda_compile_stats tells, as NVRTC and the loader of modules count it.
#include <mutex>

#include "sinter/runtime/cuda/module.h"

namespace sinter::runtime {

struct CudaCompileCount {
  std::mutex mutex;
  CudaCompileStats stats;
};
CudaCompileCount& cuda_compile_count();

}  // namespace sinter::runtime
