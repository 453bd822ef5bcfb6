#include "sinter/loops/lower.h"

#include "sinter/base/error.h"
#include "sinter/loops/instr_builder.h"

namespace sinter {

Dim Layout::offset_of(const Index& at) const {
  SINTER_INTERNAL_ASSERT(at.size() == strides.size(), "{} coordinates for {} strides", at.size(), strides.size());
  Dim offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

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
    case Combine::kAll:
      return kBool;
    case Combine::kArgMax:
    case Combine::kArgMin:
      return value == kBool ? kInt32 : compute_dtype(value);
    default:
      return result == kBool ? kInt32 : compute_dtype(result);
  }
}

namespace {

// The definition of one op, whose operands lie in memory.
class OpBuilder final : public InstrBuilder {
 public:
  OpBuilder(const OpCall& call, Sweep& sweep, std::span<const Layout> layouts)
      : InstrBuilder(call, sweep), layouts_(layouts) {}

  Elem load(int operand, const Index& at) override { return load_if({}, operand, at, 0); }

  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override {
    Instr instr{
        .kind = InstrKind::kLoad, .dtype = call.inputs[size_t(operand)].dtype, .operand = operand, .value = otherwise};
    if (!layouts_[size_t(operand)].scalar) instr.offset = layouts_[size_t(operand)].offset_of(at);
    for (auto& c : inside)
      if (decided(c) != true) instr.conditions.push_back(c);
    return {add_instr(sweep_, std::move(instr))};
  }

  Dim load_index(int operand, const Index& at, const Dim& extent) override {
    Dim symbol = next_index();
    add_instr(sweep_, {.kind = InstrKind::kLoadIndex,
                       .dtype = kInt64,
                       .operand = operand,
                       .offset = layouts_[size_t(operand)].offset_of(at),
                       .extent = extent,
                       .symbol = symbol});
    return symbol;
  }

  Elem select(const Conditions& conditions, Elem yes, Elem no) override {
    return {add_select(sweep_, conditions, yes.id, no.id)};
  }

  // The element of a pointwise op.
  int pointwise(const Type& result) {
    SmallVector<int, 4> args;
    for (size_t operand = 0; operand < call.inputs.size(); ++operand) {
      // Operands align at the last dimension; a size of 1 is read again and again.
      auto& shape = call.inputs[operand].shape;
      size_t shift = result.shape.size() - shape.size();
      Index at;
      for (size_t d = 0; d < shape.size(); ++d) at.push_back(shape[d].same_as(1) ? Dim(0) : i[d + shift]);
      args.push_back(load(int(operand), at).id);
    }
    DType operands = call.inputs.empty() ? result.dtype : promote_operands(call.inputs);
    return add_apply(sweep_, call.op, operands, result.dtype, std::move(args));
  }

 private:
  std::span<const Layout> layouts_;
};

// One op's nest in the making: its first sweep, and the one result.
class OpLowering {
 public:
  OpLowering(const OpCall& call, const Type& result, std::span<const Layout> layouts)
      : call_(call), op_(call.op), result_(result), out_(layouts.back()), builder_(call, sweep_, layouts) {
    nest_.name = op_.name;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      nest_.operands.push_back({.dtype = call.inputs[i].dtype, .scalar = layouts[i].scalar});
    output_ = int(nest_.operands.size());
    nest_.operands.push_back({.dtype = result.dtype, .output = true});
  }

  LoopNest lower(const Parameters& named) {
    switch (op_.kind) {
      case OpKind::kScatter:
        scatter();
        break;
      case OpKind::kScan:
        scan();
        break;
      case OpKind::kPointwise:
      case OpKind::kView:
      case OpKind::kLoop:
      case OpKind::kReduce:
        op_.combine == Combine::kNone ? map() : reduction();
        break;
      default:
        SINTER_INTERNAL_ASSERT(false, "{} has no loops to lower to", op_.name);
    }
    nest_.take_parameters(named);
    return std::move(nest_);
  }

 private:
  // Axes that count the dimensions of the result, or of a scatter's domain.
  std::vector<Axis> domain(const Shape& extents) {
    std::vector<Axis> axes;
    for (size_t d = 0; d < extents.size(); ++d) {
      axes.push_back({Dim::symbol("i" + std::to_string(d)), extents[d], int(d)});
      builder_.i.push_back(axes[d].symbol);
    }
    return axes;
  }

  void map() {
    nest_.rows = domain(result_.shape);
    if (nest_.rows.empty()) {
      sweep_.once = true;
    } else {
      nest_.inner.push_back(nest_.rows.back());
      nest_.rows.pop_back();
    }
    int value = op_.kind == OpKind::kPointwise ? builder_.pointwise(result_) : op_.element(builder_).id;
    sweep_.stores.push_back({output_, out_.offset_of(builder_.i), value});
    nest_.sweeps.push_back(std::move(sweep_));
  }

  void reduction() {
    nest_.rows = domain(result_.shape);
    const Shape extents = op_.reduction(call_);
    for (size_t d = 0; d < extents.size(); ++d) {
      nest_.inner.push_back({Dim::symbol("k" + std::to_string(d)), extents[d]});
      builder_.k.push_back(nest_.inner[d].symbol);
    }
    int value = op_.element(builder_).id;
    RowReduction r{0, value, op_.combine,
                   accumulator_dtype(op_.combine, sweep_.body[size_t(value)].dtype, result_.dtype), result_.dtype};
    if (op_.payload) r.payload = builder_.number(op_.payload(builder_)).id;
    sweep_.reductions.push_back(r);
    nest_.sweeps.push_back(std::move(sweep_));
    store_row(nest_, r, {output_, out_.offset_of(builder_.i), 0});
  }

  void scan() {
    size_t along = size_t(op_.scan_dim(call_));
    for (auto& axis : domain(result_.shape)) (size_t(axis.dim) == along ? nest_.inner : nest_.rows).push_back(axis);
    int value = op_.element(builder_).id;
    sweep_.reductions.push_back(
        {0, value, op_.combine, accumulator_dtype(op_.combine, result_.dtype, result_.dtype), result_.dtype});
    sweep_.stores.push_back({.operand = output_, .offset = out_.offset_of(builder_.i), .value = -1, .running = 0});
    nest_.sweeps.push_back(std::move(sweep_));
  }

  // Rows are the axes that some target coordinate follows exactly: no two of their points can collide.
  void scatter() {
    auto axes = domain(op_.domain(call_));
    Index target = op_.target(builder_);
    Combine combine = op_.scatter_combine(call_);
    int value = op_.element(builder_).id;
    sweep_.stores.push_back({.operand = output_,
                             .offset = out_.offset_of(target),
                             .value = value,
                             .combine = combine,
                             .accumulator = accumulator_dtype(combine, result_.dtype, result_.dtype)});
    for (auto& axis : axes) {
      bool independent = false;
      for (auto& t : target) independent = independent || t.same_as(axis.symbol);
      (independent ? nest_.rows : nest_.inner).push_back(axis);
    }
    nest_.sweeps.push_back(std::move(sweep_));
  }

  const OpCall& call_;
  const Op& op_;
  const Type& result_;
  const Layout& out_;
  LoopNest nest_;
  Sweep sweep_;
  int output_;
  OpBuilder builder_;
};

}  // namespace

LoopNest lower(const OpCall& call, const Type& result, std::span<const Layout> layouts, const Parameters& named) {
  return OpLowering(call, result, layouts).lower(named);
}

}  // namespace sinter
