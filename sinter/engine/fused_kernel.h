#pragma once
// A `fused` node at known sizes and layouts: its compiled kernel and everything but the addresses of its operands.
#include "sinter/engine/kernel.h"
#include "sinter/loops/fused.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter {

struct FusedKernel {
  std::string name;                      // "exp_sum_div"
  std::shared_ptr<const Kernel> kernel;  // null when there is nothing to compute
  std::vector<int64_t> params;           // sizes and strides, as the kernel takes them behind its operands
  int64_t range = 0, work = 1;

  // Where the group begins with a matrix product: its geometry (addresses are the operands'), and the function that runs
  // on pieces of its result.
  using Epilogue = void (*)(const int64_t* args, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols,
                            int64_t stride);
  struct Product {
    int64_t m, n, k, batch;
    runtime::GemmOperand a, b;
    runtime::GemmOutput c;
    int a_slot, b_slot, c_slot;
    Epilogue epilogue;
  };
  std::optional<Product> product;
};

// `inputs` are the geometries of the operands (null for a number), `outputs` those of the results. Sizes are parameters
// of the kernel: one text serves all sizes that are equal among each other in the same way.
FusedKernel compile_fused(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs);

// Whether the kernel of this contraction takes an epilogue.
bool takes_epilogue(const Node& node);

// One slot an operand, inputs before outputs: an address, or the bits of a number.
void launch(const FusedKernel& kernel, std::span<const int64_t> slots);

}  // namespace sinter
