#pragma once
// How many blocks and threads a kernel gets.
#include <cstdint>

#include "sinter/codegen/cuda/emit.h"

namespace sinter::codegen {

struct CudaGeometry {
  unsigned blocks = 1;
  unsigned threads[2] = {1, 1};  // x: neighbours; y
  unsigned shared_bytes = 0;     // dynamic
  bool operator==(const CudaGeometry&) const = default;
};

// What of a kernel decides; the texts need not be kept.
struct CudaLaunch {
  Spread spread = Spread::kElements;
  int lanes = 1;
  bool along = false;
  int most = 512;

  // Of a text, or of a schedule.
  static CudaLaunch of(const auto& kernel) { return {kernel.spread, kernel.lanes, kernel.along, kernel.most}; }
};

// `range` and `work`: the numbers of CudaKernelText. Results do not depend on how many multiprocessors there are, but for
// the rounding of sums.
CudaGeometry cuda_geometry(const CudaLaunch& kernel, int64_t range, int64_t work, int multiprocessors);
inline CudaGeometry cuda_geometry(const CudaKernelText& kernel, int64_t range, int64_t work, int multiprocessors) {
  return cuda_geometry(CudaLaunch::of(kernel), range, work, multiprocessors);
}
// As one of several kernels in one launch: threads[0] * threads[1] is kSiblingThreads.
CudaGeometry cuda_sibling_geometry(const CudaLaunch& kernel, int64_t range, int64_t work, int multiprocessors);

}  // namespace sinter::codegen
