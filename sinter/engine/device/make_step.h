#pragma once
// From a fused node to the step that runs it on its device.
#include "sinter/engine/step/compiled_step.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/fused.h"

namespace sinter {

// `inputs` are the geometries of the operands (null for a number), `outputs` those of the results. Sizes are parameters of
// its kernels: one text serves all sizes that are equal among each other in the same way. Nothing is compiled yet.
std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                        std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
