#include "sinter/ops/complex_call.h"

#include <algorithm>
#include <numeric>

#include "sinter/ops/batching.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/autocast.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

Type type_of(const TensorArg& arg) {
  return {arg.dtype(), arg.sizes(), arg.is_scalar() ? Device() : arg.tensor().device(), arg.is_scalar()};
}

Tensor as_tensor(const TensorArg& part, const Shape& shape, const Tensor& like) {
  if (part.is_scalar()) return full(shape, part, like.options());
  return part.sizes().same_as(shape) ? part.tensor() : expand(part, shape);
}

// One kernel. Pairs lie along the last dimension: operands are broadcast with it as they are without it, the shared ones once.
Tensor pointwise_on_pairs(const ComplexCall& c, const std::vector<bool>& is_value) {
  std::vector<TensorArg> operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorArg& arg = c.inputs[i];
    if (is_value[i])
      operands.emplace_back(view_as_real(c.whole(int(i))), arg.where());
    else
      operands.push_back(arg.is_scalar() ? arg : TensorArg(unsqueeze(arg, -1), arg.where()));
  }
  return look_at_pairs(call_op(c.op, operands, c.attrs, c[0].where()));
}

// In a graph the parts stay apart, as other formulas have them: joined and taken apart in turn they would not be one kernel.
Tensor pointwise_on_each(const ComplexCall& c, const std::vector<bool>& is_value) {
  std::vector<TensorArg> re, im;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    Parts parts = is_value[i] ? c.parts(int(i)) : Parts{c.inputs[i], c.inputs[i]};
    re.push_back(parts.re);
    im.push_back(parts.im);
  }
  const Where& where = c[0].where();
  return joined(call_op(c.op, re, c.attrs, where), call_op(c.op, im, c.attrs, where));
}

// The parts are a batch that the op does not see.
TensorList batch_of_parts(const ComplexCall& c, const std::vector<bool>& is_value) {
  BatchCall batch{c.op, {}, is_value, {}, c.attrs, 2};
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorArg& arg = c.inputs[i];
    batch.operands.push_back(is_value[i] ? TensorArg(movedim(view_as_real(c.whole(int(i))), -1, 0), arg.where()) : arg);
    batch.types.push_back(type_of(arg));
    if (!is_value[i]) continue;
    batch.types.back().dtype = c.part_dtype();
    batch.types.back().weak = false;
  }
  TensorList results = run_batched(batch);
  for (auto& result : results) result = look_at_pairs(movedim(result, 0, -1));
  return results;
}

}  // namespace

DType ComplexCall::part_dtype() const {
  std::vector<Type> types;
  for (auto& arg : inputs) types.push_back(type_of(arg));
  return real_dtype(complex_dtype(promote_operands(types)));
}

Parts ComplexCall::parts(int i) const {
  const TensorArg& arg = inputs[size_t(i)];
  if (arg.is_scalar()) return {TensorArg(arg.scalar().real(), arg.where()), TensorArg(arg.scalar().imag(), arg.where())};
  if (!is_complex(i)) return {real(i), TensorArg(0.0, arg.where())};
  Tensor pairs = view_as_real(whole(i));
  return {TensorArg(select(pairs, -1, 0), arg.where()), TensorArg(select(pairs, -1, 1), arg.where())};
}

TensorArg ComplexCall::real(int i) const {
  const TensorArg& arg = inputs[size_t(i)];
  return arg.is_scalar() ? TensorArg(arg.scalar().to_double(), arg.where()) : TensorArg(to(arg, part_dtype()), arg.where());
}

Tensor ComplexCall::whole(int i) const {
  const DType dtype = complex_dtype(part_dtype());
  const TensorArg& arg = inputs[size_t(i)];
  if (!arg.is_scalar()) return to(arg, dtype);
  auto tensor = std::find_if(inputs.begin(), inputs.end(), [](auto& input) { return !input.is_scalar(); });
  return full({}, arg, TensorOptions(dtype).device(tensor == inputs.end() ? Device() : tensor->tensor().device()));
}

Tensor joined(const TensorArg& re, const TensorArg& im) {
  SINTER_INTERNAL_ASSERT(!re.is_scalar() || !im.is_scalar(), "two numbers are no tensor");
  const Tensor& like = re.is_scalar() ? im.tensor() : re.tensor();
  const Shape shape = broadcast_shapes("complex", re.sizes(), im.sizes());
  return look_at_pairs(stack({as_tensor(re, shape, like), as_tensor(im, shape, like)}, -1));
}

Tensor look_at_pairs(const Tensor& pairs) {
  const TensorImpl& body = pairs.impl();
  if (body.traced && !body.traced->has_layout()) return view_as_complex(pairs);
  if (auto* program = ProgramTracer::current(); program && body.traced) program->layout_matters(pairs);
  bool together = body.strides.back() == 1 && body.offset % 2 == 0;
  for (size_t d = 0; d + 1 < body.strides.size(); ++d) together &= body.strides[d] % 2 == 0 || body.sizes[d] <= 1;
  return view_as_complex(together ? pairs : clone(pairs, MemoryFormat::kContiguous));
}

RealGeometry real_geometry(const TensorImpl& tensor) {
  RealGeometry out{tensor.sizes, tensor.strides, tensor.offset};
  if (!is_complex(tensor.dtype)) return out;
  for (auto& stride : out.strides) stride *= 2;
  out.sizes.push_back(2);
  out.strides.push_back(1);
  out.offset *= 2;
  return out;
}

Tensor look_at_memory(const Tensor& base, const TensorImpl& look) {
  if (base.dtype() == look.dtype) return as_strided(base, look.sizes, look.strides, look.offset);
  const RealGeometry at = real_geometry(look);
  Tensor out = as_strided(is_complex(base.dtype()) ? view_as_real(base) : base, at.sizes, at.strides, at.offset);
  return is_complex(look.dtype) ? view_as_complex(out) : out;
}

TensorList each_part(const ComplexCall& call, std::span<const int> values) {
  std::vector<bool> is_value(call.inputs.size(), values.empty());
  for (int i : values) is_value[size_t(i)] = true;
  bool apart = Tracer::current() != nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    check(is_value[i] || !call.is_complex(int(i)), "{}: operand {} cannot be complex, but it is {}{}", call.op.name, i,
          call.inputs[i].dtype(), call.inputs[i].sizes());
    apart = apart || (is_value[i] && call.inputs[i].is_scalar());
  }
  if (call.op.kind != OpKind::kPointwise) return batch_of_parts(call, is_value);
  return {apart ? pointwise_on_each(call, is_value) : pointwise_on_pairs(call, is_value)};
}

TensorList call_on_complex(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  autocast::Pause plain;  // parts keep their dtype
  if (!op.on_complex) {
    auto found = std::find_if(inputs.begin(), inputs.end(), [](auto& arg) { return is_complex(arg.dtype()); });
    throw_error(format("{}: not defined for complex numbers, and an operand is {}{}: take abs(x), real(x), imag(x) or "
                       "view_as_real(x), whose last dimension holds both parts", op.name, found->dtype(), found->sizes()));
  }
  return op.on_complex(ComplexCall{op, inputs, attrs});
}

void call_on_complex_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  Tensor value = call_on_complex(op, inputs, attrs)[0];
  const Where& where = inputs[0].where();
  check(is_complex(out.dtype()) || !is_complex(value.dtype()), "{}: a result of dtype {} cannot be stored in a tensor of dtype {}",
        op.name, value.dtype(), out.dtype());
  const bool pairs = is_complex(out.dtype());
  const TensorArg source(pairs ? view_as_real(to(value, out.dtype())) : value, where);
  call_op_into(known_ops().clone, {&source, 1}, {}, pairs ? view_as_real(out) : out, where);
}

}  // namespace sinter
