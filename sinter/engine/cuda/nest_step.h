#pragma once
// Generated nests on a GPU: alone, or several side by side in one launch.
#include "sinter/engine/cuda/step.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/engine/step/kernel_parameters.h"

namespace sinter {

struct CudaNest : GpuNest {
  // Params and the error cell.
  void add_rest(StepArguments& slots, Device device) const;
};

// As emit_gpu_nest and the like, for a GPU of CUDA.
CudaNest emit_cuda_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs);
CudaNest emit_cuda_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                            std::span<const TensorImpl* const> outputs, const std::string& name);
CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, bool run = false);
CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, DType memory);

std::unique_ptr<CudaStep> make_nest_step(CudaNest nest, Device device);
std::unique_ptr<CudaStep> make_sibling_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
