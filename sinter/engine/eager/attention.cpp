#include "sinter/engine/eager/attention.h"

#include <cmath>

#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/graph/verify.h"

namespace sinter::eager {

namespace {

using runtime::AttentionMaskType;

AttentionMaskType mask_type(DType dtype) {
  switch (dtype) {
    case DType::kBool: return AttentionMaskType::kBool;
    case DType::kBFloat16: return AttentionMaskType::kBFloat16;
    case DType::kFloat16: return AttentionMaskType::kFloat16;
    default: return AttentionMaskType::kFloat32;
  }
}

// The step along a dimension counted from the right; 0 where the tensor has none or is broadcast along it.
int64_t step(const TensorImpl& t, size_t from_right) {
  if (t.sizes.size() < from_right) return 0;
  size_t d = t.sizes.size() - from_right;
  return t.sizes[d] == 1 ? 0 : t.strides[d];
}

bool has_dense_rows(const TensorImpl& t) { return t.sizes.back() == 1 || t.strides.back() == 1; }

// Where it begins if its memory does at 0: as far as alignment tells kernels apart, that is where it lies.
void* start_of(const TensorImpl& t) { return reinterpret_cast<void*>(uintptr_t(t.offset * item_size(t.dtype))); }

runtime::AttentionOperand operand(const TensorImpl& t) { return {start_of(t), step(t, 4), step(t, 3), step(t, 2)}; }

IntrusivePtr<TensorImpl> dense_copy_of(const TensorImpl& t) {
  auto copy = make_intrusive<TensorImpl>(t);
  copy->strides = contiguous_strides(t.sizes);
  copy->offset = 0;
  copy->contiguous = true;
  return copy;
}

// Copies stay aligned for every kernel.
int64_t padded_bytes(const TensorImpl& t) { return (t.numel * item_size(t.dtype) + 63) / 64 * 64; }

}  // namespace

AttentionLayout::AttentionLayout(const AttentionAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                 const TensorImpl& out)
    : dtype_(out.dtype) {
  std::vector<const TensorImpl*> dense(inputs.begin(), inputs.end());
  for (size_t i = 0; i < 3; ++i) {
    if (has_dense_rows(*dense[i])) continue;
    copied_.push_back({i, make_intrusive<TensorImpl>(*dense[i]), dense_copy_of(*dense[i])});
    dense[i] = copied_.back().to.get();
    copied_bytes_ += padded_bytes(*dense[i]);
  }
  const TensorImpl &q = *dense[0], &k = *dense[1];
  const IntList& sizes = out.sizes;
  const size_t rank = sizes.size();
  problem_ = {.batch = rank > 3 ? sizes[0] : 1,
              .heads = rank > 2 ? sizes[rank - 3] : 1,
              .queries = sizes[rank - 2],
              .keys = k.sizes[k.sizes.size() - 2],
              .size = q.sizes.back(),
              .value_size = sizes[rank - 1],
              .type = *gemm_type(out.dtype),
              .query = operand(q),
              .key = operand(k),
              .value = operand(*dense[2]),
              .causal = attrs.is_causal,
              .out = start_of(out)};
  problem_.scale = float(attrs.scale ? *attrs.scale : 1 / std::sqrt(double(problem_.size)));
  if (attrs.enable_gqa) problem_.group = problem_.heads / k.sizes[k.sizes.size() - 3];
  if (inputs.size() == 4) {
    auto& m = *inputs[3];
    problem_.mask = {mask_type(m.dtype), start_of(m), step(m, 4), step(m, 3), step(m, 2), step(m, 1)};
  }
  out_strides_ = {step(out, 4), step(out, 3), step(out, 2)};
}

runtime::AttentionProblem AttentionLayout::at(std::span<const int64_t> addresses, void* copies) const {
  auto pointer = [&](size_t i) { return reinterpret_cast<void*>(uintptr_t(addresses[i])); };
  runtime::AttentionProblem out = problem_;
  runtime::AttentionOperand* operands[] = {&out.query, &out.key, &out.value};
  for (size_t i = 0; i < 3; ++i) operands[i]->data = pointer(i);
  if (addresses.size() == 5) out.mask.data = pointer(3);
  out.out = pointer(addresses.size() - 1);
  char* next = static_cast<char*>(copies);
  for (auto& copied : copied_) {
    const Tensor to = at_address(*copied.to, int64_t(reinterpret_cast<uintptr_t>(next)));
    copy(TensorArg(at_address(*copied.from, addresses[copied.operand])), to);
    operands[copied.operand]->data = next;
    next += padded_bytes(*copied.to);
  }
  return out;
}

std::optional<AttentionLayout> attention_layout(const AttentionParts& parts) {
  const Node& node = *parts.node;
  if (!has_own_kernel(OpCall{*node.op, types_of(node.inputs), node.attrs})) return std::nullopt;
  std::vector<const TensorImpl*> operands;
  for (auto& t : parts.operand_geometries) operands.push_back(t.get());
  return AttentionLayout(node.attrs.as<AttentionAttrs>(), operands, *parts.result_geometries[0]);
}

SmallVector<int64_t, 8> attention_addresses(const AttentionParts& parts, const StepArguments& arguments) {
  SmallVector<int64_t, 8> out;
  for (int at : parts.operands) out.push_back(arguments[size_t(at)]);
  out.push_back(arguments[size_t(parts.results[0])]);
  return out;
}

void run_attention_op(const AttentionParts& parts, const StepArguments& arguments) {
  auto tensor = [&](const IntrusivePtr<TensorImpl>& geometry, int at) {
    return at_address(*geometry, arguments[size_t(at)]);
  };
  std::vector<TensorArg> operands;
  for (size_t i = 0; i < parts.operands.size(); ++i)
    operands.push_back(TensorArg(tensor(parts.operand_geometries[i], parts.operands[i])));
  TensorList results = execute(*parts.node->op, operands, parts.node->attrs);
  for (size_t r = 0; r < results.size(); ++r)
    if (parts.results[r] >= 0) copy(TensorArg(results[r]), tensor(parts.result_geometries[r], parts.results[r]));
}

AttentionCall::AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  if (!has_own_kernel(call)) return;
  Type result = op.infer(call)[0];
  out = given ? *given : empty(result.shape, TensorOptions(result.dtype).device(result.device));
  std::vector<const TensorImpl*> geometries;
  for (auto& arg : inputs) geometries.push_back(&arg.tensor().impl());
  layout.emplace(attrs.as<AttentionAttrs>(), geometries, out.impl());
  for (auto* t : geometries) addresses.push_back(slot_of(*t));
  addresses.push_back(slot_of(out.impl()));
}

IntList attention_strides(const IntList& sizes) {
  if (sizes.size() != 4 || sizes[1] == 1 || sizes[2] == 1) return contiguous_strides(sizes);
  int64_t row = sizes[1] * sizes[3];
  return {sizes[2] * row, sizes[3], row, 1};
}

}  // namespace sinter::eager
