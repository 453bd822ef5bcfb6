#include "sinter/engine/step/make_step.h"

#include <algorithm>

#include "sinter/engine/cpu/convolution_step.h"
#include "sinter/engine/cpu/nest_step.h"
#include "sinter/engine/cpu/product_step.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/cuda/step.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/loops/fused.h"

namespace sinter {

namespace {

std::unique_ptr<CompiledStep> make_cpu_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs) {
  if (auto contractions = contractions_of(*attrs.body); !contractions.empty()) {
    if (contractions[0]->op == &convolution_op()) return make_cpu_convolution(attrs, *contractions[0], inputs, outputs);
    return make_cpu_product(attrs, inputs, outputs);
  }
  if (holds_siblings(attrs)) return make_cpu_siblings(attrs, inputs, outputs);
  return std::make_unique<CpuNestStep>(attrs, inputs, outputs);
}

}  // namespace

std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                        std::span<const TensorImpl* const> outputs, Device device) {
  if (device.is_cuda()) return make_cuda_step(attrs, inputs, outputs, device);
  return make_cpu_step(attrs, inputs, outputs);
}

bool holds_siblings(const FusedAttrs& attrs) {
  auto& nodes = attrs.body->nodes();
  return attrs.domain.empty() && std::any_of(nodes.begin(), nodes.end(), [](auto& n) { return n.op == &fused_op(); });
}

bool takes_epilogue(const Node& node) {
  static const Op *mm = find_op("mm"), *bmm = find_op("bmm");
  if (is_fusable_convolution(node)) return node.types[0].device.is_cpu() || is_fusable_on_cuda(node);
  return (node.op == mm || node.op == bmm) && eager::gemm_type(node.types[0].dtype).has_value();
}

}  // namespace sinter
