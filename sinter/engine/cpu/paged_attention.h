#pragma once
// Attention to pages on the CPU, by the blocks of runtime/cpu/attention.
#include <vector>

#include "sinter/engine/eager/eager.h"
#include "sinter/engine/step/compiled_step.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/fused.h"
#include "sinter/runtime/cpu/attention/attention.h"

namespace sinter {

// The op on operands that lie like this; what kernels do not read as it lies is copied first.
class PagedAttentionCall {
 public:
  PagedAttentionCall(const PagedAttentionAttrs& attrs, std::span<const TensorImpl* const> operands);
  // At the addresses of the six operands and of the result, which is row-major.
  void run(std::span<const int64_t> addresses) const;

 private:
  runtime::AttentionProblem problem_;
  int64_t pages_ = 0;
  std::vector<IntrusivePtr<TensorImpl>> operands_;  // geometries
  std::vector<char> copied_;
};

std::unique_ptr<CompiledStep> make_cpu_paged_attention(const FusedAttrs& attrs,
                                                       std::span<const TensorImpl* const> inputs,
                                                       std::span<const TensorImpl* const> outputs);

}  // namespace sinter
