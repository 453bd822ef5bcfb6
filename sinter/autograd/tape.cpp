#include "sinter/autograd/tape.h"

#include <algorithm>

#include "sinter/autograd/checkpoint.h"
#include "sinter/autograd/history.h"

namespace sinter::autograd {

namespace {

thread_local bool enabled = true;

void set_history(const Tensor& tensor, Edge edge, const Tensor& alias) {
  State& state = ensure_state(tensor.impl());
  state.edge = std::move(edge);
  state.alias = alias;
  if (state.retains && state.edge.node)
    state.edge.node->retained.emplace_back(state.edge.index, tensor.impl().autograd);
}

// The history of a tensor that was overwritten; where it is a view, its base's changes with it.
void set_written(const Tensor& out, Edge written, const Tensor& alias) {
  TensorImpl& impl = out.impl();
  uint32_t generation;
  // Programs that reach for the tensor by themselves were captured with a history or without one.
  if (bool(gradient_edge(out)) != bool(written)) TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
  if (impl.base) {
    Edge before = gradient_edge(Tensor(impl.base));
    if (bool(before) != bool(before || written)) TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
    Edge base_edge;
    if (before || written) base_edge.node = make_intrusive<CopySlices>(std::move(before), written, *impl.base, impl);
    State& base = ensure_state(*impl.base);
    base.edge = std::move(base_edge);
    base.alias = {};
    generation = ++base.generation;
    // Overwritten with what has no history, a view is still a part of what has one: its own is made anew from there.
    if (!written && base.edge) return;
  } else {
    generation = ensure_state(impl).generation + 1;
  }
  set_history(out, std::move(written), alias);
  state_of(impl)->generation = generation;
}

}  // namespace

bool grad_enabled() { return enabled; }
void set_grad_enabled(bool value) { enabled = value; }

bool is_recording(std::span<const TensorArg> inputs) {
  bool on = enabled, needed = false;
  for (auto& arg : inputs) {
    auto* impl = arg.tensor().impl_ptr().get();
    if (!impl) continue;  // a number
    if (impl->autograd) {
      auto* state = state_of(*impl);
      if (!state->stale.empty()) [[unlikely]]
        throw_error(state->stale);
    }
    if (on && !needed) needed = needs_gradient(arg.tensor());
  }
  return needed;
}

void record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, std::span<const Tensor> outputs) {
  auto floating = [](const Tensor& t) { return is_differentiable(t.dtype()); };
  if (std::none_of(outputs.begin(), outputs.end(), floating)) return;
  auto node = make_intrusive<OpNode>(op, inputs, attrs, outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& alias = node->save_result(i, outputs[i]);
    if (floating(outputs[i])) set_history(outputs[i], {node, nullptr, uint32_t(i)}, alias);
  }
  Checkpoint::note(node);
}

void note_view(const Tensor& view, const Tensor& of) {
  TensorImpl& impl = view.impl();
  impl.base = of.impl().base ? of.impl().base : of.impl_ptr();
  auto* base = impl.base->autograd ? state_of(*impl.base) : nullptr;
  if (base && base->generation != 0) ensure_state(impl).generation = base->generation;
}

void check_writable(const Op& op, const Tensor& out) {
  const TensorImpl& impl = out.impl();
  check(!impl.requires_grad,
        "{}: a leaf tensor that requires a gradient cannot be written in place: write under a NoGradGuard, or to a "
        "clone()",
        op.name);
  check(!impl.base || !impl.base->requires_grad,
        "{}: a view of a leaf that requires a gradient cannot be written in place: write under a NoGradGuard, or to a "
        "view "
        "of its clone()",
        op.name);
  for (size_t d = 0; d < impl.strides.size(); ++d)
    check(
        impl.strides[d] != 0 || impl.sizes[d] <= 1,
        "{}: the tensor of shape {} and strides {} cannot be written in place, since several of its elements are one: "
        "clone() it first",
        op.name, impl.sizes, impl.strides);
}

void record_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  TensorImpl& impl = out.impl();
  if (!is_differentiable(impl.dtype)) return;
  auto node = make_intrusive<OpNode>(op, inputs, attrs, 1, impl.buffer.get());
  if (op.kind != OpKind::kPointwise) {
    std::vector<Type> types;
    for (auto& arg : inputs)
      types.push_back(
          {arg.dtype(), arg.sizes(), arg.is_scalar() ? out.device() : arg.tensor().device(), arg.is_scalar()});
    Shape natural = infer_types(op, types, attrs)[0].shape;
    if (!natural.same_as(out.sizes())) node->set_result_shape(natural);
  }
  bool depends = std::any_of(node->edges().begin(), node->edges().end(), [](const Edge& e) { return bool(e); });
  Edge written = depends ? Edge{node, nullptr, 0} : Edge{};
  set_written(out, std::move(written), node->save_result(0, out));
  Checkpoint::note(node);
}

void set_history(const Tensor& tensor, IntrusivePtr<Node> node, uint32_t result, bool written) {
  Edge edge{std::move(node), nullptr, result};
  if (written)
    set_written(tensor, std::move(edge), {});
  else
    set_history(tensor, std::move(edge), {});
}

}  // namespace sinter::autograd
