#pragma once
// Generated nests on a GPU: alone, or several side by side in one launch.
#include "sinter/codegen/gpu/geometry.h"
#include "sinter/engine/cuda/step.h"
#include "sinter/engine/step/kernel_parameters.h"

namespace sinter {

// A nest at known sizes and layouts as text, with the numbers that it is launched with.
struct CudaNest {
  codegen::GpuKernelText kernel;
  std::string name, indexing;   // for people
  std::vector<int64_t> params;  // behind the operands
  int64_t range = 0, work = 1;  // range 0: there is nothing to do

  codegen::GpuLaunch spread() const { return codegen::GpuLaunch::of(kernel); }
  // Params and the error cell.
  void add_rest(StepArguments& slots, Device device) const;
};

// A fused node without contractions or siblings.
CudaNest emit_cuda_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs);

// Such a node as rows of another kernel (KernelPart::kRows).
CudaNest emit_cuda_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                            std::span<const TensorImpl* const> outputs, const std::string& name);
// What follows contractions: of one element or of a run of neighbours, or as a kernel over results of dtype `memory`.
CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, bool run = false);
CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, DType memory);

std::unique_ptr<CudaStep> make_nest_step(CudaNest nest, Device device);
std::unique_ptr<CudaStep> make_sibling_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
