#include "sinter/ops/batched_op.h"

#include <map>
#include <memory>
#include <mutex>

#include "sinter/ops/batching.h"
#include "sinter/ops/reduce.h"

namespace sinter {

namespace {

struct BatchedOp : Op {
  const Op* inner = nullptr;
  std::vector<bool> batched;
  std::string text;  // the name
};

const BatchedOp& batched_of(const Op& op) { return static_cast<const BatchedOp&>(op); }

Shape without_first(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

Shape with_first(const Dim& size, const Shape& shape) {
  Shape out{size};
  out.append(shape);
  return out;
}

// The call of the op itself, for one element of the batch.
struct InnerCall {
  explicit InnerCall(const OpCall& outer)
      : op(batched_of(outer.op)), types(outer.inputs.begin(), outer.inputs.end()), call{*op.inner, types, outer.attrs} {
    for (size_t i = 0; i < types.size(); ++i) {
      if (!op.batched[i]) continue;
      check(types[i].rank() > 0, "{}: operand {} has no batch dimension", op.name, i);
      size = types[i].shape[0];
      types[i].shape = without_first(types[i].shape);
    }
  }
  InnerCall(const InnerCall&) = delete;

  const BatchedOp& op;
  Dim size;
  std::vector<Type> types;
  OpCall call;
};

// Reads the op's definition; operands of the batch are read at the coordinate that the definition does not see.
class InnerBuilder final : public ElementBuilder {
 public:
  InnerBuilder(ElementBuilder& outer, const InnerCall& inner)
      : ElementBuilder(inner.call), outer_(outer), op_(inner.op), first_(outer.i[0]) {
    i = Index(outer.i.begin() + 1, outer.i.end());
    k = outer.k;
  }

  Elem load(int operand, const Index& at) override { return outer_.load(operand, at_batch(operand, at)); }
  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override {
    return outer_.load_if(inside, operand, at_batch(operand, at), otherwise);
  }
  Dim load_index(int operand, const Index& at, const Dim& extent) override {
    return outer_.load_index(operand, at_batch(operand, at), extent);
  }
  Elem select(const Conditions& conditions, Elem yes, Elem no) override { return outer_.select(conditions, yes, no); }
  Elem apply(const Op& pointwise, DType dtype, std::initializer_list<Elem> args) override {
    return outer_.apply(pointwise, dtype, args);
  }
  Elem number(const Dim& value) override { return outer_.number(value); }
  Elem constant(const Scalar& value) override { return outer_.constant(value); }

 private:
  Index at_batch(int operand, const Index& at) const {
    if (!op_.batched[size_t(operand)]) return at;
    Index out{first_};
    out.append(at);
    return out;
  }

  ElementBuilder& outer_;
  const BatchedOp& op_;
  Dim first_;
};

std::vector<Type> infer(const OpCall& call) {
  InnerCall inner(call);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    check(!inner.op.batched[i] || call.shape(int(i))[0] == inner.size, "{}: batch sizes {} and {} differ", call.op.name,
          call.shape(int(i))[0], inner.size);
  auto types = inner.op.inner->infer(inner.call);
  for (auto& type : types) type.shape = with_first(inner.size, type.shape);
  return types;
}

Elem element(ElementBuilder& b) {
  InnerCall inner(b.call);
  InnerBuilder builder(b, inner);
  return inner.op.inner->element(builder);
}

Shape reduction(const OpCall& call) {
  InnerCall inner(call);
  return inner.op.inner->reduction(inner.call);
}

Shape domain(const OpCall& call) {
  InnerCall inner(call);
  return with_first(inner.size, inner.op.inner->domain(inner.call));
}

Index target(ElementBuilder& b) {
  InnerCall inner(b.call);
  InnerBuilder builder(b, inner);
  Index out{b.i[0]};
  out.append(inner.op.inner->target(builder));
  return out;
}

Combine scatter_combine(const OpCall& call) {
  InnerCall inner(call);
  return inner.op.inner->scatter_combine(inner.call);
}

// Reads coordinates alone.
Dim payload(const ElementBuilder& b) {
  InnerCall inner(b.call);
  InnerBuilder builder(const_cast<ElementBuilder&>(b), inner);
  return inner.op.inner->payload(builder);
}

int64_t scan_dim(const OpCall& call) {
  InnerCall inner(call);
  return inner.op.inner->scan_dim(inner.call) + 1;
}

// The op's own gradient, for the whole batch; an operand that the batch shares gets the sum.
TensorList grad(const GradCall& c) {
  auto& op = batched_of(c.op);
  BatchTracer level(c.out().size(0), Randomness::kError);
  std::vector<TensorArg> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    inputs.push_back(op.batched[i] ? TensorArg(level.enter(c.inputs[i].tensor(), true), c.inputs[i].where()) : c.inputs[i]);
  auto enter = [&](std::span<const Tensor> tensors) {
    TensorList out;
    for (auto& t : tensors) out.push_back(t.defined() ? level.enter(t, true) : t);
    return out;
  };
  TensorList outputs = enter(c.outputs), flowing = enter(c.grads), grads;
  {
    TracerScope inside(&level);
    grads = op.inner->grad(GradCall{*op.inner, inputs, outputs, flowing, c.attrs, c.needed});
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    grads[i] = level.leave(grads[i]);
    if (!op.batched[i]) grads[i] = grads[i].sum({0});
  }
  return grads;
}

std::unique_ptr<const BatchedOp> make(const Op& inner, const std::vector<bool>& batched, std::string name) {
  auto made = std::make_unique<BatchedOp>();
  static_cast<Op&>(*made) = inner;
  made->inner = &inner;
  made->batched = batched;
  made->text = std::move(name);
  made->name = made->text;
  made->infer = infer;
  made->element = element;
  if (inner.grad) made->grad = grad;
  if (inner.reduction) made->reduction = reduction;
  if (inner.payload) made->payload = payload;
  if (inner.domain) made->domain = domain;
  if (inner.target) made->target = target;
  if (inner.scatter_combine) made->scatter_combine = scatter_combine;
  if (inner.scan_dim) made->scan_dim = scan_dim;
  made->alias = nullptr;
  made->run_cpu = nullptr;
  made->samples = {};
  return made;
}

// Ops are never taken out: nodes and kernels point to them.
struct Made {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const BatchedOp>, std::less<>> ops;
};

}  // namespace

bool has_batched_op(const Op& op) {
  return op.kind == OpKind::kView || op.kind == OpKind::kLoop || op.kind == OpKind::kScatter || op.kind == OpKind::kScan;
}

const Op& batched_op(const Op& op, const std::vector<bool>& batched) {
  static auto* made = new Made;
  std::string name = "vmap";
  for (bool b : batched) name += b ? '1' : '0';
  name += "::" + std::string(op.name);
  std::lock_guard lock(made->mutex);
  auto& found = made->ops[name];
  if (!found) found = make(op, batched, name);
  return *found;
}

const Op* find_batched_op(std::string_view name) {
  size_t end = name.find("::");
  if (!name.starts_with("vmap") || end == std::string_view::npos) return nullptr;
  std::vector<bool> batched;
  for (char c : name.substr(4, end - 4)) {
    if (c != '0' && c != '1') return nullptr;
    batched.push_back(c == '1');
  }
  const Op* op = find_op(name.substr(end + 2));
  return op && !batched.empty() && has_batched_op(*op) ? &batched_op(*op, batched) : nullptr;
}

}  // namespace sinter
