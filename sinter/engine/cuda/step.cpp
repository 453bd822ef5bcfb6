#include "sinter/engine/cuda/step.h"

#include <algorithm>
#include <map>

#include "sinter/engine/cuda/attention_step.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/cuda/nest_step.h"
#include "sinter/engine/cuda/product_step.h"

namespace sinter {

std::unique_ptr<CudaStep> make_cuda_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device) {
  switch (attrs.kind) {
    case FusedKind::kProduct: return make_product_step(attrs, inputs, outputs, device);
    case FusedKind::kConvolution: return make_convolution_step(attrs, inputs, outputs, device);
    case FusedKind::kAttention: return make_attention_step(attrs, inputs, outputs, device);
    case FusedKind::kSiblings: return make_sibling_step(attrs, inputs, outputs, device);
    default: return make_nest_step(emit_cuda_nest(attrs, inputs, outputs), device);
  }
}

void CudaStep::load() {
  struct Batch {
    std::vector<CudaKernel*> kernels;
    std::vector<runtime::CudaSource> sources;
  };
  std::map<const std::string*, Batch> by_prelude;
  for (auto& kernel : kernels_) {
    if (kernel->function) continue;
    auto& batch = by_prelude[&kernel->prelude()];
    batch.kernels.push_back(kernel.get());
    batch.sources.push_back(kernel->source);
  }
  for (auto& [prelude, batch] : by_prelude) {
    auto functions = runtime::load_cuda(batch.sources, *prelude, device_.index());
    for (size_t i = 0; i < functions.size(); ++i) batch.kernels[i]->function = functions[i];
  }
}

bool CudaStep::is_loaded() const {
  return std::all_of(kernels_.begin(), kernels_.end(), [](auto& kernel) { return bool(kernel->function); });
}

size_t CudaStep::code_length() const {
  size_t length = 0;
  for (auto& kernel : kernels_) length += kernel->source.text.size();
  return length;
}

}  // namespace sinter
