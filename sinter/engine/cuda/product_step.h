#pragma once
// Matrix products of one left operand and what follows them on a GPU.
#include "sinter/engine/cuda/step.h"

namespace sinter {

std::unique_ptr<CudaStep> make_product_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
