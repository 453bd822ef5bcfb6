#include "sinter/graph/op.h"

#include <algorithm>
#include <cmath>

#include "sinter/tensor/tracer.h"

namespace sinter {

Scalar identity_of(Combine combine, DType dtype) {
  auto extreme = [&](bool low) {
    if (is_floating(dtype)) return Scalar(low ? -INFINITY : INFINITY);
    if (dtype == kInt64) return Scalar(low ? INT64_MIN : INT64_MAX);
    return Scalar(int64_t(low ? INT32_MIN : INT32_MAX));
  };
  switch (combine) {
    case Combine::kMax:
    case Combine::kArgMax: return extreme(true);
    case Combine::kMin:
    case Combine::kArgMin: return extreme(false);
    default: return int64_t(combine == Combine::kProd || combine == Combine::kAll);
  }
}

namespace {

class AssumeTrue final : public Tracer {
 public:
  std::vector<Tensor> record(const Op& op, std::span<const TensorArg>, const Attrs&) override {
    SINTER_INTERNAL_ASSERT(false, "{} is called while types are inferred", op.name);
  }
  bool decide(DimCompare, const Dim&, const Dim&) override { return true; }
  int64_t specialize(const Dim& d, const std::source_location*, const void*) override {
    throw_error(format("the symbolic size {} is used as a number while types are inferred", d));
  }
};

}  // namespace

std::vector<Type> infer_types(const Op& op, std::span<const Type> inputs, const Attrs& attrs) {
  check(op.inputs < 0 || size_t(op.inputs) == inputs.size(), "{}: takes {} operands, not {}", op.name, op.inputs,
        inputs.size());
  SINTER_INTERNAL_ASSERT(op.infer, "{} has no type rule", op.name);
  OpCall call{op, inputs, attrs};
  if (Tracer::current()) return op.infer(call);
  AssumeTrue assume;
  TracerScope scope(&assume);
  return op.infer(call);
}

DType computing_type(const OpCall& call) {
  // Parameters take no part in promotion, as in PyTorch: hardtanh(i64, 0.5, 1.5) stays i64.
  auto operands = call.inputs.first(std::min(call.inputs.size(), size_t(call.op.pointwise->tensors)));
  switch (call.op.pointwise->typing) {
    case Typing::kPromote:
    case Typing::kCompare:
    case Typing::kInteger:
      return promote_operands(operands);
    case Typing::kFloat: {
      DType promoted = promote_operands(operands);
      return is_floating(promoted) ? promoted : kFloat32;
    }
    case Typing::kBool:
      return kBool;
    case Typing::kSelect:
      return promote_operands(operands.subspan(1));
    // A lone number keeps its width: it is converted once, to the type named.
    case Typing::kAttr:
      return call.inputs.size() == 1 ? call.inputs[0].dtype : promote_operands(call.inputs);
    case Typing::kRandom:
      break;
  }
  return kInt64;
}

}  // namespace sinter
