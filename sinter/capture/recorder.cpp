// Storages and the handles on them: which value a tensor of the program has at present. And the program's inputs.
#include "sinter/capture/lazy.h"
#include "sinter/capture/recorder_parts.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/known_ops.h"

namespace sinter::capture {

// --- storages and handles on them --------------------------------------------------------------------------------------

Storage::~Storage() {
  if (recorder) recorder->forget(*this);
}

Handle::Handle(IntrusivePtr<Storage> s, ViewPath p, bool without_history)
    : storage(std::move(s)), path(std::move(p)), detached(without_history), recorder(storage->recorder) {
  storage->handles.push_back(this);
}

Handle::~Handle() {
  if (storage) std::erase(storage->handles, this);
}

void Handle::refresh(TensorImpl& impl) {
  body = &impl;
  if (storage && storage->recorder) storage->recorder->refresh(impl, *this);
}

IntrusivePtr<TracedValue> Handle::for_detached() {
  if (pinned()) return IntrusivePtr<TracedValue>::share(this);
  auto copy = make_intrusive<Handle>(storage, path, true);
  copy->value = value;
  copy->segment = segment;
  copy->version = version;
  return copy;
}

IntrusivePtr<TracedValue> Handle::for_tape() {
  if (pinned()) return IntrusivePtr<TracedValue>::share(this);
  return make_intrusive<Handle>(recorder, value, segment);
}

Recorder::~Recorder() {
  restore_grads();
  // What outlives the capture must not look back at it.
  for (auto& [id, storage] : storages_) storage->recorder = nullptr;
}

void Recorder::forget(Storage& storage) {
  storages_.erase(storage.id);
  std::erase(changed_grads_, &storage);
  std::erase_if(leaf_roots_, [&](auto& entry) { return entry.second == &storage; });
}

IntrusivePtr<Storage> Recorder::new_storage(const Type& type, const IntList& sizes, const IntList& strides) {
  auto storage = make_intrusive<Storage>(*this, next_id_++);
  storage->type = type;
  storage->sizes = sizes;
  storage->strides = strides;
  if (auto* where = UserPosition::current()) storage->where = *where;
  storages_[storage->id] = storage.get();
  return storage;
}

Tensor Recorder::pin(Value value, const Storage& layout) {
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = value.type().dtype;
  impl->device = value.type().device;
  impl->traced_shape = value.type().shape;
  impl->traced = make_intrusive<Handle>(this, value, segment_);
  set_layout(*impl, layout.sizes, layout.strides, 0);
  return Tensor(std::move(impl));
}

Tensor Recorder::make_handle(const IntrusivePtr<Storage>& storage, ViewPath path, Value value, bool detached) {
  auto impl = make_intrusive<TensorImpl>();
  auto handle = make_intrusive<Handle>(storage, std::move(path), detached);
  handle->value = value;
  handle->segment = value ? segment_ : 0;
  handle->version = storage->version;
  impl->dtype = value ? value.type().dtype : storage->type.dtype;
  impl->device = storage->type.device;
  impl->traced_shape = value ? value.type().shape : storage->type.shape;
  handle->body = impl.get();
  impl->traced = std::move(handle);
  set_layout(*impl, storage->sizes, storage->strides, 0);
  return Tensor(std::move(impl));
}

void Recorder::refresh(TensorImpl& impl, Handle& handle) {
  Storage& storage = *handle.storage;
  if (handle.segment == segment_ && handle.version == storage.version) return;
  // Marked first: taking the look anew asks for the history of the root, never of this tensor.
  handle.segment = segment_;
  handle.version = storage.version;
  // Asked for by the branch of a cond(), which records itself, it is still this program's.
  TracerScope here(this);
  EnableGradGuard recorded;
  Tensor now = root_of(storage);
  if (handle.detached) now = autograd::without_history(now);
  now = apply(handle.path, now);
  handle.value = value_of(now);
  if (impl.requires_grad) return;
  autograd::Edge edge = autograd::gradient_edge(now);
  if (edge || impl.autograd) {
    auto& state = autograd::ensure_state(impl);
    state.edge = std::move(edge);
    state.alias = {};
  }
}

// A captured tensor whose memory another one shares may be read, but a write to it would not reach the other.
void Recorder::check_alone(const Storage& storage) {
  if (!storage.real.defined()) return;
  for (auto* other : by_buffer_[storage.real.impl().buffer.get()])
    if (other != &storage)
      throw CannotCapture{format("'{}' and '{}' share memory, and one of them is written to", storage.source.name,
                                 other->source.name)};
}

static bool is_argument(const CellSource& source) {
  return source.kind == CellSource::Kind::kArgument || source.kind == CellSource::Kind::kMemory;
}

void Recorder::note_sharing(const Storage& known, const Tensor& eager, bool same) {
  if (is_argument(known.source)) sharings_.push_back({known.source.index, eager, same});
  if (known.leaf) grad_sharings_.push_back({known.leaf->source, -1, eager, same});
}

void Recorder::note_grad_sharing(const Storage& leaf, const Storage& known, bool same) {
  if (is_argument(known.source))
    grad_sharings_.push_back({leaf.source, known.source.index, {}, same});
  else if (known.source.kind == CellSource::Kind::kCaptured)
    grad_sharings_.push_back({leaf.source, -1, known.source.tensor, same});
}

// A tensor whose detached self was met first: the storage is that of the one with the history.
void Recorder::take_over(Storage& storage, const Tensor& eager) {
  if (storage.cell >= 0 || storage.source.kind != CellSource::Kind::kCaptured)
    throw CannotCapture{format("'{}' is used detached, and then with its history", storage.source.name)};
  storage.real = storage.source.tensor = eager;
  storage.needs_grad = true;
}

// Whether writes to the tensor, and what is returned of it, leave the history of its storage alone.
bool Recorder::is_detached(const Tensor& tensor) {
  if (tensor.is_traced()) return handle_of(tensor).detached;
  return captured(tensor)->needs_grad && !autograd::needs_gradient(tensor);
}

IntrusivePtr<Storage> Recorder::captured(const Tensor& eager) {
  const TensorImpl& impl = eager.impl();
  if (auto it = captured_.find(&impl); it != captured_.end()) {
    note_sharing(*it->second, eager, true);
    return IntrusivePtr<Storage>::share(it->second);
  }
  if (is_lent(eager)) {
    auto storage = of_the_host(eager);
    captured_[&impl] = storage.get();
    alive_.push_back(storage);
    materialised_.push_back(eager);  // its address is the key
    return storage;
  }
  auto& sharing = by_buffer_[impl.buffer.get()];
  for (auto* known : sharing) note_sharing(*known, eager, known->real.defined() && same_geometry(known->real.impl(), impl));
  for (auto* known : sharing)
    if (!known->source.tensor.defined() || same_geometry(known->source.tensor.impl(), impl))
      if (known->real.defined() && same_geometry(known->real.impl(), impl)) {
        if (!known->needs_grad && records_history_ && autograd::needs_gradient(eager)) take_over(*known, eager);
        captured_[&impl] = known;
        materialised_.push_back(eager);  // its address is the key
        return IntrusivePtr<Storage>::share(known);
      }
  auto storage = new_storage(type_of(eager), impl.sizes, impl.strides);
  storage->source = {CellSource::Kind::kCaptured, -1, eager, "captured " + std::to_string(captured_.size())};
  storage->real = eager;
  storage->needs_grad = records_history_ && autograd::needs_gradient(eager);
  for (auto* other : sharing)
    if (other->written || other->version) check_alone(*other);
  sharing.push_back(storage.get());
  for (auto* other : sharing)
    if (other != storage.get() && other->version) check_alone(*storage);
  captured_[&impl] = storage.get();
  alive_.push_back(storage);
  return storage;
}

IntrusivePtr<Storage> Recorder::storage_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return captured(tensor);
  Handle& handle = handle_of(tensor);
  check(!handle.pinned(), "a value that only the gradient keeps cannot be written to");
  return handle.storage;
}

int Recorder::bind(Storage& storage) {
  if (storage.cell >= 0) return storage.cell;
  storage.cell = next_cell_++;
  draft_.segment.bound.emplace_back(storage.cell, storage.source);
  storage.real = host_.bind(storage.cell, storage.source);
  return storage.cell;
}

namespace {

// What stands for a leaf of the arguments has its hooks, for gradients that come to it inside the program.
void take_hooks(Storage& storage) {
  if (!storage.real.defined() || autograd::hooks_version(storage.real.impl()) == 0) return;
  auto& real = *autograd::state_of(storage.real.impl());
  auto& state = autograd::ensure_state(storage.root.impl());
  state.hooks = real.hooks;
  state.post_hooks = real.post_hooks;
  state.hooks_version = real.hooks_version;
}

}  // namespace

// Graphs are of real numbers: of a complex tensor the program is given the pairs.
Value Recorder::add_input(const Storage& storage) {
  if (!is_complex(storage.type.dtype)) return draft_.graph.add_input(storage.type, storage.source.name);
  Type pairs = storage.type;
  pairs.dtype = real_dtype(pairs.dtype);
  pairs.shape.push_back(2);
  Value input = draft_.graph.add_input(pairs, storage.source.name);
  return draft_.graph.add(known_ops().view_as_complex, {input}, {}, user_line()).result();
}

const Tensor& Recorder::root_of(Storage& storage) {
  if (storage.segment == segment_) return storage.root;
  storage.segment = segment_;
  if (storage.real.defined()) carried_.insert(storage.id);
  // requires_grad_() may have been called since.
  if (storage.source.kind == CellSource::Kind::kCaptured)
    storage.needs_grad = records_history_ && autograd::needs_gradient(storage.real);
  Tensor target;
  if (storage.number) {
    if (storage.host_number) {
      storage.number->index = int(draft_.segment.host_numbers.size());
      draft_.segment.host_numbers.push_back(*storage.host_number);
    }
    draft_.segment.inputs.push_back(*storage.number);
  } else {
    InputSource source;
    // A trace that only compares takes no gradients: cells are counted without what they alone read.
    if (differentiating_ && storage.cell < 0 && storage.source.tensor.defined())
      source = {.kind = InputSource::Kind::kTensor, .tensor = storage.source.tensor};
    else
      source.index = bind(storage);
    draft_.segment.inputs.push_back(source);
  }
  storage.root = pin(add_input(storage), storage);
  if (storage.needs_grad && storage.source.kind == CellSource::Kind::kCaptured && storage.real.impl().requires_grad) {
    target = storage.real;
    autograd::ensure_state(storage.root.impl()).edge = autograd::gradient_edge(storage.real);
  } else if (storage.needs_grad) {
    target = storage.root;
    storage.root.impl().requires_grad = true;
    leaf_roots_[storage.root.impl_ptr().get()] = &storage;
    take_hooks(storage);
    if (storage.grad.defined()) autograd::ensure_state(storage.root.impl()).grad = storage.grad;
  }
  draft_.grad_targets.push_back(target);
  return storage.root;
}

Value Recorder::value_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return handle_of(root_of(*captured(tensor))).value;
  Handle& handle = handle_of(tensor);
  // A later recorder may have the address of an earlier one.
  check(handle.recorder == this && (handle.pinned() || handle.storage->recorder == this),
        "a traced tensor{} is used outside the capture that made it; return it from the captured function instead, or write "
        "it into a tensor made outside (copy_)",
        handle.pinned() || !handle.storage->where ? "" : " made at " + to_string(*handle.storage->where));
  if (!handle.pinned()) refresh(tensor.impl(), handle);
  SINTER_INTERNAL_ASSERT(handle.segment == segment_, "a value of an earlier segment is used in a later one");
  return handle.value;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

Tensor Recorder::add_argument(int index, const Tensor& real, const Type& type, const std::string& name,
                              bool needs_grad) {
  auto storage = new_storage(type, real.impl().sizes, real.impl().strides);
  storage->source = {CellSource::Kind::kArgument, index, {}, name};
  storage->from_call = true;
  storage->real = real;
  storage->needs_grad = needs_grad;
  alive_.push_back(storage);
  captured_[real.impl_ptr().get()] = storage.get();
  by_buffer_[real.impl().buffer.get()].push_back(storage.get());
  return make_handle(storage, {}, {}, false);
}

IntrusivePtr<Storage> Recorder::add_memory(int index, const Tensor& flat) {
  auto storage = new_storage(type_of(flat), flat.impl().sizes, flat.impl().strides);
  storage->source = {CellSource::Kind::kMemory, index, {}, "memory"};
  storage->from_call = true;
  storage->real = flat;
  alive_.push_back(storage);
  by_buffer_[flat.impl().buffer.get()].push_back(storage.get());
  return storage;
}

Tensor Recorder::add_overlapping(const IntrusivePtr<Storage>& memory, const Tensor& real) {
  if (real_dtype(real.dtype()) != real_dtype(memory->type.dtype))
    throw CannotCapture{format("arguments of {} and of {} overlap in memory", memory->type.dtype, real.dtype())};
  return look_at_memory(make_handle(memory, {}, {}, false), real.impl());
}

Tensor Recorder::same_argument(const Tensor& real) {
  for (auto* storage : by_buffer_[real.impl().buffer.get()])
    if (same_geometry(storage->real.impl(), real.impl())) return make_handle(IntrusivePtr<Storage>::share(storage), {}, {}, false);
  SINTER_INTERNAL_ASSERT(false, "no argument is the same tensor");
}

Tensor Recorder::enter(const Tensor& real) {
  if (real.is_traced()) return real;
  if (auto known = captured_.find(real.impl_ptr().get()); known != captured_.end())
    return make_handle(IntrusivePtr<Storage>::share(known->second), {}, {}, false);
  return make_handle(of_the_host(real), {}, {}, false);
}

// In every call another one: it has no source, and a cell from the start.
IntrusivePtr<Storage> Recorder::of_the_host(const Tensor& real) {
  auto storage = new_storage(type_of(real), real.impl().sizes, real.impl().strides);
  storage->source.name = "from the host";
  storage->from_call = true;
  storage->cell = next_cell_++;
  storage->real = real;
  storage->needs_grad = records_history_ && autograd::needs_gradient(real);
  host_.place(storage->cell, real);
  return storage;
}

Scalar Recorder::add_host_number(std::function<double()> read) {
  auto storage = new_storage(Type{.dtype = kFloat64, .shape = {}, .device = {}, .weak = true}, {}, {});
  storage->source.name = "host number";
  storage->number = InputSource{.kind = InputSource::Kind::kRead, .index = int(read_numbers_.size()), .size = {},
                                .dtype = kFloat64};
  alive_.push_back(storage);
  read_numbers_.push_back(read());
  draft_.segment.actions.push_back({{}, std::move(read)});
  follow_actions();
  return lazy_scalar(*this, make_handle(storage, {}, {}, false));
}

void Recorder::add_host_action(std::function<void()> apply) {
  draft_.segment.actions.push_back({std::move(apply), {}});
  follow_actions();
}

// What the host does between segments takes the function itself.
void Recorder::follow_actions() {
  if (segment_ > 1) host_.must_follow({.kind = Question::Kind::kMemory, .what = "a change of host state", .where = user_line()});
}

Scalar Recorder::add_number(int index, DType dtype, const std::string& name) {
  auto storage = new_storage(Type{.dtype = dtype, .shape = {}, .device = {}, .weak = true}, {}, {});
  storage->source.name = name;
  storage->from_call = true;
  storage->number = InputSource{.kind = InputSource::Kind::kNumber, .index = index, .size = {}, .dtype = dtype};
  alive_.push_back(storage);
  return lazy_scalar(*this, make_handle(storage, {}, {}, false));
}

}  // namespace sinter::capture
