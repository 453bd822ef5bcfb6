#pragma once
// A fused node on a GPU, ready to be launched.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/step/compiled_step.h"
#include "sinter/ops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// A kernel whose text is known and whose code is loaded with that of others.
struct CudaKernel {
  runtime::CudaSource source;
  const std::string& (*prelude)() = codegen::cuda_prelude;  // what its text stands behind
  runtime::CudaFunction function = {};
};

class CudaStep : public CompiledStep {
 public:
  explicit CudaStep(Device device) : device_(device) {}
  // The kernels it launches.
  const std::vector<std::shared_ptr<CudaKernel>>& kernels() const { return kernels_; }

  void load() override;
  bool is_loaded() const override;
  size_t code_length() const override;

 protected:
  Device device_;
  std::vector<std::shared_ptr<CudaKernel>> kernels_;
};

// As make_step.
std::unique_ptr<CudaStep> make_cuda_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device);

}  // namespace sinter
