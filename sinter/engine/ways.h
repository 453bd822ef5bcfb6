#pragma once
// The ways in which products and convolutions can be computed on the CPU: what the autotuner chooses from.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "sinter/runtime/cpu/onednn.h"

namespace sinter {

struct ProductGeometry {
  int64_t m, n, k, batch;
  runtime::GemmOperand a, b;  // addresses are not looked at
  runtime::GemmOutput c;
};

struct ProductWay {
  std::string name;
  runtime::CpuIsa isa = runtime::best_cpu_isa();         // of our own cores
  std::shared_ptr<const runtime::OnednnProduct> onednn;  // instead of them
};

// At least one; the first is what `run_product` does without a way.
std::vector<std::shared_ptr<const ProductWay>> product_ways(const ProductGeometry& geometry, bool epilogue);
// With addresses. Null is the default way. Of the options, `batch` and `epilogue` are those the way was made for.
void run_product(const ProductWay* way, int64_t m, int64_t n, int64_t k, const runtime::GemmOperand& a,
                 const runtime::GemmOperand& b, const runtime::GemmOutput& c, runtime::GemmOptions options);

struct ConvolutionWay {
  std::string name;
  std::shared_ptr<const runtime::OnednnConvolutionKernel> onednn;  // null: our own cores
};

// At least one, our own first. Addresses are not looked at.
std::vector<ConvolutionWay> convolution_ways(const ConvolutionAttrs& attrs, const TensorImpl& x,
                                             const TensorImpl& weight, const TensorImpl& out);

// A way to run one op into memory that is there.
struct OpWay {
  std::string name;
  std::function<void(std::span<const TensorArg> inputs, const Tensor& out)> run;
};

// The ways of an op whose operands and result have this geometry; the first is the default. One alone where there is
// nothing to choose. Each stays valid for all operands of the same geometry.
std::vector<OpWay> op_ways(const Op& op, const Attrs& attrs, std::span<const TensorImpl* const> inputs,
                           const TensorImpl& out);

}  // namespace sinter
