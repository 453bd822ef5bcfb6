#pragma once
// Matrix products of one left operand and the ops around them on the CPU, in one launch.
#include "sinter/engine/step/compiled_step.h"
#include "sinter/ops/fused.h"

namespace sinter {

std::unique_ptr<CompiledStep> make_cpu_product(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                               std::span<const TensorImpl* const> outputs);

}  // namespace sinter
