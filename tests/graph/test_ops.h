#pragma once
// One small op of every kind, so that the tests of the graph need no op of the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "sinter/graph/graph.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/define.h"
#include "tests/support/error_of.h"

namespace sinter::test_ops {

#define TEST_NO_GRAD static constexpr NotDifferentiable grad{"a test op"};
#define TEST_NO_SAMPLES static constexpr std::span<const std::string_view> samples{};

struct Add : Pointwise<Add> {
  static constexpr auto name = "t_add";
  SINTER_BODY((x, y), x + y)
  TEST_NO_GRAD
};
struct Divide : Pointwise<Divide> {
  static constexpr auto name = "t_divide";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x, y), x / select(eq(y, lit(0)), lit(1), y))
  TEST_NO_GRAD
};
struct Greater : Pointwise<Greater> {
  static constexpr auto name = "t_greater";
  static constexpr Typing typing = Typing::kCompare;
  SINTER_BODY((x, y), gt(x, y))
  TEST_NO_GRAD
};
struct And : Pointwise<And> {
  static constexpr auto name = "t_and";
  static constexpr Typing typing = Typing::kBool;
  SINTER_BODY((x, y), logical_and(x, y))
  TEST_NO_GRAD
};
struct BitNot : Pointwise<BitNot> {
  static constexpr auto name = "t_bit_not";
  static constexpr Typing typing = Typing::kInteger;
  SINTER_BODY((x), bit_not(x))
  TEST_NO_GRAD
};
struct Choose : Pointwise<Choose> {
  static constexpr auto name = "t_choose";
  static constexpr Typing typing = Typing::kSelect;
  SINTER_BODY((c, x, y), select(c, x, y))
  TEST_NO_GRAD
};
struct CastAttrs {
  DType dtype = kFloat32;
  SINTER_FIELDS(dtype)
};
struct Cast : Pointwise<Cast> {
  static constexpr auto name = "t_cast";
  using Attributes = CastAttrs;
  static constexpr Typing typing = Typing::kAttr;
  static DType result_dtype(const OpCall& call) { return call.as<CastAttrs>().dtype; }
  SINTER_BODY((x), x)
  TEST_NO_GRAD
};
// Its "random" bits are the operand read as a double.
struct Draw : Pointwise<Draw> {
  static constexpr auto name = "t_draw";
  static constexpr Typing typing = Typing::kRandom;
  static constexpr bool random = true;
  SINTER_BODY((seed), seed)
  TEST_NO_GRAD
};

struct Sum : Reduce<Sum> {
  static constexpr auto name = "t_sum";
  static constexpr Combine combine = Combine::kSum;
  static DType result_dtype(const OpCall& call) {
    DType d = call.inputs[0].dtype;
    return call.as<ReduceAttrs>().dtype.value_or(is_floating(d) ? d : kInt64);
  }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct Max : Reduce<Max> {
  static constexpr auto name = "t_max";
  static constexpr Combine combine = Combine::kMax;
  static DType result_dtype(const OpCall& call) { return call.inputs[0].dtype; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct Any : Reduce<Any> {
  static constexpr auto name = "t_any";
  static constexpr Combine combine = Combine::kAny;
  static DType result_dtype(const OpCall&) { return kBool; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct ArgMin : Reduce<ArgMin> {
  static constexpr auto name = "t_argmin";
  static constexpr Combine combine = Combine::kArgMin;
  static DType result_dtype(const OpCall&) { return kInt64; }
  static Dim payload(const ElementBuilder& b) { return b.k[0]; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};

struct Transpose : View {
  static constexpr auto name = "t_transpose";
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.rank(0) == 2, "t_transpose: takes a matrix, not {}", call.shape(0));
    return {Type{call.inputs[0].dtype, {call.shape(0)[1], call.shape(0)[0]}, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) { return b.load(0, {b.i[1], b.i[0]}); }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct ShapeAttrs {
  Shape shape;
  std::optional<Dim> start;
  SINTER_FIELDS(shape, start)
};
// Row-major reshape.
struct Reshape : Loop {
  static constexpr auto name = "t_reshape";
  using Attributes = ShapeAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& shape = call.as<ShapeAttrs>().shape;
    check(shape.numel() == call.shape(0).numel(), "t_reshape: {} does not fit {}", call.shape(0), shape);
    return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    Dim flat = 0;
    auto& to = b.call.as<ShapeAttrs>().shape;
    auto& from = b.call.shape(0);
    for (size_t d = 0; d < to.size(); ++d) flat = flat * to[d] + b.i[d];
    Index at(from.size());
    for (size_t d = from.size(); d-- > 0; flat = flat / from[d]) at[d] = flat % from[d];
    return b.load(0, at);
  }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct PadAttrs {
  int64_t before = 0, after = 0;
  Scalar value = 0.0;
  std::string mode = "constant";
  SINTER_FIELDS(before, after, value, mode)
};
struct Pad : Loop {
  static constexpr auto name = "t_pad";
  using Attributes = PadAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<PadAttrs>();
    return {Type{call.inputs[0].dtype, {call.shape(0)[0] + a.before + a.after}, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<PadAttrs>();
    Dim at = b.i[0] - a.before;
    return b.load_if({{at, b.call.shape(0)[0]}}, 0, {at}, a.value);
  }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct Take : Loop {
  static constexpr auto name = "t_take";
  static constexpr int inputs = 2;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{call.inputs[0].dtype, call.shape(1), call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) { return b.load(0, {b.load_index(1, b.i, b.call.shape(0)[0])}); }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct Multiply : Pointwise<Multiply> {
  static constexpr auto name = "t_multiply";
  SINTER_BODY((x, y), x * y)
  TEST_NO_GRAD
};
struct Matmul : Loop {
  static constexpr auto name = "t_matmul";
  static constexpr int inputs = 2;
  static constexpr Combine combine = Combine::kSum;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.rank(0) == 2 && call.rank(1) == 2 && call.shape(0)[1] == call.shape(1)[0],
          "t_matmul: shapes {} and {} do not fit", call.shape(0), call.shape(1));
    return {Type{call.inputs[0].dtype, {call.shape(0)[0], call.shape(1)[1]}, call.inputs[0].device}};
  }
  static Shape reduction(const OpCall& call) { return {call.shape(0)[1]}; }
  static Elem element(ElementBuilder& b) {
    return b.apply(op_of<Multiply>, b.call.inputs[0].dtype, {b.load(0, {b.i[0], b.k[0]}), b.load(1, {b.k[0], b.i[1]})});
  }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct ScatterAdd : Scatter {
  static constexpr auto name = "t_scatter_add";
  static constexpr int inputs = 3;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) { return {call.inputs[0]}; }
  static Shape domain(const OpCall& call) { return call.shape(1); }
  static Index target(ElementBuilder& b) { return {b.load_index(1, b.i, b.call.shape(0)[0])}; }
  static Elem element(ElementBuilder& b) { return b.load(2, b.i); }
  static Combine scatter_combine(const OpCall&) { return Combine::kSum; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
struct DimAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};
struct Cumsum : Scan {
  static constexpr auto name = "t_cumsum";
  static constexpr Combine combine = Combine::kSum;
  using Attributes = DimAttrs;
  static std::vector<Type> infer(const OpCall& call) { return {call.inputs[0]}; }
  static int64_t scan_dim(const OpCall& call) { return call.as<DimAttrs>().dim; }
  static Elem element(ElementBuilder& b) { return b.load(0, b.i); }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
// Smallest and largest of a vector: two results.
struct Extremes : Opaque {
  static constexpr auto name = "t_extremes";
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    Type t{call.inputs[0].dtype, {}, call.inputs[0].device};
    return {t, t};
  }
  static void interpret(InterpretCall& c) {
    auto& x = c.inputs[0]->f;
    c.outputs[0].f[0] = *std::min_element(x.begin(), x.end());
    c.outputs[1].f[0] = *std::max_element(x.begin(), x.end());
  }
  static TensorList run_cpu(std::span<const Tensor>, const Attrs&) { return {}; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
// Positions of the elements that are not zero: as many as the data says.
struct Positions : Opaque {
  static constexpr auto name = "t_positions";
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{kInt64, {Dim::symbol("u0")}, call.inputs[0].device}};
  }
  static void interpret(InterpretCall& c) {
    auto& out = c.outputs[0];
    for (int64_t n = 0; n < c.inputs[0]->numel(); ++n)
      if (c.inputs[0]->number(n) != 0) out.i.push_back(n);
    out.sizes = {int64_t(out.i.size())};
  }
  static TensorList run_cpu(std::span<const Tensor>, const Attrs&) { return {}; }
  TEST_NO_GRAD
  TEST_NO_SAMPLES
};
// x + y + 1.
struct AddOne : Composite {
  static constexpr auto name = "t_add_one";
  static constexpr int inputs = 2;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{promote_operands(call.inputs), broadcast_shapes(name, call.shape(0), call.shape(1)),
                 call.inputs[0].device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs&) {
    return {call<Add>({call<Add>({inputs[0], inputs[1]}), 1})};
  }
  TEST_NO_SAMPLES
};

inline const Op* find(std::string_view name) {
  static const Op* const all[] = {
      &op_of<Add>,       &op_of<Divide>,   &op_of<Greater>,   &op_of<And>,    &op_of<BitNot>,  &op_of<Choose>,
      &op_of<Cast>,      &op_of<Draw>,     &op_of<Sum>,       &op_of<Max>,    &op_of<Any>,     &op_of<ArgMin>,
      &op_of<Transpose>, &op_of<Reshape>,  &op_of<Pad>,       &op_of<Take>,   &op_of<Matmul>,  &op_of<ScatterAdd>,
      &op_of<Cumsum>,    &op_of<Extremes>, &op_of<Positions>, &op_of<AddOne>, &op_of<Multiply>};
  for (auto* op : all)
    if (op->name == name) return op;
  return nullptr;
}

inline Graph parse(std::string_view text) { return Graph::parse(text, find); }

inline Array floats(const IntList& sizes, std::vector<double> values, DType dtype = kFloat32) {
  Array out(dtype, sizes);
  EXPECT_EQ(out.f.size(), values.size());
  out.f = std::move(values);
  return out;
}
inline Array integers(const IntList& sizes, std::vector<int64_t> values, DType dtype = kInt64) {
  Array out(dtype, sizes);
  EXPECT_EQ(out.i.size(), values.size());
  out.i = std::move(values);
  return out;
}

}  // namespace sinter::test_ops
