#pragma once
// Matrix products of one left operand and what follows them on a GPU.
#include "sinter/engine/cuda/step.h"

namespace sinter {

// Rows of the left operand that one kernel multiplies, prologue and epilogue included; more are given to the library.
constexpr int64_t kSkinnyRows = 64;

std::unique_ptr<CudaStep> make_product_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
