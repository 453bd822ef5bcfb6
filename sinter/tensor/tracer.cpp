#include "sinter/tensor/tracer.h"

#include "sinter/base/error.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

namespace {

[[noreturn]] void refuse(const char* asker) {
  throw_error(format("{}: the tensor is a value of a graph being captured and has no memory", asker));
}

// Eager tensors keep their meaning while another program is traced.
template <class F>
auto eagerly(F f) {
  TracerScope none(nullptr);
  return f();
}

}  // namespace

IntrusivePtr<TracedValue> TracedValue::for_detached() { return IntrusivePtr<TracedValue>::share(this); }

void Tracer::write(const Tensor&, const Tensor&) {
  throw_error("writing a tensor in place cannot be recorded here: use the form of the op that is not in place");
}

Scalar Tracer::item(const Tensor& tensor) {
  if (tensor.is_traced()) refuse("item");
  return eagerly([&] { return tensor.item(); });
}

const TensorImpl& Tracer::memory_of(const Tensor& tensor, const char* asker) {
  if (tensor.is_traced()) refuse(asker);
  return tensor.impl();
}

Tensor Tracer::operand(const Tensor& eager) { return eager; }

Tensor Tracer::present_value(const Tensor& tensor) { return tensor; }

Tensor Tracer::empty(const Shape& shape, const TensorOptions& options) {
  Shape numbers;
  for (auto& d : shape) numbers.push_back(d.to_int());
  return eagerly([&] { return sinter::empty(numbers, options); });
}

Tensor Tracer::constant(const Tensor& made) { return made; }

void Tracer::lay_out(const Tensor&, std::span<const int64_t>) {}

std::vector<TensorArg> Tracer::draw() { return {}; }

Tensor Tracer::grad_of(const Tensor&, const Tensor& grad) { return grad; }

void Tracer::before_grad_changes(const Tensor&) {}

}  // namespace sinter
