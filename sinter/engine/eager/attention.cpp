#include "sinter/engine/eager/attention.h"

#include <algorithm>
#include <cmath>

#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/graph/verify.h"

namespace sinter::eager {

namespace {

using runtime::AttentionMaskType;

// Operands of a backward behind query, key and value.
constexpr size_t kLogSums = 3, kMeans = 4, kGrad = 5;

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

AttentionLayout::AttentionLayout(const Op& op, const AttentionAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                 std::span<const TensorImpl* const> results)
    : is_backward_(&op == &attention_backward_op()),
      operands_(inputs.size()),
      mask_(attention_mask_operand(op)),
      dtype_(inputs[0]->dtype) {
  std::vector<const TensorImpl*> lying(inputs.begin(), inputs.end());
  for (size_t i = 0; i < mask_; ++i) {
    const bool numbers = is_backward_ && (i == kLogSums || i == kMeans);
    if (numbers ? lying[i]->contiguous : has_dense_rows(*lying[i])) continue;
    copied_.push_back({i, make_intrusive<TensorImpl>(*lying[i]), dense_copy_of(*lying[i])});
    lying[i] = copied_.back().to.get();
    copied_bytes_ += padded_bytes(*lying[i]);
  }
  const TensorImpl &q = *lying[0], &k = *lying[1], &v = *lying[2];
  const size_t rank = q.sizes.size();
  // Broadcast over batches and heads, as the result is.
  const IntList& whole = is_backward_ ? lying[kGrad]->sizes : results[0]->sizes;
  const size_t dims = whole.size();
  auto& problem = memory_.problem;
  problem = {.batch = dims > 3 ? whole[0] : 1,
             .heads = dims > 2 ? whole[dims - 3] : 1,
             .queries = q.sizes[rank - 2],
             .keys = k.sizes[k.sizes.size() - 2],
             .size = q.sizes.back(),
             .value_size = v.sizes.back(),
             .type = *gemm_type(dtype_),
             .query = operand(q),
             .key = operand(k),
             .value = operand(v),
             .causal = attrs.is_causal};
  problem.scale = float(attrs.scale ? *attrs.scale : 1 / std::sqrt(double(problem.size)));
  if (attrs.enable_gqa) problem.group = problem.heads / k.sizes[k.sizes.size() - 3];
  if (attrs.drawn() > 0) problem.dropout.set_probability(attrs.dropout_p);
  if (has_attention_mask(op, inputs.size(), attrs)) {
    auto& m = *inputs[mask_];
    problem.mask = {mask_type(m.dtype), nullptr, step(m, 4), step(m, 3), step(m, 2), step(m, 1)};
  }
  if (is_backward_) memory_.grad = operand(*lying[kGrad]);
  for (auto* t : results) strides_.push_back(t ? IntList{step(*t, 4), step(*t, 3), step(*t, 2)} : IntList(size_t(3), int64_t(0)));
  std::vector<void*> starts;
  for (auto* t : lying) starts.push_back(t ? start_of(*t) : nullptr);
  for (auto* t : results) starts.push_back(t ? start_of(*t) : nullptr);
  place(memory_, starts);
}

void AttentionLayout::place(AttentionMemory& memory, std::span<void* const> pointers) const {
  auto& problem = memory.problem;
  problem.query.data = pointers[0];
  problem.key.data = pointers[1];
  problem.value.data = pointers[2];
  auto results = pointers.subspan(operands_);
  if (problem.mask.type != AttentionMaskType::kNone) problem.mask.data = pointers[mask_];
  if (problem.dropout.is_on()) {
    const auto number = [&](size_t from_right) {
      return int64_t(reinterpret_cast<uintptr_t>(pointers[operands_ - from_right]));
    };
    problem.dropout.seed = number(2);
    problem.dropout.offset = number(1);
  }
  if (is_backward_) {
    memory.log_sums = static_cast<const float*>(pointers[kLogSums]);
    memory.means = static_cast<const float*>(pointers[kMeans]);
    memory.grad.data = pointers[kGrad];
    std::copy(results.begin(), results.end(), memory.gradients);
    return;
  }
  problem.out = results[0];
  if (results.size() > 1) problem.log_sums = static_cast<float*>(results[1]);
}

AttentionMemory AttentionLayout::at(std::span<const int64_t> addresses, void* copies) const {
  SmallVector<void*, 12> pointers;
  for (int64_t address : addresses) pointers.push_back(reinterpret_cast<void*>(uintptr_t(address)));
  char* next = static_cast<char*>(copies);
  for (auto& copied : copied_) {
    const Tensor to = at_address(*copied.to, int64_t(reinterpret_cast<uintptr_t>(next)));
    copy(TensorArg(at_address(*copied.from, addresses[copied.operand])), to);
    pointers[copied.operand] = next;
    next += padded_bytes(*copied.to);
  }
  AttentionMemory out = memory_;
  place(out, {pointers.data(), pointers.size()});
  return out;
}

std::optional<AttentionLayout> attention_layout(const AttentionParts& parts) {
  const Node& node = *parts.node;
  if (!has_own_kernel(OpCall{*node.op, types_of(node.inputs), node.attrs})) return std::nullopt;
  std::vector<const TensorImpl*> operands, results;
  for (auto& t : parts.operand_geometries) operands.push_back(t.get());
  for (auto& t : parts.result_geometries) results.push_back(t.get());
  // The result itself is computed in any case.
  if (!results[0] && node.op != &attention_backward_op()) return std::nullopt;
  return AttentionLayout(*node.op, node.attrs.as<AttentionAttrs>(), operands, results);
}

SmallVector<int64_t, 12> attention_addresses(const AttentionParts& parts, const StepArguments& arguments) {
  SmallVector<int64_t, 12> out;
  for (size_t i = 0; i < parts.operands.size(); ++i)
    out.push_back(parts.operands[i] < 0 ? slot_of(parts.numbers[i]) : arguments[size_t(parts.operands[i])]);
  for (int at : parts.results) out.push_back(at < 0 ? 0 : arguments[size_t(at)]);
  return out;
}

void run_attention_op(const AttentionParts& parts, const StepArguments& arguments) {
  auto tensor = [&](const IntrusivePtr<TensorImpl>& geometry, int at) {
    return at_address(*geometry, arguments[size_t(at)]);
  };
  auto number = [&](size_t i) {
    if (parts.operands[i] < 0) return parts.numbers[i];
    const int64_t bits = arguments[size_t(parts.operands[i])];
    check(!arguments.is_indirect(size_t(parts.operands[i])),
          "attention without a kernel cannot read a number from a recording's block");
    return Scalar(bits);
  };
  std::vector<TensorArg> operands;
  for (size_t i = 0; i < parts.operands.size(); ++i)
    operands.push_back(parts.operand_geometries[i] ? TensorArg(tensor(parts.operand_geometries[i], parts.operands[i]))
                                                   : TensorArg(number(i)));
  TensorList results = execute(*parts.node->op, operands, parts.node->attrs);
  for (size_t r = 0; r < results.size(); ++r)
    if (parts.results[r] >= 0) copy(TensorArg(results[r]), tensor(parts.result_geometries[r], parts.results[r]));
}

AttentionCall::AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  if (!has_own_kernel(call)) return;
  for (auto& type : op.infer(call)) {
    const bool takes_given = given && results.empty();
    results.push_back(takes_given ? *given : empty(type.shape, TensorOptions(type.dtype).device(type.device)));
  }
  std::vector<const TensorImpl*> operands, made;
  for (auto& arg : inputs) operands.push_back(arg.is_scalar() ? nullptr : &arg.tensor().impl());
  for (auto& t : results) made.push_back(&t.impl());
  layout.emplace(op, attrs.as<AttentionAttrs>(), operands, made);
  for (auto& arg : inputs) addresses.push_back(arg.is_scalar() ? slot_of(arg.scalar()) : slot_of(arg.tensor().impl()));
  for (auto* t : made) addresses.push_back(slot_of(*t));
}

IntList attention_strides(const IntList& sizes) {
  if (sizes.size() != 4 || sizes[1] == 1 || sizes[2] == 1) return contiguous_strides(sizes);
  int64_t row = sizes[1] * sizes[3];
  return {sizes[2] * row, sizes[3], row, 1};
}

}  // namespace sinter::eager
