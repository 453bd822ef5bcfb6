#include "sinter/engine/cpu/attention_step.h"

#include "sinter/engine/cpu/paged_attention.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

namespace {

class CpuAttentionStep final : public CompiledStep {
 public:
  CpuAttentionStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                   std::span<const TensorImpl* const> outputs)
      : parts_(read_attention(attrs, inputs, outputs)), layout_(eager::attention_layout(parts_)) {
    name_ = fused_name(*attrs.body);
    made_by_ = "attention";
  }

  void launch(const StepArguments& arguments) const override {
    if (!layout_) return eager::run_attention_op(parts_, arguments);
    auto addresses = eager::attention_addresses(parts_, arguments);
    run_cpu_attention(*layout_, {addresses.data(), addresses.size()});
  }

 private:
  AttentionParts parts_;
  std::optional<eager::AttentionLayout> layout_;
};

}  // namespace

void run_cpu_attention(const eager::AttentionLayout& layout, std::span<const int64_t> addresses) {
  BufferPtr copies;
  if (layout.copied_bytes() > 0) copies = allocate_buffer(size_t(layout.copied_bytes()), Device());
  auto memory = layout.at(addresses, copies ? copies->data() : nullptr);
  if (!layout.is_backward()) return runtime::attention(memory.problem);
  runtime::attention_backward({memory.problem, memory.grad, memory.log_sums, memory.means, memory.gradients[0],
                               memory.gradients[1], memory.gradients[2]});
}

std::unique_ptr<CompiledStep> make_cpu_attention(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                 std::span<const TensorImpl* const> outputs) {
  if (template_op_in(attrs).op == &paged_attention_op()) return make_cpu_paged_attention(attrs, inputs, outputs);
  return std::make_unique<CpuAttentionStep>(attrs, inputs, outputs);
}

}  // namespace sinter
