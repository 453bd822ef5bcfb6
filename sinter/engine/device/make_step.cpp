#include "sinter/engine/device/make_step.h"

#include <algorithm>

#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/contract.h"

namespace sinter {

std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                        std::span<const TensorImpl* const> outputs, Device device) {
  return engine_of(device).make_step(attrs, inputs, outputs);
}

bool is_fusable_convolution(const Node& node) {
  if (node.op != &convolution_op() || !eager::gemm_type(node.types[0].dtype)) return false;
  // No taps: nothing to multiply.
  auto& weight = node.inputs[1].type().shape;
  return std::none_of(weight.begin(), weight.end(), [](const Dim& d) { return d.same_as(0); });
}

bool fuses_contraction(const Node& node) {
  return is_contraction(node) && engine_of(node.types[0].device).fuses_contraction(node);
}

}  // namespace sinter
