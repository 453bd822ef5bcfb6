#pragma once
// A fused node on a GPU, ready to be launched.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/codegen/cuda/emit.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/ops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// A kernel whose text is known and whose code is loaded with that of others.
struct CudaKernel {
  runtime::CudaSource source;
  const std::string& (*prelude)() = codegen::cuda_prelude;  // what its text stands behind
  runtime::CudaFunction function = {};
};

class CudaStep {
 public:
  virtual ~CudaStep() = default;
  // The kernels it launches.
  const std::vector<std::shared_ptr<CudaKernel>>& kernels() const { return kernels_; }
  // One slot an operand of the node, inputs before outputs. Where kept_bytes() is not 0, one more: the address of that
  // memory, or 0 where it is not kept.
  virtual void launch(const CudaSlots& slots) const = 0;

  // What the step makes of operands that are the same in many calls (a weight in another order) and finds again in the next
  // call: so many bytes, made of these operands (positions among the node's) by `make_kept`. Whoever runs the step keeps it
  // where no step writes the operands, and makes it again, in the same memory, when they have changed; never while a graph
  // is recorded.
  virtual int64_t kept_bytes() const { return 0; }
  virtual std::vector<int> kept_from() const { return {}; }
  virtual void make_kept(const CudaSlots&, void* /*to*/) const {}

  const std::string& name() const { return name_; }
  // Other ways to do the same, their code not loaded yet; `way` names each.
  virtual std::vector<std::shared_ptr<CudaStep>> others() const { return {}; }
  const std::string& way() const { return way_; }
  // Does what the libraries it calls would do at the first launch: on any thread, before that.
  virtual void prepare_libraries() const {}
  // Lets libraries it calls try their algorithms on these operands, whose results are overwritten.
  virtual void tune_libraries(const CudaSlots&, double /*seconds*/) const {}

 protected:
  std::string name_, way_;
  std::vector<std::shared_ptr<CudaKernel>> kernels_;
};

// As compile_fused: everything but the code.
std::unique_ptr<CudaStep> make_cuda_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                         std::span<const TensorImpl* const> outputs, Device device);

// Compiles and loads the kernels of the steps, on all threads.
void load_kernels(std::span<CudaStep* const> steps, Device device);

}  // namespace sinter
