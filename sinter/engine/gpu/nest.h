#pragma once
// Generated nests on any GPU: from a nest, or a fused node, to the text of its kernel and the numbers that it is launched with.
// Nothing here touches a device.
#include "sinter/base/function_ref.h"
#include "sinter/codegen/gpu/geometry.h"
#include "sinter/ops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// What of a GPU decides; how many multiprocessors it has is asked only where that does.
struct GpuMachine {
  const Target& target;
  FunctionRef<int()> multiprocessors;
};

// A nest at known sizes and layouts as text, with the numbers that it is launched with.
struct GpuNest {
  codegen::GpuKernelText kernel;
  std::string name, indexing;   // for people
  std::vector<int64_t> params;  // behind the operands
  int64_t range = 0, work = 1;  // range 0: there is nothing to do

  codegen::GpuLaunch spread() const { return codegen::GpuLaunch::of(kernel); }
};

// A fused node without contractions or siblings.
GpuNest emit_gpu_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, const GpuMachine& machine);

// The fused nodes side by side in a body, each with the positions of its operands among the body's, inputs before outputs.
struct GpuSibling {
  GpuNest nest;
  std::vector<int> operands;
};
// Those that have something to do.
std::vector<GpuSibling> emit_sibling_nests(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                           std::span<const TensorImpl* const> outputs, const GpuMachine& machine);

// A fused node as rows of another kernel (KernelPart::kRows).
GpuNest emit_gpu_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, const Target& target);
// What follows contractions: of one element or of a run of neighbours, or as a kernel over results of dtype `memory`.
GpuNest emit_gpu_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs, const std::string& name, bool run,
                        const Target& target);
GpuNest emit_gpu_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs, DType memory, const Target& target);

// A name that no other text has.
std::string gpu_kernel_name(const std::string& name, const std::string& text, const GpuFacts& facts);

}  // namespace sinter
