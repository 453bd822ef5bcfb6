// The autograd methods of Tensor.
#include <atomic>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/base/host_effects.h"
#include "sinter/ops/batching.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

// Hooks of a leaf run where gradients come to it, perhaps inside programs captured before.
void leaf_hooks_change(TensorImpl& leaf, const char* what) {
  static std::atomic<uint32_t> changes{0};
  if (!leaf.traced) note_host_change(what);
  autograd::ensure_state(leaf).hooks_version = ++changes;
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool Tensor::requires_grad() const { return autograd::needs_gradient(*this); }

bool Tensor::is_leaf() const { return impl().requires_grad || !autograd::needs_gradient(*this); }

const Tensor& Tensor::requires_grad_(bool requires_grad, Where where) const {
  UserPosition here(where);
  check(is_leaf(),
        "requires_grad_: the tensor is the result of recorded ops, so whether it needs a gradient follows from them; "
        "call it on detach() instead");
  check(!requires_grad || is_differentiable(dtype()),
        "requires_grad_: a tensor of {} cannot require a gradient; only floating-point and complex tensors can", dtype());
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

Tensor& Tensor::mutable_grad() const {
  auto edge = autograd::gradient_edge(*this);
  TensorImpl& kept_with = edge.leaf ? *edge.leaf : impl();
  if (auto* tracer = Tracer::current()) {
    Tensor present = grad();
    tracer->before_grad_changes(*this);
    autograd::ensure_state(kept_with).grad = present;
  }
  return autograd::ensure_state(kept_with).grad;
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

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      const std::optional<TensorList>& inputs, Where where) const {
  UserPosition here(where);
  check(!inputs || !inputs->empty(), "backward: the list of inputs is empty; leave it out for all leaves");
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, inputs.value_or(TensorList()), where);
}

// --- hooks

unsigned Tensor::add_hook(std::function<Tensor(const Tensor& grad)> hook, const Where& where) const {
  UserPosition here(where);
  autograd::Edge edge = autograd::gradient_edge(*this);
  check(bool(edge), "register_hook: the tensor does not require a gradient");
  auto& state = autograd::ensure_state(edge.leaf ? *edge.leaf : impl());
  if (edge.leaf) leaf_hooks_change(*edge.leaf, "register_hook()");
  auto kept = std::make_shared<autograd::Hook>(std::move(hook));
  if (edge.node) edge.node->hooks.emplace_back(edge.index, kept);
  state.hooks.push_back(std::move(kept));
  return unsigned(state.hooks.size() - 1);
}

void Tensor::remove_hook(unsigned number, Where where) const {
  UserPosition here(where);
  autograd::Edge edge = autograd::gradient_edge(*this);
  TensorImpl& kept_with = edge.leaf ? *edge.leaf : impl();
  auto* state = autograd::state_of(kept_with);
  check(state && number < state->hooks.size(), "remove_hook: the tensor has no hook of number {}", number);
  if (edge.leaf) leaf_hooks_change(*edge.leaf, "remove_hook()");
  *state->hooks[number] = nullptr;
}

void Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook, Where where) const {
  UserPosition here(where);
  autograd::Edge edge = autograd::gradient_edge(*this);
  check(bool(edge.leaf), "register_post_accumulate_grad_hook: only a leaf that requires a gradient gathers one");
  leaf_hooks_change(*edge.leaf, "register_post_accumulate_grad_hook()");
  autograd::ensure_state(*edge.leaf).post_hooks.push_back(std::move(hook));
}

void Tensor::retain_grad(Where where) const {
  UserPosition here(where);
  autograd::Edge edge = autograd::gradient_edge(*this);
  check(bool(edge), "retain_grad: the tensor does not require a gradient");
  if (auto* effects = HostEffects::current()) effects->refuse("retain_grad()");
  if (edge.leaf || autograd::ensure_state(impl()).retains) return;
  autograd::ensure_state(impl()).retains = true;
  edge.node->retained.emplace_back(edge.index, impl().autograd);
}

bool Tensor::retains_grad() const {
  auto* state = autograd::state_of(impl());
  return state && state->retains && !impl().requires_grad;
}

// --- history

autograd::GradFn Tensor::grad_fn() const {
  autograd::Edge edge = autograd::gradient_edge(*this);
  return edge.node ? autograd::GradFn(edge) : autograd::GradFn();
}

int64_t Tensor::output_nr() const { return autograd::gradient_edge(*this).index; }

const Tensor& Tensor::detach_(Where where) const {
  UserPosition here(where);
  check(!impl().base, "detach_: the tensor is a view, whose history is that of its base: use detach()");
  if (auto* effects = HostEffects::current()) effects->refuse("detach_()");
  if (!autograd::needs_gradient(*this)) return *this;
  impl().requires_grad = false;
  TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
  if (auto* state = autograd::state_of(impl())) {
    state->edge = {};
    state->alias = {};
    state->retains = false;
    ++state->generation;  // its views look at what has no history now
  }
  return *this;
}

Tensor Tensor::detach() const {
  // Inside vmap() gradients may also flow outside of it.
  if (auto* batch = BatchTracer::current(); batch && is_traced() && batch->keeps_history(*this)) {
    Tensor outside = batch->outside(*this);
    const bool batched = outside.dim() != dim();
    TracerScope scope(batch->outer());
    return batch->enter(outside.detach(), batched);
  }
  auto* program = ProgramTracer::current();
  if (program && !is_traced() && autograd::needs_gradient(*this)) program->detaches(*this);
  return autograd::detached(*this);
}

}  // namespace sinter
