// Ops and writes as they are recorded.
#include "sinter/autograd/tape.h"
#include "sinter/base/hash.h"
#include "sinter/capture/recorder_parts.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/graph/nodes.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/custom.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/reshape.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::capture {

// The sizes by which something is decided that holds for the whole program become numbers.
void Recorder::keep_layout(const Tensor& tensor, const std::function<IntList(const Layout&)>& decided) {
  if (!tensor.is_traced()) return;
  Handle& handle = handle_of(tensor);
  if (!handle.pinned() && !handle.path.empty()) keep_layout(*handle.storage, handle.path, decided);
}

void Recorder::keep_layout(const Storage& storage, const ViewPath& path,
                           const std::function<IntList(const Layout&)>& decided) {
  if (!sizes_.has_argument_sizes()) return;
  for (std::string name; !(name = size_that_decides(storage, path, sizes_, decided)).empty();) {
    Dim size = Dim::symbol(name);
    sizes_.answer(DimCompare::kEqual, size, *sizes_.value(size), user_line());
  }
}

void Recorder::layout_matters(const Tensor& tensor) {
  // A dimension of one element lies nowhere: at sizes that make it one the layout is another.
  for (auto& size : tensor.sizes())
    if (!size.is_number() && sizes_.value(size) && !sizes_.depends_on_data(size) && !sizes_.known(DimCompare::kEqual, size, 1))
      sizes_.answer(DimCompare::kEqual, size, 1, user_line());
  keep_layout(tensor, pattern_of);
}

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
    auto whole = std::find_if(inputs.begin(), inputs.end(), [&](const TensorArg& arg) {
      return !arg.is_scalar() && !sizes.empty() && arg.tensor().impl().sizes == sizes;
    });
    if (whole != inputs.end()) keep_layout(whole->tensor(), result_order);
  }
  // Built-in composites end in pointwise ops, so that a result of the first operand's shape lies as that does.
  if (op.kind == OpKind::kComposite && known && !is_attention(op) && !find_registered_op(op.name) && !inputs[0].is_scalar() &&
      !sizes.empty() && inputs[0].tensor().impl().sizes == sizes) {
    const TensorImpl* first = inputs[0].tensor().impl_ptr().get();
    strides = eager::pointwise_strides({&first, 1}, sizes);
    keep_layout(inputs[0].tensor(), result_order);
  }
  if (op.kind == OpKind::kOpaque && known)
    if (auto controlled = control_strides(value, inputs, sizes_)) {
      strides = *controlled;
      for (auto& arg : inputs) keep_layout(arg.tensor(), pattern_of);
    }
  auto storage = new_storage(value.type(), sizes, strides);
  storage->root = pin(value, *storage);
  storage->segment = segment_;
  Tensor result = make_handle(storage, {}, value, false);
  // The tape will give the result a history: it is the storage's too, even when only views of it are stored.
  result.impl().autograd = storage->root.impl().autograd = std::make_shared<autograd::State>();
  return result;
}

Tensor Recorder::view_result(const Op& op, const Tensor& operand, const Attrs& attrs, Value value) {
  auto storage = storage_of(operand);
  ViewPath path = operand.is_traced() ? handle_of(operand).path : ViewPath();
  const TensorImpl& impl = operand.impl();
  Attrs present = attrs.substitute([&](const std::string& name) { return Dim(*sizes_.value(Dim::symbol(name))); });
  Type types[] = {{impl.dtype, Shape(std::span<const int64_t>(impl.sizes)), impl.device}};
  auto geometry = eager::view_geometry(OpCall{op, types, present}, impl.strides);
  bool detached = is_detached(operand);
  Tensor result = make_handle(storage, path.then(op, attrs), value, detached);
  set_layout(result.impl(), geometry.sizes, geometry.strides, eager::first_element(geometry, impl));
  return result;
}

Tensor Recorder::view_of(const Op& op, const Tensor& operand, const Attrs& attrs, Value value) {
  bool pinned = operand.is_traced() && handle_of(operand).pinned();
  return view_result(op, pinned ? with_storage(operand) : operand, attrs, value);
}

// A value of the tape as a tensor of the program, so that a view of it is one of a tensor.
Tensor Recorder::with_storage(const Tensor& pinned) {
  const TensorImpl& impl = pinned.impl();
  Value value = handle_of(pinned).value;
  auto storage = new_storage(value.type(), impl.sizes, impl.strides);
  storage->root = pinned;
  storage->segment = segment_;
  return make_handle(storage, {}, value, false);
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
    types.push_back({impl.dtype, arg.sizes(), impl.device, is_weak(arg.tensor())});
  }
  op.infer(OpCall{op, types, attrs});
}

Marks Recorder::marks() {
  if (autograd::is_flowing() != (draft_.phase % 2 == 1)) ++draft_.phase;
  // Numbered anew, so that a program is the same text whenever it is captured.
  int region = autograd::checkpoint_region();
  if (region && region != draft_.checkpoint) {
    draft_.checkpoint = region;
    ++draft_.regions;
  }
  return {.phase = draft_.phase, .region = region ? draft_.regions : 0};
}

std::vector<Tensor> Recorder::record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  // Positions in memory are positions among the elements only where these lie one after the other.
  if (&op == &known_ops().as_strided) {
    const Tensor& x = inputs[0].tensor();
    check(x.is_contiguous(), "as_strided: a tensor of strides {} cannot be looked at by position under capture: clone() it",
          x.impl().strides);
  }
  if (op.aliases && !inputs[0].tensor().is_traced() && is_lent(inputs[0].tensor())) {
    TracerScope none(nullptr);
    Attrs present = attrs.substitute([&](const std::string& name) { return Dim(*sizes_.value(Dim::symbol(name))); });
    return Dispatcher::instance().run(op, inputs, present);
  }
  trail_ = hash_mix(trail_, uint64_t(reinterpret_cast<uintptr_t>(&op)));
  numbers_here_ = 0;
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
  draft_.graph.set_marks(marks());
  if (auto before = undone_look(op, values)) return {view_of(op, inputs[0].tensor(), attrs, *before)};
  const Node& node = draft_.graph.add(op, std::move(values), attrs, user_line());
  std::vector<Tensor> results;
  results.reserve(node.types.size());
  for (size_t i = 0; i < node.types.size(); ++i) {
    Value value = node.result(int(i));
    if (!op.aliases) {
      results.push_back(fresh_result(op, inputs, value));
      continue;
    }
    results.push_back(view_of(op, inputs[0].tensor(), attrs, value));
  }
  return results;
}

// Results whose sizes the data decides are computed at once, with the history that they have by now.
void Recorder::recorded(const Op& op, std::span<const Tensor> results) {
  bool data_decides = false;
  for (auto& result : results) {
    if (!result.defined()) continue;
    for (auto& d : result.impl().traced_shape) data_decides = data_decides || !sizes_.value(d);
  }
  if (!data_decides) return;
  Question question{.kind = Question::Kind::kSize, .what = std::string(op.name), .where = user_line()};
  question.a = question.b = 0;  // no answer is needed: the sizes are
  end_segment(question, {}, {});
  // The sizes are known now; the results' own layout with them.
  for (auto& result : results) {
    Storage& storage = *handle_of(result).storage;
    set_layout(result.impl(), storage.sizes, storage.strides, 0);
  }
}

void Recorder::write(const Tensor& out, const Tensor& value) {
  auto storage = storage_of(out);
  check(!storage->number, "a number of the arguments cannot be written to");
  const TensorImpl& impl = out.impl();
  ViewPath path = out.is_traced() ? handle_of(out).path : ViewPath();
  // At other sizes the write might be refused: one window overlaps nothing, two may.
  for (auto& size : out.sizes())
    if (!sizes_.depends_on_data(size) && sizes_.value(size) == 1 && !sizes_.known(DimCompare::kEqual, size, 1))
      sizes_.answer(DimCompare::kEqual, size, 1, user_line());
  keep_layout(*storage, path, [](const Layout& layout) { return IntList{overlaps_itself(layout.sizes, layout.strides)}; });
  if (storage->real.defined()) check_alone(*storage);
  if (storage->source.kind == CellSource::Kind::kCaptured && storage->version == 0)
    written_captured_.push_back(storage->source.tensor);
  if (storage->source.kind == CellSource::Kind::kArgument || storage->source.kind == CellSource::Kind::kMemory)
    writes_arguments_ = true;
  if (storage->real.defined() && overlaps_itself(storage->sizes, storage->strides))
    throw CannotCapture{format("'{}' is written to, and several of its elements share one place in memory", storage->source.name)};
  // Whether a reshape is a copy or a look depends on the sizes, and now it matters.
  bool reshaped = std::any_of(path.steps.begin(), path.steps.end(), [](auto& step) { return step.op == &reshape_op(); });
  if (storage->copied || reshaped)
    for (auto& size : storage->type.shape) size.to_int();
  // A look, not its value: a question about sizes may end the segment on the way.
  Tensor root = make_handle(storage, {}, {}, false);
  bool detached = is_detached(out);
  bool is_leaf = impl.requires_grad || (storage->real.defined() && storage->real.impl().requires_grad);
  check(!is_leaf || detached || !autograd::grad_enabled(),
        "a leaf tensor that requires a gradient, or a view of it, cannot be written in place: write under a NoGradGuard, or "
        "to a clone()");
  if (detached && autograd::grad_enabled() && autograd::needs_gradient(value))
    throw CannotCapture{"a write gives a history to a detached tensor, which is not that of the tensor it shares memory with"};
  bool taped = !detached && autograd::grad_enabled() && (autograd::needs_gradient(root) || autograd::needs_gradient(value));
  if (taped && storage->source.kind == CellSource::Kind::kMemory)
    throw CannotCapture{"a write gives a history to arguments that overlap in memory"};
  autograd::Edge before = autograd::gradient_edge(root);
  Tensor now = path.empty() ? value : sinter::write(root, value, path);
  storage->root = pin(value_of(now), *storage);
  autograd::Edge edge = taped ? autograd::gradient_edge(now) : before;
  if (edge) autograd::ensure_state(storage->root.impl()).edge = edge;
  ++storage->version;
  storage->written = true;
  if (!out.is_traced() && is_lent(out)) step_aside("a write to memory of from_blob");
}

Tensor Recorder::present_value(const Tensor& tensor) {
  auto storage = captured(tensor);
  return autograd::without_history(root_of(*storage));
}

Tensor Recorder::empty(const Shape& shape, const TensorOptions& options) { return zeros(shape, options); }

Tensor Recorder::constant(const Tensor& made) {
  auto storage = new_storage(type_of(made), made.impl().sizes, made.impl().strides);
  storage->source = {CellSource::Kind::kConstant, -1, made, "constant"};
  storage->real = made;
  return make_handle(storage, {}, {}, false);
}

void Recorder::lay_out(const Tensor& fresh, std::span<const int64_t> strides) {
  Storage& storage = *handle_of(fresh).storage;
  storage.copied = true;
  storage.strides = IntList(strides.begin(), strides.end());
  // What is fresh and complex is a look at fresh pairs.
  if (is_complex(fresh.dtype())) {
    for (auto& stride : storage.strides) stride *= 2;
    storage.strides.push_back(1);
    set_layout(fresh.impl(), fresh.impl().sizes, IntList(strides.begin(), strides.end()), 0);
    return set_layout(storage.root.impl(), storage.sizes, storage.strides, 0);
  }
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

}  // namespace sinter::capture
