// Attention by the blocked kernels of runtime/cpu/attention. f64, more than two leading dimensions and empty operands
// keep to the decomposition.
#include <cmath>

#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/attention/attention.h"

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
    if (t.weak || t.rank() > 4 || !t.device.is_cpu()) return false;
    for (auto& d : t.shape)
      if (d.is_number() && d.number() == 0) return false;
  }
  return true;
}

bool attention_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                        TensorList& outputs) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  if (!takes_attention(call)) return false;
  Type result = op.infer(call)[0];
  auto& a = attrs.as<AttentionAttrs>();
  Tensor q = with_dense_rows(inputs[0].tensor()), k = with_dense_rows(inputs[1].tensor()),
         v = with_dense_rows(inputs[2].tensor());
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype));
  const IntList& sizes = out.impl().sizes;
  size_t rank = sizes.size();
  runtime::AttentionProblem problem{.batch = rank > 3 ? sizes[0] : 1,
                                    .heads = rank > 2 ? sizes[rank - 3] : 1,
                                    .queries = sizes[rank - 2],
                                    .keys = k.impl().sizes[k.impl().sizes.size() - 2],
                                    .size = q.impl().sizes.back(),
                                    .value_size = sizes[rank - 1],
                                    .type = *gemm_type(result.dtype),
                                    .query = operand(q.impl()),
                                    .key = operand(k.impl()),
                                    .value = operand(v.impl()),
                                    .causal = a.is_causal,
                                    .out = data_of(out.impl())};
  problem.scale = float(a.scale ? *a.scale : 1 / std::sqrt(double(problem.size)));
  if (a.enable_gqa) problem.group = problem.heads / k.impl().sizes[k.impl().sizes.size() - 3];
  if (inputs.size() == 4) {
    auto& m = inputs[3].tensor().impl();
    problem.mask = {*mask_type(m.dtype), data_of(m), step(m, 4), step(m, 3), step(m, 2), step(m, 1)};
  }
  runtime::attention(problem);
  outputs = {std::move(out)};
  return true;
}

}  // namespace sinter::eager
