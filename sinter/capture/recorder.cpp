#include "sinter/capture/recorder.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/capture/lazy.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::capture {

namespace {

std::string user_line() {
  auto* where = UserPosition::current();
  return where ? to_string(*where) : std::string();
}

Type type_of(const Tensor& eager) {
  return {.dtype = eager.dtype(), .shape = Shape(std::span<const int64_t>(eager.impl().sizes)), .device = eager.device()};
}

bool same_geometry(const TensorImpl& a, const TensorImpl& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides &&
         a.dtype == b.dtype;
}

Handle& handle_of(const Tensor& tensor) {
  auto* handle = dynamic_cast<Handle*>(tensor.impl().traced.get());
  check(handle != nullptr, "a tensor of one capture is used in another; return it from the captured function instead");
  return *handle;
}

void set_layout(TensorImpl& impl, const IntList& sizes, const IntList& strides, int64_t offset) {
  impl.sizes = sizes;
  impl.strides = strides;
  impl.offset = offset;
  impl.numel = 1;
  for (int64_t size : sizes) impl.numel *= size;
  impl.contiguous = impl.numel == 0;
  if (impl.contiguous) return;
  impl.contiguous = true;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != expected) impl.contiguous = false;
    expected *= sizes[d];
  }
}

// Whether two elements may lie in one place.
bool overlaps_itself(const IntList& sizes, const IntList& strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) steps.emplace_back(strides[d], sizes[d]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

const Op& as_strided_op() {
  static const Op& op = *find_op("as_strided");
  return op;
}

}  // namespace

// --- storages and looks at them --------------------------------------------------------------------------------------

Storage::~Storage() {
  if (recorder) recorder->forget(*this);
}

Handle::Handle(IntrusivePtr<Storage> s, ViewPath p, bool without_history)
    : storage(std::move(s)), path(std::move(p)), detached(without_history), recorder(storage->recorder) {
  ++storage->handles;
}

Handle::~Handle() {
  if (storage) --storage->handles;
}

void Handle::refresh(TensorImpl& impl) {
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

Tensor Recorder::look(const IntrusivePtr<Storage>& storage, ViewPath path, Value value, bool detached) {
  auto impl = make_intrusive<TensorImpl>();
  auto handle = make_intrusive<Handle>(storage, std::move(path), detached);
  handle->value = value;
  handle->segment = value ? segment_ : 0;
  handle->version = storage->version;
  impl->dtype = storage->type.dtype;
  impl->device = storage->type.device;
  impl->traced_shape = value ? value.type().shape : storage->type.shape;
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
  EnableGradGuard recorded;
  Tensor now = root_of(storage);
  if (handle.detached) now = autograd::kept_value(now);
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

void Recorder::note_sharing(const Storage& argument, const Tensor& captured, bool same) {
  bool is_argument = argument.source.kind == SlotSource::Kind::kArgument || argument.source.kind == SlotSource::Kind::kMemory;
  if (is_argument) sharings_.push_back({argument.source.index, captured, same});
}

// A tensor whose detached self was met first: the storage is that of the one with the history.
void Recorder::take_over(Storage& storage, const Tensor& eager) {
  if (storage.slot >= 0 || storage.source.kind != SlotSource::Kind::kCaptured)
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
  auto& sharing = by_buffer_[impl.buffer.get()];
  for (auto* known : sharing) note_sharing(*known, eager, known->real.defined() && same_geometry(known->real.impl(), impl));
  for (auto* known : sharing)
    if (!known->source.tensor.defined() || same_geometry(known->source.tensor.impl(), impl))
      if (known->real.defined() && same_geometry(known->real.impl(), impl)) {
        if (!known->needs_grad && autograd::grad_enabled() && autograd::needs_gradient(eager)) take_over(*known, eager);
        captured_[&impl] = known;
        materialised_.push_back(eager);  // its address is the key
        return IntrusivePtr<Storage>::share(known);
      }
  auto storage = new_storage(type_of(eager), impl.sizes, impl.strides);
  storage->source = {SlotSource::Kind::kCaptured, -1, eager, "captured " + std::to_string(captured_.size())};
  storage->real = eager;
  storage->needs_grad = autograd::grad_enabled() && autograd::needs_gradient(eager);
  for (auto* other : sharing)
    if (other->written || other->version) check_alone(*other);
  sharing.push_back(storage.get());
  for (auto* other : sharing)
    if (other != storage.get() && other->version) check_alone(*storage);
  captured_[&impl] = storage.get();
  kept_.push_back(storage);
  return storage;
}

IntrusivePtr<Storage> Recorder::storage_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return captured(tensor);
  Handle& handle = handle_of(tensor);
  check(!handle.pinned(), "a value that only the gradient keeps cannot be written to");
  return handle.storage;
}

int Recorder::meet(Storage& storage) {
  if (storage.slot >= 0) return storage.slot;
  storage.slot = next_slot_++;
  draft_.segment.met.emplace_back(storage.slot, storage.source);
  storage.real = host_.meet(storage.slot, storage.source);
  return storage.slot;
}

const Tensor& Recorder::root_of(Storage& storage) {
  if (storage.segment == segment_) return storage.root;
  storage.segment = segment_;
  Tensor target;
  if (storage.number) {
    draft_.segment.inputs.push_back(*storage.number);
  } else {
    InputSource source;
    // A trace that only compares takes no gradients: slots are counted without what they alone read.
    if (differentiating_ && storage.slot < 0 && storage.source.tensor.defined())
      source = {.kind = InputSource::Kind::kTensor, .tensor = storage.source.tensor};
    else
      source.index = meet(storage);
    draft_.segment.inputs.push_back(source);
  }
  storage.root = pin(draft_.graph.add_input(storage.type, storage.source.name), storage);
  if (storage.needs_grad && storage.source.kind == SlotSource::Kind::kCaptured && storage.real.impl().requires_grad) {
    target = storage.real;
    autograd::ensure_state(storage.root.impl()).edge = autograd::gradient_edge(storage.real);
  } else if (storage.needs_grad) {
    target = storage.root;
    storage.root.impl().requires_grad = true;
    leaf_roots_[storage.root.impl_ptr().get()] = &storage;
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
        "a traced tensor is used outside the capture that made it; return it from the captured function instead");
  if (!handle.pinned()) refresh(tensor.impl(), handle);
  SINTER_INTERNAL_ASSERT(handle.segment == segment_, "a value of an earlier segment is used in a later one");
  return handle.value;
}

// --- inputs ----------------------------------------------------------------------------------------------------------

Tensor Recorder::add_argument(int index, const Tensor& real, const Type& type, const std::string& name,
                              bool needs_grad) {
  auto storage = new_storage(type, real.impl().sizes, real.impl().strides);
  storage->source = {SlotSource::Kind::kArgument, index, {}, name};
  storage->real = real;
  storage->needs_grad = needs_grad;
  kept_.push_back(storage);
  captured_[real.impl_ptr().get()] = storage.get();
  by_buffer_[real.impl().buffer.get()].push_back(storage.get());
  return look(storage, {}, {}, false);
}

IntrusivePtr<Storage> Recorder::add_memory(int index, const Tensor& flat) {
  auto storage = new_storage(type_of(flat), flat.impl().sizes, flat.impl().strides);
  storage->source = {SlotSource::Kind::kMemory, index, {}, "memory"};
  storage->real = flat;
  kept_.push_back(storage);
  by_buffer_[flat.impl().buffer.get()].push_back(storage.get());
  return storage;
}

Tensor Recorder::add_overlapping(const IntrusivePtr<Storage>& memory, const Tensor& real) {
  const TensorImpl& impl = real.impl();
  return as_strided(look(memory, {}, {}, false), impl.sizes, impl.strides, impl.offset);
}

Tensor Recorder::same_argument(const Tensor& real) {
  for (auto* storage : by_buffer_[real.impl().buffer.get()])
    if (same_geometry(storage->real.impl(), real.impl())) return look(IntrusivePtr<Storage>::share(storage), {}, {}, false);
  SINTER_INTERNAL_ASSERT(false, "no argument is the same tensor");
}

Tensor Recorder::enter(const Tensor& real) {
  if (real.is_traced()) return real;
  // In every call another one: it has no source, and a slot from the start.
  if (auto known = captured_.find(real.impl_ptr().get()); known != captured_.end())
    return look(IntrusivePtr<Storage>::share(known->second), {}, {}, false);
  auto storage = new_storage(type_of(real), real.impl().sizes, real.impl().strides);
  storage->source.name = "from the host";
  storage->slot = next_slot_++;
  storage->real = real;
  storage->needs_grad = autograd::grad_enabled() && autograd::needs_gradient(real);
  host_.place(storage->slot, real);
  return look(storage, {}, {}, false);
}

Scalar Recorder::add_number(int index, DType dtype, const std::string& name) {
  auto storage = new_storage(Type{.dtype = dtype, .shape = {}, .device = {}, .weak = true}, {}, {});
  storage->source.name = name;
  storage->number = InputSource{.kind = InputSource::Kind::kNumber, .index = index, .size = {}, .dtype = dtype};
  kept_.push_back(storage);
  return lazy_scalar(*this, look(storage, {}, {}, false));
}

// --- ops -------------------------------------------------------------------------------------------------------------

Tensor Recorder::fresh_result(const Op& op, std::span<const TensorArg> inputs, Value value) {
  IntList sizes;
  bool known = true;
  for (auto& d : value.type().shape) {
    auto size = sizes_.value(d);
    known = known && size;
    sizes.push_back(size.value_or(0));
  }
  IntList strides = contiguous_strides(sizes);
  if (op.kind == OpKind::kPointwise && known) {
    SmallVector<const TensorImpl*, 8> operands;
    for (auto& arg : inputs) operands.push_back(arg.is_scalar() ? nullptr : arg.tensor().impl_ptr().get());
    strides = eager::pointwise_strides(std::span<const TensorImpl* const>(operands.data(), operands.size()), sizes);
  }
  auto storage = new_storage(value.type(), sizes, strides);
  storage->root = pin(value, *storage);
  storage->segment = segment_;
  Tensor result = look(storage, {}, value, false);
  // The tape will give the result a history: it is the storage's too, even when only views of it are kept.
  result.impl().autograd = storage->root.impl().autograd = std::make_shared<autograd::State>();
  return result;
}

Tensor Recorder::view_result(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, Value value) {
  const Tensor& operand = inputs[0].tensor();
  auto storage = storage_of(operand);
  ViewPath path = operand.is_traced() ? handle_of(operand).path : ViewPath();
  const TensorImpl& impl = operand.impl();
  Attrs present = attrs.substitute([&](const std::string& name) { return Dim(*sizes_.value(Dim::symbol(name))); });
  Type types[] = {{impl.dtype, Shape(std::span<const int64_t>(impl.sizes)), impl.device}};
  auto geometry = eager::view_geometry(OpCall{op, types, present}, impl.strides);
  bool detached = operand.is_traced() && handle_of(operand).detached;
  Tensor result = look(storage, path.then(op, attrs), value, detached);
  set_layout(result.impl(), geometry.sizes, geometry.strides, impl.offset + geometry.offset);
  return result;
}

void Recorder::ask_sizes(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  if (!sizes_.has_data_sizes()) return;
  std::vector<Type> types;
  for (auto& arg : inputs) {
    if (arg.is_scalar()) {
      types.push_back({arg.scalar().dtype(), {}, {}, true});
      continue;
    }
    check(arg.tensor().defined(), "{}: an operand is an undefined tensor", op.name);
    const TensorImpl& impl = arg.tensor().impl();
    bool weak = impl.traced && !handle_of(arg.tensor()).pinned() && handle_of(arg.tensor()).storage->type.weak;
    types.push_back({impl.dtype, arg.sizes(), impl.device, weak});
  }
  op.infer(OpCall{op, types, attrs});
}

std::vector<Tensor> Recorder::record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  // Positions in memory are positions among the elements only where these lie one after the other.
  if (&op == &as_strided_op()) {
    const Tensor& x = inputs[0].tensor();
    check(x.is_contiguous(), "as_strided: a tensor of strides {} cannot be looked at by position under capture: clone() it",
          x.impl().strides);
  }
  // Asked first: a question about sizes may end the segment, and with it the values of the operands.
  ask_sizes(op, inputs, attrs);
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (auto& arg : inputs) {
    if (arg.is_scalar()) {
      values.push_back(draft_.graph.add_scalar(arg.scalar()));
      continue;
    }
    check(arg.tensor().defined(), "{}: an operand is an undefined tensor", op.name);
    values.push_back(value_of(arg.tensor()));
  }
  const Node& node = draft_.graph.add(op, std::move(values), attrs, user_line());
  std::vector<Tensor> results;
  results.reserve(node.types.size());
  bool data_decides = false;
  for (size_t i = 0; i < node.types.size(); ++i) {
    Value value = node.result(int(i));
    // A pinned operand is a value of the tape: its views are values too.
    bool is_view = op.aliases && !(inputs[0].tensor().is_traced() && handle_of(inputs[0].tensor()).pinned());
    results.push_back(is_view ? view_result(op, inputs, attrs, value) : fresh_result(op, inputs, value));
    for (auto& d : node.types[i].shape) data_decides = data_decides || !sizes_.value(d);
  }
  if (data_decides) {
    Question question{.kind = Question::Kind::kSize, .what = std::string(op.name), .where = user_line()};
    question.a = question.b = 0;  // no answer is needed: the sizes are
    end_segment(question, {}, {});
    // The sizes are known now; the results' own layout with them.
    for (auto& result : results) {
      Storage& storage = *handle_of(result).storage;
      set_layout(result.impl(), storage.sizes, storage.strides, 0);
    }
  }
  return results;
}

void Recorder::write(const Tensor& out, const Tensor& value) {
  auto storage = storage_of(out);
  check(!storage->number, "a number of the arguments cannot be written to");
  const TensorImpl& impl = out.impl();
  for (size_t d = 0; d < impl.sizes.size(); ++d)
    check(impl.sizes[d] <= 1 || impl.strides[d] != 0,
          "the tensor written to is expanded: several of its elements share one place in memory. Call clone() first");
  if (storage->real.defined()) check_alone(*storage);
  if (storage->source.kind == SlotSource::Kind::kCaptured && storage->version == 0)
    written_captured_.push_back(storage->source.tensor);
  if (storage->source.kind == SlotSource::Kind::kArgument || storage->source.kind == SlotSource::Kind::kMemory)
    writes_arguments_ = true;
  if (storage->real.defined() && overlaps_itself(storage->sizes, storage->strides))
    throw CannotCapture{format("'{}' is written to, and several of its elements share one place in memory", storage->source.name)};
  Tensor root = root_of(*storage);
  ViewPath path = out.is_traced() ? handle_of(out).path : ViewPath();
  bool detached = is_detached(out);
  bool is_leaf = impl.requires_grad || (storage->real.defined() && storage->real.impl().requires_grad);
  check(!is_leaf || detached || !autograd::grad_enabled(),
        "a leaf tensor that requires a gradient, or a view of it, cannot be written in place: write under a NoGradGuard, or "
        "to a clone()");
  if (detached && autograd::grad_enabled() && autograd::needs_gradient(value))
    throw CannotCapture{"a write gives a history to a detached tensor, which is not that of the tensor it shares memory with"};
  bool taped = !detached && autograd::grad_enabled() && (autograd::needs_gradient(root) || autograd::needs_gradient(value));
  if (taped && storage->source.kind == SlotSource::Kind::kMemory)
    throw CannotCapture{"a write gives a history to arguments that overlap in memory"};
  autograd::Edge before = autograd::gradient_edge(root);
  Tensor now = path.empty() ? value : sinter::write(root, value, path);
  storage->root = pin(value_of(now), *storage);
  autograd::Edge edge = taped ? autograd::gradient_edge(now) : before;
  if (edge) autograd::ensure_state(storage->root.impl()).edge = edge;
  ++storage->version;
  storage->written = true;
}

Tensor Recorder::operand(const Tensor& eager) {
  if (!is_floating(eager.dtype())) return eager;
  auto storage = captured(eager);
  bool outside = storage->needs_grad && !storage->real.impl().requires_grad;
  return storage->version || outside ? look(storage, {}, {}, is_detached(eager)) : eager;
}

Tensor Recorder::present_value(const Tensor& tensor) {
  auto storage = captured(tensor);
  return autograd::kept_value(root_of(*storage));
}

Tensor Recorder::empty(const Shape& shape, const TensorOptions& options) { return zeros(shape, options); }

Tensor Recorder::constant(const Tensor& made) {
  auto storage = new_storage(type_of(made), made.impl().sizes, made.impl().strides);
  storage->source = {SlotSource::Kind::kConstant, -1, made, "constant"};
  storage->real = made;
  return look(storage, {}, {}, false);
}

void Recorder::lay_out(const Tensor& fresh, std::span<const int64_t> strides) {
  Storage& storage = *handle_of(fresh).storage;
  storage.strides = IntList(strides.begin(), strides.end());
  for (auto* impl : {&fresh.impl(), &storage.root.impl()}) set_layout(*impl, storage.sizes, storage.strides, 0);
}

std::vector<TensorArg> Recorder::draw() {
  auto input = [&](InputSource::Kind kind, int index, const char* name) {
    draft_.segment.inputs.push_back({.kind = kind, .index = index});
    draft_.grad_targets.emplace_back();
    Type type{.dtype = kInt64, .shape = {}, .device = {}, .weak = true};
    Value value = draft_.graph.add_input(type, name);
    auto impl = make_intrusive<TensorImpl>();
    impl->dtype = kInt64;
    impl->traced = make_intrusive<Handle>(this, value, segment_);
    return Tensor(std::move(impl));
  };
  if (!seed_) seed_ = input(InputSource::Kind::kSeed, 0, "seed");
  Tensor offset = input(InputSource::Kind::kOffset, int(draft_.segment.draws++), "offset");
  return {TensorArg(*seed_), TensorArg(offset)};
}

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
  for (auto& fact : data_facts_)
    if (fact.op == op && fact.a.same_as(a) && fact.b.same_as(b)) return fact.holds;
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

int64_t Recorder::specialize(const Dim& d, const std::source_location* where, const void*) {
  auto value = sizes_.value(d);
  check(bool(value), "the symbolic size {} is used as a number, and nothing is known of it yet", d);
  // A position inside the library is of no use to the user.
  std::string line = where && !UserPosition::current() ? to_string(*where) : line_of(d, d);
  if (!sizes_.depends_on_data(d)) {
    if (!sizes_.known(DimCompare::kEqual, d, *value)) sizes_.answer(DimCompare::kEqual, d, *value, line);
    return *value;
  }
  check(!handed_over_, "the gradient asks about a size that the data decides ({}): call backward() on less than this, or "
        "keep it eager with compiler::disable()", d);
  Question question{.kind = Question::Kind::kNumber, .what = "a size that the data decides", .where = line};
  question.a = d;
  for (auto& fact : data_facts_)
    if (fact.op == DimCompare::kEqual && fact.holds && fact.a.same_as(d) && fact.b.is_number()) return fact.b.number();
  int64_t number = end_segment(question, {}, {});
  data_facts_.push_back({DimCompare::kEqual, d, number, true, {}});
  return number;
}

// --- questions -------------------------------------------------------------------------------------------------------

Scalar Recorder::item(const Tensor& tensor) {
  // A number has no history, and later writes to the tensor do not change it.
  Tensor now = tensor.is_traced() ? tensor : look(captured(tensor), {}, {}, false);
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
    if (storage.source.kind == SlotSource::Kind::kConstant && storage.version == 0 && handle_of(tensor).path.empty() &&
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

Tensor Recorder::real_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return tensor;
  Handle& handle = handle_of(tensor);
  SINTER_INTERNAL_ASSERT(!handle.pinned() && handle.storage->real.defined(), "a value has no memory");
  TracerScope none(nullptr);
  Tensor real = apply(handle.path, handle.storage->real);
  return handle.detached ? real.detach() : real;
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
    if (std::find(changed_grads_.begin(), changed_grads_.end(), &storage) != changed_grads_.end()) {
      auto* state = storage.segment == segment_ ? autograd::state_of(storage.root.impl()) : nullptr;
      return state ? state->grad : storage.grad;
    }
  } else {
    for (auto& change : grad_changes_)
      if (change.storage == &storage) return grad;
  }
  if (!storage.real.defined() || storage.source.kind == SlotSource::Kind::kMade) return grad;
  auto* real_state = autograd::state_of(storage.real.impl());
  Tensor real = real_state ? real_state->grad : Tensor();
  draft_.segment.grad_reads.push_back({storage.source, real.defined()});
  if (!real.defined()) return {};
  auto [it, fresh] = captured_.try_emplace(real.impl_ptr().get());
  if (fresh) {
    auto made = new_storage(type_of(real), real.impl().sizes, real.impl().strides);
    if (real.impl().sizes == storage.sizes) made->type.shape = storage.type.shape;
    made->source = {SlotSource::Kind::kGrad, meet(storage), {}, storage.source.name + ".grad"};
    made->real = real;
    kept_.push_back(made);
    it->second = made.get();
    meet(*made);  // now: once the program has changed it, the leaf holds a traced one
  }
  return look(IntrusivePtr<Storage>::share(it->second), {}, {}, false);
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
      kept_.push_back(IntrusivePtr<Storage>::share(&storage));
    }
    return;
  }
  for (auto& change : grad_changes_)
    if (change.storage == &storage) return;
  auto* state = autograd::state_of(leaf.impl());
  grad_changes_.push_back({leaf, state ? state->grad : Tensor(), &storage});
}

void Recorder::restore_grads() {
  for (auto& change : grad_changes_) autograd::ensure_state(change.leaf.impl()).grad = change.before;
  grad_changes_.clear();
}

}  // namespace sinter::capture
