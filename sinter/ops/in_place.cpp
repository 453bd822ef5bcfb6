#include "sinter/ops/in_place.h"

namespace sinter {

namespace {

// Operands of the result's own dtype and sizes cannot give anything else: no need to infer.
bool plainly_fits(const Op& op, std::span<const TensorArg> inputs, const Tensor& out) {
  if (op.kind != OpKind::kPointwise || out.is_traced() || !is_floating(out.dtype())) return false;
  for (auto& input : inputs) {
    if (input.is_scalar()) continue;
    const Tensor& t = input.tensor();
    if (t.is_same(out)) continue;
    if (t.is_traced() || t.dtype() != out.dtype() || !(t.impl().sizes == out.impl().sizes)) return false;
  }
  return true;
}

// `name` is that of the function, without the underscore.
void check_fits(std::string_view name, DType dtype, const Shape& shape, const Tensor& out) {
  check(can_cast(dtype, out.dtype()), "{}_: a result of dtype {} cannot be stored in a tensor of dtype {}", name, dtype,
        out.dtype());
  const Shape sizes = out.sizes();
  const Shape grown = broadcast_shapes(std::string(name).c_str(), sizes, shape);
  bool fits = grown.size() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = grown[i] == sizes[i];
  check(fits, "{}_: the result has shape {}, but the tensor written to has shape {}", name, shape, sizes);
}

}  // namespace

void check_in_place(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  if (plainly_fits(op, inputs, out)) return;
  std::vector<Type> types;
  for (auto& input : inputs) {
    // A number of a program being captured is traced; whether it is one, recording the op tells.
    bool takes_number = op.pointwise && int(types.size()) >= op.pointwise->tensors;
    bool number = input.is_scalar() || (takes_number && input.tensor().is_traced() && input.tensor().dim() == 0);
    types.push_back({input.dtype(), input.sizes(), number ? out.device() : input.tensor().device(), number});
  }
  Type result = op.infer(OpCall{op, types, attrs})[0];
  check_fits(op.name, result.dtype, result.shape, out);
}

const Tensor* InPlaceCall::out_for(const Op& op, std::span<const TensorArg> inputs) {
  bool its_own = !taken_ && op.kind == OpKind::kPointwise && op.name == function_ && !inputs[0].is_scalar() &&
                 inputs[0].tensor().is_same(out_);
  if (!its_own) return nullptr;
  taken_ = true;
  return &out_;
}

const Tensor& in_place(const Tensor& out, const char* name, const Where& where,
                       FunctionRef<Tensor(const TensorArg&)> function) {
  UserPosition here(where, name);
  std::string_view plain(name);
  plain.remove_suffix(1);
  InPlaceCall call(out, plain);
  Tensor result = function(TensorArg(out, where));
  if (!result.is_same(out)) {
    check_fits(plain, result.dtype(), result.sizes(), out);
    out.copy_({result, where});
  }
  return out;
}

}  // namespace sinter
