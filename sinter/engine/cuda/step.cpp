#include "sinter/engine/cuda/step.h"

#include "sinter/codegen/cuda/gemv.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/engine/cuda/product_step.h"
#include "sinter/engine/fused_kernel.h"
#include "sinter/loops/fused.h"
#include "sinter/ops/contract.h"

namespace sinter {

std::unique_ptr<CudaStep> make_cuda_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device) {
  if (auto contractions = contractions_of(*attrs.body); !contractions.empty()) {
    if (contractions[0]->op == &convolution_op())
      return make_convolution_step(attrs, *contractions[0], inputs, outputs, device);
    return make_product_step(attrs, inputs, outputs, device);
  }
  if (holds_siblings(attrs)) return make_sibling_step(attrs, inputs, outputs, device);
  return make_nest_step(emit_cuda_nest(attrs, inputs, outputs), device);
}

void load_kernels(std::span<CudaStep* const> steps, Device device) {
  static const std::string prelude = codegen::cuda_prelude() + codegen::gemv_prelude();
  std::vector<runtime::CudaSource> sources;
  for (auto* step : steps)
    for (auto& kernel : step->kernels()) sources.push_back(kernel->source);
  if (sources.empty()) return;
  auto functions = runtime::load_cuda(sources, prelude, device.index);
  size_t next = 0;
  for (auto* step : steps)
    for (auto& kernel : step->kernels()) kernel->function = functions[next++];
}

}  // namespace sinter
