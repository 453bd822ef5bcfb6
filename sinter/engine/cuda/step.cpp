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
  static const std::string with_products = codegen::cuda_prelude() + codegen::gemv_prelude();
  for (bool products : {true, false}) {
    std::vector<CudaKernel*> kernels;
    std::vector<runtime::CudaSource> sources;
    for (auto* step : steps)
      for (auto& kernel : step->kernels()) {
        if ((kernel->source.text.find("gemv::") != std::string::npos) != products) continue;
        kernels.push_back(kernel.get());
        sources.push_back(kernel->source);
      }
    if (sources.empty()) continue;
    auto functions = runtime::load_cuda(sources, products ? with_products : codegen::cuda_prelude(), device.index);
    for (size_t i = 0; i < kernels.size(); ++i) kernels[i]->function = functions[i];
  }
}

}  // namespace sinter
