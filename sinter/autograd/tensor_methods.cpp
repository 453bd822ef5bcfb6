// The autograd methods of Tensor.
#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/base/host_effects.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

bool Tensor::requires_grad() const { return autograd::needs_gradient(*this); }

bool Tensor::is_leaf() const { return impl().requires_grad || !autograd::needs_gradient(*this); }

const Tensor& Tensor::requires_grad_(bool requires_grad, Where where) const {
  UserPosition here(where);
  check(is_leaf(),
        "requires_grad_: the tensor is the result of recorded ops, so whether it needs a gradient follows from them; "
        "call it on detach() instead");
  check(!requires_grad || is_floating(dtype()),
        "requires_grad_: a tensor of {} cannot require a gradient; only floating-point tensors can", dtype());
  if (auto* effects = HostEffects::current())
    if (effects->grad_flag_changes(impl(), requires_grad)) return *this;
  impl().requires_grad = requires_grad;
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
  // A leaf stands for itself: writes to the tensor that it was a view of are no part of its history.
  if (requires_grad) impl().base = nullptr;
  return *this;
}

Tensor Tensor::grad() const {
  auto* state = autograd::state_of(impl());
  Tensor grad = state ? state->grad : Tensor();
  auto* tracer = Tracer::current();
  return tracer ? tracer->grad_of(*this, grad) : grad;
}

void Tensor::set_grad(const Tensor& grad, Where where) const {
  UserPosition here(where);
  if (grad.defined()) {
    check(grad.sizes().same_as(sizes()), "set_grad: the gradient has shape {}, the tensor {}", grad.sizes(), sizes());
    check(grad.dtype() == dtype(), "set_grad: the gradient is of {}, the tensor of {}", grad.dtype(), dtype());
    check(grad.device() == device(), "set_grad: the gradient is on {}, the tensor on {}", grad.device(), device());
  } else if (!impl().autograd && !Tracer::current()) {
    return;
  }
  if (auto* tracer = Tracer::current()) tracer->before_grad_changes(*this);
  // A traced tensor may stand for a leaf: that one has the gradient.
  auto edge = autograd::gradient_edge(*this);
  autograd::ensure_state(edge.leaf ? *edge.leaf : impl()).grad = grad;
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph, Where where) const {
  autograd::backward({*this}, {gradient}, retain_graph || create_graph, create_graph, where);
}

Tensor Tensor::detach() const {
  auto* program = ProgramTracer::current();
  if (program && !is_traced() && autograd::needs_gradient(*this)) program->detaches(*this);
  return autograd::detached(*this);
}

}  // namespace sinter
