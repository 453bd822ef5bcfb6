#pragma once
// A `fused` node at known sizes and layouts: its compiled kernel and everything but the addresses of its operands.
#include "sinter/engine/kernel.h"
#include "sinter/loops/fused.h"

namespace sinter {

struct FusedKernel {
  std::string name;                      // "exp_sum_div"
  std::shared_ptr<const Kernel> kernel;  // null when there is nothing to compute
  std::vector<int64_t> params;           // sizes and strides, as the kernel takes them behind its operands
  int64_t range = 0, work = 1;
};

// `inputs` are the geometries of the operands (null for a number), `outputs` those of the results. Sizes are parameters
// of the kernel: one text serves all sizes that are equal among each other in the same way.
FusedKernel compile_fused(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs);

// One slot an operand, inputs before outputs: an address, or the bits of a number.
void launch(const FusedKernel& kernel, std::span<const int64_t> slots);

}  // namespace sinter
