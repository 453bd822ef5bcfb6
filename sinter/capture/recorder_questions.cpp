// What the host asks while it is traced: about sizes, about values, for memory; and about gradients of leaves.
#include <algorithm>

#include "sinter/capture/lazy.h"
#include "sinter/capture/recorder_parts.h"

namespace sinter::capture {

// --- sizes -----------------------------------------------------------------------------------------------------------

void Recorder::asked_size(const Dim& d, const std::source_location& where) {
  if (UserPosition::current()) return;
  for (auto& [size, line] : asked_)
    if (size.same_as(d)) {
      line = where;
      return;
    }
  asked_.emplace_back(d, where);
}

std::string Recorder::line_of(const Dim& a, const Dim& b) const {
  if (UserPosition::current()) return user_line();
  for (auto* d : {&a, &b})
    for (auto& [size, line] : asked_)
      if (size.same_as(*d)) return to_string(line);
  for (auto* d : {&a, &b})
    for (auto& [size, line] : asked_)
      for (auto& name : size.symbols())
        if (d->depends_on(Dim::symbol(name))) return to_string(line);
  return {};
}

bool Recorder::decide(DimCompare op, const Dim& a, const Dim& b) {
  if (auto known = sizes_.known(op, a, b)) return *known;
  for (auto& fact : data_facts_) {
    if (fact.op != op) continue;
    if (fact.a.same_as(a) && fact.b.same_as(b)) return fact.holds;
    if (op == DimCompare::kEqual && fact.a.same_as(b) && fact.b.same_as(a)) return fact.holds;
  }
  // Once a size has been found equal to a number, the gradient may ask anything about it.
  if (auto x = told(a), y = told(b); x && y)
    return op == DimCompare::kEqual ? *x == *y : op == DimCompare::kLess ? *x < *y : *x <= *y;
  if (!sizes_.depends_on_data(a) && !sizes_.depends_on_data(b)) return sizes_.answer(op, a, b, line_of(a, b));
  check(!handed_over_, "the gradient asks about a size that the data decides ({}): call backward() on less than this, or "
        "keep it eager with compiler::disable()", a);
  Question question{.kind = Question::Kind::kSize, .what = "a size that the data decides", .where = line_of(a, b)};
  question.compare = op;
  question.a = a;
  question.b = b;
  bool holds = end_segment(question, {}, {}) != 0;
  data_facts_.push_back({op, a, b, holds, {}});
  return holds;
}

std::optional<int64_t> Recorder::told(const Dim& d) const {
  if (d.is_number()) return d.number();
  for (auto& fact : data_facts_) {
    if (fact.op != DimCompare::kEqual || !fact.holds) continue;
    if (fact.a.same_as(d) && fact.b.is_number()) return fact.b.number();
    if (fact.b.same_as(d) && fact.a.is_number()) return fact.a.number();
  }
  return {};
}

int64_t Recorder::specialize(const Dim& d, const std::source_location* where, const void*) {
  auto value = sizes_.value(d);
  check(bool(value), "the symbolic size {} is used as a number, and nothing is known of it yet", d);
  // A position inside the library is of no use to the user.
  std::string line = where && !UserPosition::current() ? to_string(*where) : line_of(d, d);
  if (!sizes_.depends_on_data(d)) {
    if (!sizes_.known(DimCompare::kEqual, d, *value)) sizes_.answer(DimCompare::kEqual, d, *value, line);
    return *value;
  }
  if (auto number = told(d)) return *number;
  check(!handed_over_, "the gradient asks about a size that the data decides ({}): call backward() on less than this, or "
        "keep it eager with compiler::disable()", d);
  Question question{.kind = Question::Kind::kNumber, .what = "a size that the data decides", .where = line};
  question.a = d;
  int64_t number = end_segment(question, {}, {});
  data_facts_.push_back({DimCompare::kEqual, d, number, true, {}});
  return number;
}

// --- questions -------------------------------------------------------------------------------------------------------

Scalar Recorder::item(const Tensor& tensor) {
  // A number has no history, and later writes to the tensor do not change it.
  Tensor now = tensor.is_traced() ? tensor : make_handle(captured(tensor), {}, {}, false);
  return lazy_scalar(*this, now.detach().clone().reshape({}));
}

bool Recorder::truth(const Tensor& tensor) {
  Question question{.kind = Question::Kind::kTruth, .what = "a truth value", .where = user_line()};
  return end_segment(question, tensor, {}) != 0;
}

Scalar Recorder::number(const Tensor& tensor) {
  Question question{.kind = Question::Kind::kNumber, .what = "a number", .where = user_line()};
  int64_t bits = end_segment(question, tensor, {});
  if (is_floating(tensor.dtype())) return std::bit_cast<double>(bits);
  if (tensor.dtype() == kBool) return bits != 0;
  return bits;
}

Scalar Recorder::show(const Tensor& tensor) {
  const TensorImpl& memory = memory_of(tensor, "printing");
  TracerScope none(nullptr);
  return Tensor(IntrusivePtr<TensorImpl>::share(const_cast<TensorImpl*>(&memory))).item();
}

const TensorImpl& Recorder::memory_of(const Tensor& tensor, const char* asker) {
  // A constant that nobody has written to holds the host's own numbers; who gets a pointer may write them, which ops
  // recorded before must not see.
  if (tensor.is_traced() && !handle_of(tensor).pinned()) {
    Storage& storage = *handle_of(tensor).storage;
    bool read_only = std::string_view(asker) == "to_vector" || std::string_view(asker) == "printing";
    if (storage.source.kind == CellSource::Kind::kConstant && storage.version == 0 && handle_of(tensor).path.empty() &&
        (read_only || storage.segment != segment_))
      return storage.real.impl();
  }
  step_aside(asker);
  materialised_.push_back(real_of(tensor));
  return materialised_.back().impl();
}

void Recorder::step_aside(const char* what) {
  Question question{.kind = Question::Kind::kMemory, .what = what, .where = user_line()};
  host_.must_follow(question);
  end_segment(question, {}, {});
}

bool Recorder::changes_argument(const TensorImpl& tensor, bool requires_grad) const {
  auto* handle = dynamic_cast<const Handle*>(tensor.traced.get());
  return handle && !handle->pinned() && !handle->detached && handle->path.empty() &&
         handle->storage->source.kind == CellSource::Kind::kArgument &&
         handle->storage->real.impl().requires_grad != requires_grad;
}

void Recorder::settle_use(const TensorImpl& real) {
  auto known = captured_.find(&real);
  if (known != captured_.end() && known->second->segment == segment_) step_aside("requires_grad_()");
}

bool Recorder::make_leaf(const TensorImpl& tensor) {
  if (!has_ended_ && !host_.leaves_break()) return false;
  auto* handle = dynamic_cast<const Handle*>(tensor.traced.get());
  if (!handle || handle->pinned()) return false;
  Storage& storage = *handle->storage;
  if (handle->detached || !handle->path.empty() || storage.real.defined())
    throw CannotCapture{"requires_grad_() on a view or a detached tensor beside a break: clone() it first"};
  step_aside("requires_grad_()");
  storage.real.impl().requires_grad = true;
  storage.needs_grad = records_history_;
  return true;
}

bool Recorder::has_leaf() const {
  return std::ranges::any_of(storages_, [](auto& entry) {
    const Storage& storage = *entry.second;
    return !storage.real.defined() &&
           std::ranges::any_of(storage.handles, [](auto* handle) { return handle->body && handle->body->requires_grad; });
  });
}

Tensor Recorder::real_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return tensor;
  Handle& handle = handle_of(tensor);
  SINTER_INTERNAL_ASSERT(!handle.pinned() && handle.storage->real.defined(), "a value has no memory");
  return real_view(handle, handle.storage->real);
}

// --- gradients -------------------------------------------------------------------------------------------------------

// The storage of a leaf: of its stand-in, of a look at an argument, or of an eager tensor.
Storage& Recorder::leaf_storage(const Tensor& leaf) {
  if (auto it = leaf_roots_.find(leaf.impl_ptr().get()); it != leaf_roots_.end()) return *it->second;
  return *storage_of(leaf);
}

Tensor Recorder::grad_of(const Tensor& leaf, const Tensor& grad) {
  if (grad.defined() && grad.is_traced()) return grad;
  if (leaf.is_traced() && !leaf_roots_.contains(leaf.impl_ptr().get()) && handle_of(leaf).pinned()) return grad;
  if (!leaf.is_traced() && !leaf.impl().requires_grad && !grad.defined()) return grad;
  Storage& storage = leaf_storage(leaf);
  if (leaf.is_traced()) {
    if (std::find(changed_grads_.begin(), changed_grads_.end(), &storage) != changed_grads_.end())
      return grad_so_far(leaf_roots_, storage);
  } else {
    for (auto& change : grad_changes_)
      if (change.storage == &storage) return grad;
  }
  if (!storage.real.defined()) return grad;
  if (storage.source.kind == CellSource::Kind::kMade && !storage.real.impl().requires_grad) return grad;
  auto* real_state = autograd::state_of(storage.real.impl());
  Tensor real = real_state ? real_state->grad : Tensor();
  draft_.segment.grad_reads.push_back({storage.source, real.defined()});
  if (!real.defined()) return {};
  auto known = captured_.find(real.impl_ptr().get());
  Storage* found = known != captured_.end() ? known->second : nullptr;
  auto& sharing = by_buffer_[real.impl().buffer.get()];
  for (auto* other : sharing) {
    bool same = other->real.defined() && same_geometry(other->real.impl(), real.impl());
    if (same && !found) found = other;
    note_grad_sharing(storage, *other, same);
  }
  if (!found) {
    auto made = new_storage(type_of(real), real.impl().sizes, real.impl().strides);
    if (real.impl().sizes == storage.sizes) made->type.shape = storage.type.shape;
    made->source = {CellSource::Kind::kGrad, bind(storage), {}, storage.source.name + ".grad"};
    made->leaf = &storage;
    made->from_call = true;
    made->real = real;
    alive_.push_back(made);
    for (auto* other : sharing)
      if (other->version) check_alone(*other);
    sharing.push_back(made.get());
    found = made.get();
    bind(*made);  // now: once the program has changed it, the leaf holds a traced one
  }
  captured_[real.impl_ptr().get()] = found;
  return make_handle(IntrusivePtr<Storage>::share(found), {}, {}, false);
}

void Recorder::before_grad_changes(const Tensor& leaf) {
  if (leaf.is_traced() && !leaf_roots_.contains(leaf.impl_ptr().get()) && handle_of(leaf).pinned()) return;
  Storage& storage = leaf_storage(leaf);
  if (leaf.is_traced()) {
    // A leaf of the program's own making keeps its gradient with itself.
    if (!storage.real.defined()) return;
    check(storage.real.impl().requires_grad,
          "backward: gradients would leave the compiled function through '{}', which is itself the result of recorded "
          "ops. Call backward() outside, or use autograd::grad() inside",
          storage.source.name);
    if (std::find(changed_grads_.begin(), changed_grads_.end(), &storage) == changed_grads_.end()) {
      changed_grads_.push_back(&storage);
      alive_.push_back(IntrusivePtr<Storage>::share(&storage));
    }
    return;
  }
  for (auto& change : grad_changes_)
    if (change.storage == &storage) return;
  auto* state = autograd::state_of(leaf.impl());
  grad_changes_.push_back({leaf, state ? state->grad : Tensor(), &storage});
}

std::optional<TensorList> Recorder::flow_outside(const TensorList& tensors, std::span<const Tensor> targets,
                                                 const std::function<TensorList(const TensorList&)>& flow) {
  bool into_leaves = targets.empty();
  // Also where nothing was computed of them since the last break.
  for (auto& tensor : tensors)
    if (tensor.defined() && tensor.is_traced() && !handle_of(tensor).pinned()) root_of(*handle_of(tensor).storage);
  bool outside = !differentiating_ && std::any_of(storages_.begin(), storages_.end(), [&](auto& entry) {
    const Storage& storage = *entry.second;
    return storage.segment == segment_ && storage.needs_grad && !storage.real.impl().requires_grad &&
           (into_leaves || storage.source.kind == CellSource::Kind::kMade);
  });
  if (!outside) return std::nullopt;
  // The tape has one node for the segment: what flows inside it, from result to result, cannot be seen.
  auto takes_part = [&](uint64_t id) {
    auto alive = storages_.find(id);
    return carried_.contains(id) || (alive != storages_.end() && !alive->second->handles.empty());
  };
  for (auto& target : targets)
    check(!target.is_traced() || handle_of(target).pinned() ||
              std::ranges::none_of(handle_of(target).storage->feeds, takes_part),
          "grad: the gradient is taken of a value from before a break, from which another was computed there; take it of the "
          "arguments, or keep the function eager with compiler::disable()");
  Question question{.kind = Question::Kind::kMemory, .what = into_leaves ? "backward" : "grad", .where = user_line()};
  host_.must_follow(question);
  end_segment(question, {}, {}, true);
  TensorList real, results;
  {
    EnableGradGuard with_history;
    for (auto& tensor : tensors) real.push_back(tensor.defined() ? real_of(tensor) : tensor);
  }
  {
    TracerScope none(nullptr);
    results = flow(real);
  }
  for (auto& result : results)
    if (result.defined()) result = enter(result);
  return results;
}

void Recorder::restore_grads() {
  for (auto& change : grad_changes_) autograd::ensure_state(change.leaf.impl()).grad = change.before;
  grad_changes_.clear();
}

}  // namespace sinter::capture
