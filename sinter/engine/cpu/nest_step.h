#pragma once
// Generated nests on the CPU: alone, or several side by side in one launch.
#include "sinter/engine/kernel.h"
#include "sinter/engine/step/compiled_step.h"
#include "sinter/engine/step/kernel_parameters.h"
#include "sinter/ops/fused.h"

namespace sinter {

class CpuNestStep final : public CompiledStep {
 public:
  // A fused node without contractions or siblings.
  CpuNestStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs, std::span<const TensorImpl* const> outputs);

  void load() override;
  bool is_loaded() const override { return kernel_ || range_ == 0; }
  size_t code_length() const override { return written_.emitted.text.size(); }
  void launch(const StepArguments& arguments) const override { launch(arguments.values()); }
  void launch(std::span<const int64_t> slots) const;

  // For whoever runs it beside others: pieces of [0, range), the arguments behind the operands.
  const Kernel* kernel() const { return kernel_.get(); }  // null when there is nothing to compute
  int64_t range() const { return range_; }
  int64_t grain() const { return grain_of(*kernel_, work_); }
  std::span<const int64_t> params() const { return params_; }
  const std::string& indexing() const { return indexing_; }

 private:
  WrittenKernel written_;
  std::vector<int64_t> params_;  // sizes and strides, as the kernel takes them behind its operands
  int64_t range_ = 0, work_ = 1;
  std::string indexing_;         // the ops that read by an index; "" when none does
  std::shared_ptr<const Kernel> kernel_;
};

std::unique_ptr<CompiledStep> make_cpu_siblings(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs);

}  // namespace sinter
