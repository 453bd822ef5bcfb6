#pragma once
// What computes products and convolutions on the CPU: the candidates that the autotuner chooses from.
#include <memory>
#include <string>
#include <vector>

#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/runtime/cpu/onednn.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// Our own cores for this machine.
inline constexpr const char* kDefaultCandidate = "sinter";

struct ProductGeometry {
  int64_t m, n, k, batch;
  runtime::GemmOperand a, b;  // addresses are not looked at
  runtime::GemmOutput c;
};

struct ProductCandidate {
  std::string name;
  runtime::CpuIsa isa = runtime::best_cpu_isa();         // of our own cores
  std::shared_ptr<const runtime::OnednnProduct> onednn;  // instead of them
};

// At least one, the default first.
std::vector<std::shared_ptr<const ProductCandidate>> product_candidates(const ProductGeometry& geometry, bool epilogue);
// With addresses. Of the options, `batch` and `epilogue` are those the candidate was made for.
void run_product(const ProductCandidate& by, int64_t m, int64_t n, int64_t k, const runtime::GemmOperand& a,
                 const runtime::GemmOperand& b, const runtime::GemmOutput& c, runtime::GemmOptions options);

struct ConvolutionCandidate {
  std::string name;
  std::shared_ptr<const runtime::OnednnConvolutionKernel> onednn;  // null: our own cores
};

// At least one, the default first. Addresses are not looked at.
std::vector<ConvolutionCandidate> convolution_candidates(const ConvolutionAttrs& attrs, const TensorImpl& x,
                                                         const TensorImpl& weight, const TensorImpl& out);

}  // namespace sinter
