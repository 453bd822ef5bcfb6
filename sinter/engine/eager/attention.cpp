// Attention by the blocked kernels of runtime/cpu/attention. f64, more than two leading dimensions and empty operands
// keep to the decomposition.
#include "sinter/engine/eager/attention.h"

#include <cmath>

#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/contract.h"

namespace sinter::eager {

namespace {

using runtime::AttentionMaskType;

std::optional<AttentionMaskType> mask_type(DType dtype) {
  switch (dtype) {
    case DType::kBool: return AttentionMaskType::kBool;
    case DType::kFloat32: return AttentionMaskType::kFloat32;
    case DType::kBFloat16: return AttentionMaskType::kBFloat16;
    case DType::kFloat16: return AttentionMaskType::kFloat16;
    default: return std::nullopt;
  }
}

// The step along a dimension counted from the right; 0 where the tensor has none or is broadcast along it.
int64_t step(const TensorImpl& t, size_t from_right) {
  if (t.sizes.size() < from_right) return 0;
  size_t d = t.sizes.size() - from_right;
  return t.sizes[d] == 1 ? 0 : t.strides[d];
}

// Rows whose elements lie side by side, copied if need be.
Tensor with_dense_rows(const Tensor& t) { return step(t.impl(), 1) == 1 || t.size(-1) == 1 ? t : t.contiguous(); }

runtime::AttentionOperand operand(const TensorImpl& t) { return {data_of(t), step(t, 4), step(t, 3), step(t, 2)}; }

}  // namespace

bool takes_attention(const OpCall& call) {
  auto type = gemm_type(call.inputs[0].dtype);
  if (!type || *type == runtime::GemmType::f64) return false;
  if (call.inputs.size() == 4 && !mask_type(call.inputs[3].dtype)) return false;
  for (auto& t : call.inputs) {
    if (t.weak || t.rank() > 4) return false;
    for (auto& d : t.shape)
      if (d.is_number() && d.number() == 0) return false;
    // A GPU's kernels keep a row in registers.
    const Dim& size = t.shape[t.shape.size() - 1];
    bool mask = &t - call.inputs.data() == 3;
    if (engine_of(t.device).target().gpu && !mask && !(size.is_number() && size.number() <= 256)) return false;
  }
  return true;
}

AttentionCall::AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  taken_ = takes_attention(call);
  if (!taken_) return;
  Type result = op.infer(call)[0];
  auto& a = attrs.as<AttentionAttrs>();
  q_ = with_dense_rows(inputs[0].tensor());
  k_ = with_dense_rows(inputs[1].tensor());
  v_ = with_dense_rows(inputs[2].tensor());
  out_ = given ? *given : empty(result.shape, TensorOptions(result.dtype).device(result.device));
  const IntList& sizes = out_.impl().sizes;
  size_t rank = sizes.size();
  problem_ = {.batch = rank > 3 ? sizes[0] : 1,
              .heads = rank > 2 ? sizes[rank - 3] : 1,
              .queries = sizes[rank - 2],
              .keys = k_.impl().sizes[k_.impl().sizes.size() - 2],
              .size = q_.impl().sizes.back(),
              .value_size = sizes[rank - 1],
              .type = *gemm_type(result.dtype),
              .query = operand(q_.impl()),
              .key = operand(k_.impl()),
              .value = operand(v_.impl()),
              .causal = a.is_causal,
              .out = data_of(out_.impl())};
  problem_.scale = float(a.scale ? *a.scale : 1 / std::sqrt(double(problem_.size)));
  if (a.enable_gqa) problem_.group = problem_.heads / k_.impl().sizes[k_.impl().sizes.size() - 3];
  if (inputs.size() == 4) {
    auto& m = inputs[3].tensor().impl();
    problem_.mask = {*mask_type(m.dtype), data_of(m), step(m, 4), step(m, 3), step(m, 2), step(m, 1)};
  }
}

IntList AttentionCall::out_strides() const {
  auto& t = out_.impl();
  return {step(t, 4), step(t, 3), step(t, 2)};
}

IntList attention_strides(const IntList& sizes) {
  if (sizes.size() != 4 || sizes[1] == 1 || sizes[2] == 1) return contiguous_strides(sizes);
  int64_t row = sizes[1] * sizes[3];
  return {sizes[2] * row, sizes[3], row, 1};
}

}  // namespace sinter::eager
