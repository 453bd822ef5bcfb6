#pragma once
// Products of many rows of 16-bit types and what follows them as one kernel of our own on tensor cores.
#include <functional>

#include "sinter/engine/cuda/step.h"
#include "sinter/engine/step/contraction_parts.h"

namespace sinter {

// Null where the kernel does not take these operands, or, unless `anyway`, where nobody asked for it (SINTER_CUDA_PRODUCTS).
// `library` makes the step that uses cuBLASLt, for those who try both.
std::unique_ptr<CudaStep> make_tile_step(const ContractionParts& read, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device, bool anyway,
                                         std::function<std::shared_ptr<CudaStep>()> library);

}  // namespace sinter
