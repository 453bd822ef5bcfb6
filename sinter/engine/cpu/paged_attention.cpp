#include "sinter/engine/cpu/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/eager/attention.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/graph/verify.h"

namespace sinter {

namespace {

enum Operand : size_t { kQuery, kKeys, kValues, kTable, kStarts, kLengths, kOperands };

runtime::AttentionOperand rows_of(const TensorImpl& t) { return {nullptr, t.strides[0], t.strides[1], t.strides[2]}; }

}  // namespace

PagedAttentionCall::PagedAttentionCall(const PagedAttentionAttrs& attrs, std::span<const TensorImpl* const> operands) {
  for (size_t i = 0; i < kOperands; ++i) {
    auto& t = *operands[i];
    operands_.push_back(make_intrusive<TensorImpl>(t));
    copied_.push_back(i < kTable ? t.sizes.back() != 1 && t.strides.back() != 1 : !t.contiguous);
  }
  auto lying = [&](Operand i) {
    TensorImpl t = *operands[i];
    if (copied_[i]) t.strides = contiguous_strides(t.sizes);
    return rows_of(t);
  };
  const IntList &q = operands[kQuery]->sizes, &k = operands[kKeys]->sizes, &table = operands[kTable]->sizes;
  pages_ = k[0];
  problem_ = {.batch = q[0],
              .heads = q[1],
              .queries = q[2],
              .keys = table[1] * k[2],
              .size = q[3],
              .value_size = operands[kValues]->sizes[3],
              .group = q[1] / k[1],
              .type = *eager::gemm_type(operands[kQuery]->dtype),
              .query = lying(kQuery),
              .key = lying(kKeys),
              .value = lying(kValues),
              .scale = float(attrs.scale.value_or(1 / std::sqrt(double(q[3]))))};
  problem_.pages = {.table = nullptr, .table_stride = table[1], .size = k[2], .window = attrs.window};
}

void PagedAttentionCall::run(std::span<const int64_t> addresses) const {
  TensorList copies;
  auto data = [&](Operand i) -> const void* {
    if (!copied_[i]) return reinterpret_cast<const void*>(uintptr_t(addresses[i]));
    copies.push_back(eager::at_address(*operands_[i], addresses[i]).contiguous());
    return copies.back().data_ptr();
  };
  runtime::AttentionProblem p = problem_;
  p.query.data = data(kQuery), p.key.data = data(kKeys), p.value.data = data(kValues);
  p.pages.table = static_cast<const int64_t*>(data(kTable));
  p.pages.starts = static_cast<const int64_t*>(data(kStarts));
  p.pages.lengths = static_cast<const int64_t*>(data(kLengths));
  p.out = reinterpret_cast<void*>(uintptr_t(addresses[kOperands]));
  for (int64_t row = 0; row < p.batch; ++row) {
    const int64_t start = p.pages.starts[row];
    check(start >= 0, "paged_attention: row {} starts at {}", row, start);
    // What queries see is in the table; what they do not see is not read.
    const int64_t end = std::min({start + p.queries, p.pages.lengths[row], p.keys});
    check(end == std::min(start + p.queries, p.pages.lengths[row]),
          "paged_attention: row {} has {} positions, its table {}", row, p.pages.lengths[row], p.keys);
    for (int64_t i = 0; i * p.pages.size < end; ++i) {
      const int64_t page = p.pages.table[row * p.pages.table_stride + i];
      check(page >= 0 && page < pages_, "paged_attention: row {} has page {}; there are {}", row, page, pages_);
    }
  }
  runtime::attention(p);
}

namespace {

class CpuPagedAttentionStep final : public CompiledStep {
 public:
  CpuPagedAttentionStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs)
      : parts_(read_attention(attrs, inputs, outputs)) {
    name_ = fused_name(*attrs.body);
    made_by_ = "attention";
    const Node& node = *parts_.node;
    if (!eager::has_own_kernel(OpCall{*node.op, types_of(node.inputs), node.attrs})) return;
    std::vector<const TensorImpl*> operands;
    for (auto& t : parts_.operand_geometries) {
      if (t->numel == 0) return;
      operands.push_back(t.get());
    }
    call_.emplace(node.attrs.as<PagedAttentionAttrs>(), operands);
  }

  void launch(const StepArguments& arguments) const override {
    if (!call_) return eager::run_attention_op(parts_, arguments);
    auto addresses = eager::attention_addresses(parts_, arguments);
    call_->run({addresses.data(), addresses.size()});
  }

 private:
  AttentionParts parts_;
  std::optional<PagedAttentionCall> call_;  // nothing where there is no kernel for these operands
};

}  // namespace

std::unique_ptr<CompiledStep> make_cpu_paged_attention(const FusedAttrs& attrs,
                                                       std::span<const TensorImpl* const> inputs,
                                                       std::span<const TensorImpl* const> outputs) {
  return std::make_unique<CpuPagedAttentionStep>(attrs, inputs, outputs);
}

namespace eager {

namespace {

bool paged_attention(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                     TensorList& outputs) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  if (!has_own_kernel(call) || (given && !given->is_contiguous())) return false;
  auto type = op.infer(call)[0];
  Tensor out = given ? *given : empty(type.shape, TensorOptions(type.dtype).device(type.device));
  std::vector<const TensorImpl*> operands;
  SmallVector<int64_t, 12> addresses;
  for (auto& arg : inputs) {
    operands.push_back(&arg.tensor().impl());
    addresses.push_back(slot_of(arg.tensor().impl()));
  }
  addresses.push_back(slot_of(out.impl()));
  PagedAttentionCall(attrs.as<PagedAttentionAttrs>(), operands).run({addresses.data(), addresses.size()});
  outputs = {out};
  return true;
}

const OpKernel kernels[] = {{.op = "paged_attention", .run = paged_attention, .name = "attention"}};

}  // namespace

std::span<const OpKernel> paged_attention_kernels_of_cpu() { return kernels; }

}  // namespace eager
}  // namespace sinter
