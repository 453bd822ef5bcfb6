// Tensors of a program that the host holds on to when the function has returned: a table in a member that was built at the
// first call, a static. They become real tensors, which later captures find like any other.
#include <set>

#include "sinter/capture/recorder_parts.h"
#include "sinter/ops/view.h"

namespace sinter::capture {

void Recorder::trace_origins() {
  std::map<int, const Storage*> by_cell;
  for (auto& [id, storage] : storages_)
    if (storage->cell >= 0) by_cell[storage->cell] = storage;
  auto& inputs = draft_.segment.inputs;
  std::vector<bool> from_call(draft_.graph.nodes().size());
  size_t input = 0;
  for (auto& node : draft_.graph.nodes()) {
    bool found = std::any_of(node.inputs.begin(), node.inputs.end(),
                             [&](const Value& v) { return from_call[size_t(v.node->id)]; });
    if (node.op->kind == OpKind::kInput) {
      auto& source = inputs[input++];
      // A storage that is gone was an argument, or a result of an earlier segment.
      auto known = by_cell.find(source.index);
      found = source.kind == InputSource::Kind::kNumber || source.kind == InputSource::Kind::kHost ||
              (source.kind == InputSource::Kind::kCell && (known == by_cell.end() || known->second->from_call));
    }
    from_call[size_t(node.id)] = found;
  }
  for (auto& [id, storage] : storages_)
    if (storage->segment == segment_ && storage->source.kind != CellSource::Kind::kCaptured && storage->root.defined())
      storage->from_call = storage->from_call || from_call[size_t(handle_of(storage->root).value.node->id)];
}

std::vector<Storage*> Recorder::outliving_beside(std::span<const Tensor> results) {
  std::set<const Handle*> expected;
  auto expect = [&](const Tensor& tensor) {
    if (tensor.defined() && tensor.is_traced()) expected.insert(&handle_of(tensor));
  };
  for (auto& result : results) expect(result);
  for (auto& [id, storage] : storages_) expect(storage->grad);
  for (auto& change : grad_changes_)
    if (auto* state = autograd::state_of(change.leaf.impl())) expect(state->grad);
  std::vector<Storage*> found;
  for (auto& [id, storage] : storages_) {
    bool held = std::any_of(storage->handles.begin(), storage->handles.end(), [&](auto* handle) { return !expected.count(handle); });
    if (held && !storage->number && (!storage->from_call || failing_ || host_.follows())) found.push_back(storage);
  }
  return found;
}

void Recorder::compute(std::span<Storage* const> storages) {
  std::vector<Storage*> wanted;
  std::vector<Value> values;
  for (auto* storage : storages) {
    // Nothing is run that could be differentiated.
    if (storage->real.defined() || storage->segment != segment_ || autograd::needs_gradient(storage->root)) continue;
    wanted.push_back(storage);
    values.push_back(value_of(in_pairs(storage->root)));
  }
  if (wanted.empty()) return;
  auto tensors = host_.compute(draft_, std::move(values));
  TracerScope none(nullptr);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i]->real = is_complex(wanted[i]->type.dtype) ? view_as_complex(tensors[i]) : tensors[i];
}

Tensor Recorder::real_view(const Handle& handle, const Tensor& whole) const {
  TracerScope none(nullptr);
  ViewPath path = handle.path;
  map_field([&](const Dim& d) { return Dim(sizes_.value(d).value_or(0)); }, path);
  Tensor real = apply(path, whole);
  return handle.detached ? real.detach() : real;
}

void Recorder::become_real(Handle& handle, const Tensor& whole) {
  Tensor real = real_view(handle, whole);
  TensorImpl& body = *handle.body;
  const TensorImpl& from = real.impl();
  body.dtype = from.dtype;
  body.device = from.device;
  body.contiguous = from.contiguous;
  body.offset = from.offset;
  body.numel = from.numel;
  body.sizes = from.sizes;
  body.strides = from.strides;
  body.buffer = from.buffer;
  body.traced_shape = {};
  if (body.requires_grad) {
    // A leaf of the program's making: what it has beside its gradient is the history of a traced value.
    auto* state = autograd::state_of(body);
    Tensor grad = state ? state->grad : Tensor();
    body.autograd = nullptr;
    if (grad.defined()) autograd::ensure_state(body).grad = grad;
  } else {
    body.requires_grad = from.requires_grad;
    body.autograd = from.autograd;
    body.base = from.base;
  }
  body.traced = nullptr;  // the handle is gone
}

void Recorder::compute_held() {
  std::vector<Storage*> held;
  for (auto& [id, storage] : storages_)
    if (!storage->handles.empty() && !storage->number) held.push_back(storage);
  compute(held);
}

Recorder::Outlived Recorder::release(bool failed) {
  if (failed && !handed_over_) {
    try {
      compute_held();
    } catch (const Error&) {
      // What the function itself has thrown is what its caller must see.
    }
  }
  std::vector<IntrusivePtr<Storage>> all;
  for (auto& [id, storage] : storages_) all.push_back(IntrusivePtr<Storage>::share(storage));
  // What the recorder itself holds would count as the host's.
  restore_grads();
  changed_grads_.clear();
  leaf_roots_.clear();
  seed_.reset();
  draft_ = {};
  for (auto& storage : all) {
    storage->root = {};
    storage->grad = {};
    storage->segment = 0;
  }
  Outlived out;
  for (auto& storage : all) {
    bool known = storage->real.defined() && (!storage->from_call || failed || host_.follows());
    while (!storage->handles.empty()) {
      Handle& handle = *storage->handles.back();
      std::string& where = known && handle.body ? out.real : out.lost;
      if (where.empty()) where = storage->where ? to_string(*storage->where) : "an unknown line";
      if (known && handle.body) {
        become_real(handle, storage->real);
        continue;
      }
      // It has no value any more; nor do the symbols of its sizes.
      if (handle.body) handle.body->traced_shape = Shape(std::span<const int64_t>(handle.body->sizes));
      storage->handles.pop_back();
    }
  }
  return out;
}

}  // namespace sinter::capture
