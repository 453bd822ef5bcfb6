// The operands of an op as the program takes them.
#include "sinter/base/hash.h"
#include "sinter/capture/recorder_parts.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/known_ops.h"

namespace sinter::capture {

std::vector<TensorArg> Recorder::operands(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  std::vector<TensorArg> out;
  out.reserve(inputs.size());
  for (auto& arg : inputs) {
    bool eager = !arg.is_scalar() && arg.tensor().defined() && !arg.tensor().is_traced();
    if (arg.is_scalar())
      out.push_back(host_number(arg));
    else if (eager && is_lent(arg.tensor()))
      out.push_back(op.aliases ? arg : TensorArg(snapshot(arg.tensor()), arg.where()));
    else if (eager)
      out.push_back(TensorArg(operand(arg.tensor()), arg.where()));
    else if (arg.is_lazy_number() && is_weak(arg.tensor()))
      out.push_back(TensorArg(arg.tensor(), arg.where()));  // needs no help to be a number
    else
      out.push_back(arg);
  }
  if (!sizes_.symbols().empty()) fit_broadcast(op, out, attrs);
  return out;
}

Tensor Recorder::operand(const Tensor& eager) {
  if (!is_differentiable(eager.dtype())) return eager;
  auto storage = captured(eager);
  bool outside = storage->needs_grad && !storage->real.impl().requires_grad;
  return storage->version || outside ? make_handle(storage, {}, {}, is_detached(eager)) : eager;
}

TensorArg Recorder::host_number(const TensorArg& given) {
  // The gradient's own numbers follow from the program, or are computed from its values.
  if (differentiating_) return given;
  const Scalar& value = given.scalar();
  uint64_t point = hash_mix(trail_, ++numbers_here_);
  if (!host_.is_value(point, value)) return given;
  auto storage = new_storage(Type{.dtype = value.dtype(), .shape = {}, .device = {}, .weak = true}, {}, {});
  storage->source.name = "number at " + user_line();
  storage->number = InputSource{.kind = InputSource::Kind::kHost, .dtype = value.dtype()};
  storage->host_number = HostNumber{point, value, user_line()};
  return TensorArg(make_handle(storage, {}, {}, false), given.where());
}

// What broadcasts is written into kernels by structure: a size that is an expression and has come to 1 becomes the number.
void Recorder::fit_broadcast(const Op& op, std::vector<TensorArg>& operands, const Attrs& attrs) {
  Shape whole;
  if (&op == &known_ops().expand) {
    whole = attrs.as<ExpandAttrs>().size;
  } else if (op.kind == OpKind::kPointwise) {
    for (auto& arg : operands)
      if (!arg.is_scalar() && arg.tensor().defined())
        whole = broadcast_shapes(std::string(op.name).c_str(), whole, arg.sizes());
  } else {
    return;
  }
  for (auto& arg : operands) {
    if (arg.is_scalar() || !arg.tensor().defined()) continue;
    const Shape sizes = arg.sizes();
    if (sizes.size() > whole.size()) continue;  // the op refuses it
    Tensor fitted = arg.tensor();
    for (size_t d = 0; d < sizes.size(); ++d) {
      const Dim& to = whole[d + whole.size() - sizes.size()];
      if (sizes[d].is_number() || sizes[d].same_as(to) || to.same_as(-1) || sizes[d] == to) continue;
      if (sizes[d] == 1) fitted = fitted.narrow(int64_t(d), 0, 1);
    }
    if (!fitted.is_same(arg.tensor())) arg = TensorArg(fitted, arg.where());
  }
}

// --- memory that the host lends --------------------------------------------------------------------------------------

// It may be gone when the segment runs, and other numbers may be in it by then: ops take a copy of what it holds when they
// are recorded, and what is written to it is written at once. So the function has to be called every time.
void Recorder::lends(const Tensor& blob) {
  step_aside("from_blob");
  lent_.push_back(blob);
}

bool Recorder::is_lent(const Tensor& eager) const {
  auto& buffer = eager.impl().buffer;
  return std::any_of(lent_.begin(), lent_.end(), [&](const Tensor& blob) { return blob.impl().buffer == buffer; });
}

Tensor Recorder::snapshot(const Tensor& lent) {
  if (autograd::needs_gradient(lent))
    throw CannotCapture{"a tensor made by from_blob() inside requires a gradient: clone() it first"};
  Tensor copy;
  {
    TracerScope none(nullptr);
    copy = lent.clone();
  }
  return constant(copy);
}

}  // namespace sinter::capture
