#include "sinter/autograd/history.h"

#include "sinter/autograd/autograd.h"
#include "sinter/ops/complex_call.h"
#include "sinter/tensor/tracer.h"

namespace sinter::autograd {

namespace {

uint32_t generation_of(const TensorImpl& impl) {
  auto* state = state_of(impl);
  return state ? state->generation : 0;
}

// The history of an outdated view: the same look at what its base is now.
void refresh(TensorImpl& view) {
  State& state = ensure_state(view);
  state.generation = generation_of(*view.base);
  state.edge = {};
  state.alias = {};
  Tensor base(view.base);
  if (!gradient_edge(base)) return;
  TracerScope eager(nullptr);
  EnableGradGuard recorded;
  state.edge = gradient_edge(look_at_memory(base, view));
}

bool is_outdated(const TensorImpl& impl) {
  return impl.base && impl.base->autograd && is_differentiable(impl.dtype) &&
         generation_of(*impl.base) != generation_of(impl);
}

}  // namespace

State& ensure_state(TensorImpl& impl) {
  if (!impl.autograd) impl.autograd = std::make_shared<State>();
  return *state_of(impl);
}

uint32_t hooks_version(const TensorImpl& leaf) {
  auto* state = state_of(leaf);
  return state ? state->hooks_version : 0;
}

Tensor detached(const Tensor& tensor) {
  const TensorImpl& from = tensor.impl();
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = from.dtype;
  impl->device = from.device;
  impl->contiguous = from.contiguous;
  impl->offset = from.offset;
  impl->numel = from.numel;
  impl->sizes = from.sizes;
  impl->strides = from.strides;
  impl->buffer = from.buffer;
  impl->traced_shape = from.traced_shape;
  if (from.traced) {
    impl->traced = from.traced->for_detached();
    impl->traced->refresh(*impl);
  }
  return Tensor(std::move(impl));
}

Tensor attached(const Tensor& tensor, const Edge& history) {
  Tensor out = detached(tensor);
  ensure_state(out.impl()).edge = history;
  return out;
}

Edge gradient_edge(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (auto* tracer = Tracer::current(); tracer && !tracer->keeps_history(tensor)) return {};
  if (impl.requires_grad) return {nullptr, tensor.impl_ptr(), 0};
  if (impl.traced) impl.traced->refresh(impl);
  if (is_outdated(impl)) refresh(impl);
  auto* state = state_of(impl);
  return state ? state->edge : Edge{};
}

std::vector<Edge> gradient_edges(const TensorList& tensors) {
  std::vector<Edge> edges;
  for (auto& t : tensors) edges.push_back(gradient_edge(t));
  return edges;
}

bool needs_gradient(const Tensor& tensor) {
  TensorImpl& impl = tensor.impl();
  if (auto* tracer = Tracer::current(); tracer && !tracer->keeps_history(tensor)) return false;
  if (impl.requires_grad) return true;
  if (impl.traced) impl.traced->refresh(impl);
  if (is_outdated(impl)) refresh(impl);
  return impl.autograd && state_of(impl)->edge;
}

Tensor saved_form(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (impl.traced) return without_history(tensor);
  if (auto* tracer = Tracer::current()) return tracer->present_value(tensor);
  if (impl.requires_grad) return tensor;
  auto* state = state_of(impl);
  if (!state) return detached(tensor);
  if (!state->alias.defined()) state->alias = detached(tensor);
  return state->alias;
}

Tensor without_history(const Tensor& tensor) {
  Tensor out = detached(tensor);
  if (auto& traced = tensor.impl().traced) out.impl().traced = traced->for_tape();
  return out;
}

uint32_t version_of(const Tensor& tensor) {
  const TensorImpl& impl = tensor.impl();
  if (impl.traced) return impl.traced->version();
  return impl.buffer ? impl.buffer->version.load(std::memory_order_relaxed) : 0;
}

}  // namespace sinter::autograd
