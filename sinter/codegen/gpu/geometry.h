#pragma once
// How many blocks and threads a kernel gets.
#include <cstdint>

#include "sinter/codegen/gpu/emit.h"

namespace sinter::codegen {

struct GpuGeometry {
  unsigned blocks = 1;
  unsigned threads[2] = {1, 1};  // x: neighbours; y
  unsigned shared_bytes = 0;     // dynamic
  bool operator==(const GpuGeometry&) const = default;
};

// What of a kernel decides; the texts need not be kept.
struct GpuLaunch {
  Spread spread = Spread::kElements;
  int lanes = 1;
  bool along = false;
  int most = 512;
  int warp = 32;  // threads that run in step

  // Of a text, or of a schedule.
  static GpuLaunch of(const auto& kernel) { return {kernel.spread, kernel.lanes, kernel.along, kernel.most, kernel.warp}; }
};

// `range` and `work`: the numbers of GpuKernelText. Results do not depend on how many multiprocessors there are, but for
// the rounding of sums.
GpuGeometry gpu_geometry(const GpuLaunch& kernel, int64_t range, int64_t work, int multiprocessors);
inline GpuGeometry gpu_geometry(const GpuKernelText& kernel, int64_t range, int64_t work, int multiprocessors) {
  return gpu_geometry(GpuLaunch::of(kernel), range, work, multiprocessors);
}
// As one of several kernels in one launch: threads[0] * threads[1] is kSiblingThreads.
GpuGeometry gpu_sibling_geometry(const GpuLaunch& kernel, int64_t range, int64_t work, int multiprocessors);

}  // namespace sinter::codegen
