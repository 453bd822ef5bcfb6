#pragma once
// One task of the driver: a block of rows and columns of C over the whole of k. Internal to gemm/.
#include "sinter/runtime/cpu/gemm/blocked.h"

namespace sinter::runtime::gemm_detail {

// Products of one A, one shape but for n, and one plan. Work is counted in units of plan.step columns of the parts'
// sources: one part's after another's, or, together, those of every part at once.
template <class T>
struct Group {
  std::span<const Problem<T>> parts;
  bool together;
  const JointEpilogue* epilogue;
  int64_t first_row, first_part;

  const Plan& plan() const { return parts.front().plan; }
  int64_t units_of(const Problem<T>& p) const {
    return (p.source.end - p.source.begin + p.plan.step - 1) / p.plan.step;
  }
  int64_t units() const {
    int64_t total = 0;
    for (const auto& p : parts.first(together ? 1 : parts.size())) total += units_of(p);
    return total;
  }
};

// Whether kernels write to scratch, to be converted or scattered afterwards, and not to C itself.
template <class T>
bool is_staged(const Group<T>& group, const Problem<T>& p) {
  return group.together || !p.c || p.c_storage != kNative || p.c_col_stride != 1 || (p.swapped && group.epilogue);
}

// Rows [r0, r1) of units [u0, u1).
template <class T>
void run_block(const Group<T>& group, int64_t r0, int64_t r1, int64_t u0, int64_t u1);

}  // namespace sinter::runtime::gemm_detail
