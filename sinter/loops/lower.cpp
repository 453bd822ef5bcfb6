#include "sinter/loops/lower.h"

#include "sinter/base/error.h"

namespace sinter {

Layout contiguous_layout(const Shape& shape) {
  Layout layout;
  layout.strides.resize(shape.size());
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    layout.strides[d] = stride;
    stride = stride * shape[d];
  }
  return layout;
}

DType accumulator_dtype(Combine combine, DType value, DType result) {
  switch (combine) {
    case Combine::kAny:
    case Combine::kAll: return kBool;
    case Combine::kArgMax:
    case Combine::kArgMin: return value == kBool ? kInt32 : compute_dtype(value);
    default: return result == kBool ? kInt32 : compute_dtype(result);
  }
}

namespace {

Dim offset_of(const Layout& layout, const Index& at) {
  SINTER_INTERNAL_ASSERT(at.size() == layout.strides.size(), "{} coordinates for {} strides", at.size(), layout.strides.size());
  Dim offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset = offset + at[d] * layout.strides[d];
  return offset;
}

// Records what an op's definition does as instructions.
class NestBuilder : public ElementBuilder {
 public:
  NestBuilder(const OpCall& call, LoopNest& nest, std::span<const Layout> layouts)
      : ElementBuilder(call), nest_(nest), layouts_(layouts) {}

  Elem load(int operand, const Index& at) override { return load_if({}, operand, at, 0); }

  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override {
    Instr instr{.kind = InstrKind::kLoad, .dtype = call.inputs[size_t(operand)].dtype, .operand = operand};
    if (!layouts_[size_t(operand)].scalar) instr.offset = offset_of(layouts_[size_t(operand)], at);
    for (auto& c : inside)
      if (!always_holds(c)) instr.conditions.push_back(c);
    instr.value = otherwise;
    return push(std::move(instr));
  }

  Dim load_index(int operand, const Index& at, const Dim& extent) override {
    Instr instr{.kind = InstrKind::kLoadIndex, .dtype = kInt64, .operand = operand};
    instr.offset = offset_of(layouts_[size_t(operand)], at);
    instr.extent = extent;
    instr.symbol = Dim::symbol("x" + std::to_string(nest_.body.size()));
    Dim symbol = instr.symbol;
    push(std::move(instr));
    return symbol;
  }

  Elem select(const Conditions& conditions, Elem yes, Elem no) override {
    Instr instr{.kind = InstrKind::kSelect, .dtype = nest_.body[size_t(yes.id)].dtype};
    instr.conditions = conditions;
    instr.args = {yes.id, no.id};
    return push(std::move(instr));
  }

  Elem apply(const Op& op, DType dtype, std::initializer_list<Elem> args) override {
    SmallVector<int, 4> ids;
    for (auto& a : args) ids.push_back(a.id);
    Typing typing = op.pointwise->typing;
    DType result = typing == Typing::kCompare || typing == Typing::kBool ? kBool : dtype;
    return apply_pointwise(op, dtype, result, ids);
  }

  Elem apply_pointwise(const Op& op, DType operands, DType result, const SmallVector<int, 4>& args) {
    Instr instr{.kind = InstrKind::kApply, .dtype = result};
    instr.op = &op;
    instr.compute = pointwise_compute_dtype(op.pointwise->typing, operands, result);
    instr.args = args;
    return push(std::move(instr));
  }

  Elem number(const Dim& value) override {
    Instr instr{.kind = InstrKind::kIndex, .dtype = kInt64};
    instr.offset = value;
    return push(std::move(instr));
  }

  Elem constant(const Scalar& value) override {
    Instr instr{.kind = InstrKind::kConstant, .dtype = value.dtype()};
    instr.value = value;
    return push(std::move(instr));
  }

  Elem push(Instr&& instr) {
    nest_.body.push_back(std::move(instr));
    return {int(nest_.body.size()) - 1};
  }

 private:
  static bool always_holds(const Condition& c) {
    return c.value.is_number() && c.value.number() >= 0 && c.extent.is_number() && c.value.number() < c.extent.number() &&
           c.value.number() % c.multiple == 0;
  }

  LoopNest& nest_;
  std::span<const Layout> layouts_;
};

std::vector<Axis> make_axes(const Shape& extents, const char* prefix) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < extents.size(); ++d) axes.push_back({Dim::symbol(prefix + std::to_string(d)), extents[d]});
  return axes;
}

Index symbols_of(const std::vector<Axis>& axes) {
  Index index;
  for (auto& axis : axes) index.push_back(axis.symbol);
  return index;
}

Elem lower_pointwise(NestBuilder& b, const OpCall& call, const Type& result) {
  SmallVector<int, 4> args;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    // Operands align at the last dimension; a size of 1 is read again and again.
    auto& shape = call.inputs[i].shape;
    size_t shift = result.shape.size() - shape.size();
    Index at;
    for (size_t d = 0; d < shape.size(); ++d) at.push_back(shape[d].same_as(1) ? Dim(0) : b.i[d + shift]);
    args.push_back(b.load(int(i), at).id);
  }
  DType operands = call.inputs.empty() ? result.dtype : promote_operands(call.inputs);
  return b.apply_pointwise(call.op, operands, result.dtype, args);
}

// Parallel axes are those that some target coordinate follows exactly: no two of their points can collide.
void split_scatter_axes(LoopNest& nest, std::vector<Axis> axes, const Index& target) {
  for (auto& axis : axes) {
    bool independent = false;
    for (auto& t : target) independent = independent || t.same_as(axis.symbol);
    (independent ? nest.parallel : nest.sequential).push_back(axis);
  }
}

}  // namespace

LoopNest lower(const OpCall& call, const Type& result, std::span<const Layout> layouts) {
  LoopNest nest;
  nest.name = call.op.name;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    nest.operands.push_back({.dtype = call.inputs[i].dtype, .scalar = layouts[i].scalar});
  nest.output = int(nest.operands.size());
  nest.operands.push_back({.dtype = result.dtype, .output = true});
  const Layout& out = layouts[size_t(nest.output)];
  const Op& op = call.op;

  NestBuilder b(call, nest, layouts);
  if (op.kind == OpKind::kScatter) {
    auto axes = make_axes(op.domain(call), "i");
    b.i = symbols_of(axes);
    Index target = op.target(b);
    nest.kind = NestKind::kScatter;
    nest.combine = op.scatter_combine(call);
    nest.accumulator = accumulator_dtype(nest.combine, result.dtype, result.dtype);
    nest.value = op.element(b).id;
    nest.offset = offset_of(out, target);
    split_scatter_axes(nest, axes, target);
    return nest;
  }

  auto axes = make_axes(result.shape, "i");
  b.i = symbols_of(axes);
  nest.offset = offset_of(out, b.i);
  nest.combine = op.combine;
  switch (op.kind) {
    case OpKind::kPointwise:
      nest.parallel = axes;
      nest.value = lower_pointwise(b, call, result).id;
      break;
    case OpKind::kScan: {
      nest.kind = NestKind::kScan;
      size_t along = size_t(op.scan_dim(call));
      for (size_t d = 0; d < axes.size(); ++d) (d == along ? nest.sequential : nest.parallel).push_back(axes[d]);
      nest.value = op.element(b).id;
      nest.accumulator = accumulator_dtype(op.combine, result.dtype, result.dtype);
      break;
    }
    case OpKind::kView:
    case OpKind::kLoop:
    case OpKind::kReduce:
      nest.parallel = axes;
      if (op.combine == Combine::kNone) {
        nest.value = op.element(b).id;
        break;
      }
      nest.kind = NestKind::kReduce;
      nest.sequential = make_axes(op.reduction(call), "k");
      b.k = symbols_of(nest.sequential);
      nest.value = op.element(b).id;
      nest.accumulator = accumulator_dtype(op.combine, nest.body[size_t(nest.value)].dtype, result.dtype);
      if (op.payload) nest.payload = b.number(op.payload(b)).id;
      break;
    default: SINTER_INTERNAL_ASSERT(false, "{} has no loops to lower to", op.name);
  }
  return nest;
}

}  // namespace sinter
