#pragma once
// A `fused` node at known sizes and layouts: its compiled kernel and everything but the addresses of its operands.
#include <optional>

#include "sinter/engine/cuda/step.h"
#include "sinter/engine/fused_convolution.h"
#include "sinter/engine/fused_product.h"
#include "sinter/engine/kernel.h"
#include "sinter/engine/ways.h"
#include "sinter/loops/fused.h"

namespace sinter {

struct FusedKernel {
  std::string name;                      // "exp_sum_div"
  std::shared_ptr<const Kernel> kernel;  // null when there is nothing to compute
  std::vector<int64_t> params;           // sizes and strides, as the kernel takes them behind its operands
  int64_t range = 0, work = 1;
  std::string indexing;                  // the ops that read by an index; "" when none does

  // In place of all that, where the group begins with matrix products or with a convolution.
  std::optional<FusedProduct> product;
  std::optional<FusedConvolution> convolution;

  // Or several kernels in one launch, and the positions of their operands and results among all.
  struct Sibling {
    std::shared_ptr<const FusedKernel> kernel;
    std::vector<int> operands;
  };
  std::vector<Sibling> siblings;

  std::shared_ptr<const CudaStep> cuda;  // in place of all, on a GPU
};

// `inputs` are the geometries of the operands (null for a number), `outputs` those of the results. Sizes are parameters
// of the kernel: one text serves all sizes that are equal among each other in the same way.
FusedKernel compile_fused(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs);

// Whether the body is kernels side by side.
bool holds_siblings(const FusedAttrs& attrs);

// Whether the kernel of this contraction takes an epilogue.
bool takes_epilogue(const Node& node);

// One slot an operand, inputs before outputs: an address, or the bits of a number.
void launch(const FusedKernel& kernel, std::span<const int64_t> slots, PackedWeights packed = {});

}  // namespace sinter
