#include <algorithm>

#include "sinter/ops/autocast.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/default_dtype.h"
#include "sinter/ops/define.h"
#include "sinter/ops/in_place.h"

namespace sinter {

Tensor call_op(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Where& where) {
  UserPosition here(where, op.name.data());
  if (has_complex(inputs) && !op.sees_complex) [[unlikely]]
    return call_on_complex(op, inputs, attrs)[0];
  if (const Tensor* out = InPlaceCall::take(op, inputs)) [[unlikely]] {
    check_in_place(op, inputs, attrs, *out);
    Dispatcher::instance().run_into(op, inputs, attrs, *out);
    return *out;
  }
  return Dispatcher::instance().run_one(op, AutocastOperands(op, DefaultDTypeOperands(op, inputs)), attrs);
}

TensorList call_op_many(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Where& where) {
  UserPosition here(where, op.name.data());
  if (has_complex(inputs) && !op.sees_complex) [[unlikely]]
    return call_on_complex(op, inputs, attrs);
  return Dispatcher::instance().run(op, AutocastOperands(op, DefaultDTypeOperands(op, inputs)), attrs);
}

void call_op_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out,
                  const Where& where) {
  UserPosition here(where, op.name.data());
  if (has_complex(inputs) || (out.defined() && is_complex(out.dtype()))) [[unlikely]]
    return call_on_complex_into(op, inputs, attrs, out);
  Dispatcher::instance().run_into(op, inputs, attrs, out);
}

namespace {

// The one device of the operands. Numbers and 0-d tensors of the host go along with any.
Device common_device(const OpCall& call) {
  const Type* chosen = nullptr;
  auto follows = [](const Type& t) { return t.weak || (t.rank() == 0 && t.device.is_cpu()); };
  for (auto& t : call.inputs) {
    if (follows(t)) continue;
    if (!chosen) chosen = &t;
    check(t.device == chosen->device, "{}: operands are on {} and {}: move them to one device with .to(device)",
          call.op.name, chosen->device, t.device);
  }
  return chosen ? chosen->device : Device();
}

}  // namespace

std::vector<Type> infer_pointwise(const OpCall& call, Typing typing, std::optional<DType> attr_dtype) {
  Type result{.dtype = kFloat32, .shape = {}, .device = common_device(call)};
  for (size_t i = size_t(call.op.pointwise->tensors); i < call.inputs.size(); ++i)
    check(call.inputs[i].weak, "{}: operand {} must be a plain number, not a tensor of shape {}", call.op.name, i,
          call.inputs[i].shape);
  for (auto& t : call.inputs) result.shape = broadcast_shapes(call.name(), result.shape, t.shape);
  DType computing = computing_type(call);
  check(computing != kBool || call.op.pointwise->tensors == call.op.pointwise->arity, "{}: not defined for bool",
        call.op.name);
  switch (typing) {
    case Typing::kPromote:
    case Typing::kFloat:
      result.dtype = computing;
      break;
    case Typing::kCompare:
    case Typing::kBool:
      result.dtype = kBool;
      break;
    case Typing::kInteger:
      check(!is_floating(computing), "{}: takes integers or bool, not {}", call.op.name, computing);
      result.dtype = computing;
      break;
    case Typing::kSelect: {
      DType condition = call.inputs[0].dtype;
      check(condition == kBool || condition == kUInt8, "{}: the condition must be bool, not {}", call.op.name,
            condition);
      result.dtype = computing;
      break;
    }
    case Typing::kRandom:
      for (auto& t : call.inputs)
        check(!is_floating(t.dtype), "{}: takes integer operands, not {}", call.op.name, t.dtype);
      break;
    case Typing::kAttr:
      SINTER_INTERNAL_ASSERT(attr_dtype, "{} does not name its result type", call.op.name);
      break;
  }
  if (attr_dtype) result.dtype = *attr_dtype;
  return {result};
}

IntList reduced_dims(const OpCall& call, const IntList& dims) {
  int64_t rank = call.rank(0);
  IntList out;
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) out.push_back(d);
    return out;
  }
  for (int64_t d : dims) out.push_back(wrap_dim(call.name(), d, rank));
  std::sort(out.begin(), out.end());
  auto twice = std::adjacent_find(out.begin(), out.end());
  check(twice == out.end(), "{}: dimension {} appears more than once in {}", call.op.name,
        twice == out.end() ? 0 : *twice, dims);
  // A 0-d tensor takes dimension 0 and -1, and has none.
  if (rank == 0) out.clear();
  return out;
}

Shape reduced_shape(const OpCall& call, const IntList& dims, bool keepdim) {
  auto reduced = reduced_dims(call, dims);
  Shape out;
  size_t next = 0;
  for (int64_t d = 0; d < call.rank(0); ++d) {
    bool gone = next < reduced.size() && reduced[next] == d;
    if (gone) ++next;
    if (!gone)
      out.push_back(call.shape(0)[size_t(d)]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

}  // namespace sinter
