#pragma once
// A convolution and the ops that follow it on the CPU, in one launch: they work on pieces of its result.
#include "sinter/engine/step/compiled_step.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/fused.h"

namespace sinter {

std::unique_ptr<CompiledStep> make_cpu_convolution(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                   std::span<const TensorImpl* const> outputs);

}  // namespace sinter
