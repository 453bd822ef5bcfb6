#pragma once
// How an op is written: one struct, from which `op_of<Struct>` makes the Op object. What is missing does not compile.
//
//   struct Tanh : Pointwise<Tanh> {
//     static constexpr auto name = "tanh";
//     SINTER_BODY((x), tanh(x))
//     static TensorList grad(const GradCall& c) { return c.each([&] { return c.grad() * (1 - c.out() * c.out()); }); }
//     static constexpr Tolerance tolerance{.ulp = 4};
//   };
//   Tensor tanh(TensorArg x) { return call<Tanh>({x}); }
#include <array>
#include <utility>

#include "sinter/graph/op.h"
#include "sinter/ops/scalar_math.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// In place of a grad function.
struct NotDifferentiable {
  std::string_view reason;
};

// Result types of the kinds that have a common rule.
std::vector<Type> infer_pointwise(const OpCall& call, Typing typing, std::optional<DType> attr_dtype);
// Shape of a reduction of operand 0 over `dims` (empty: all).
Shape reduced_shape(const OpCall& call, const IntList& dims, bool keepdim);

// --- kinds: bases that fill in what all ops of the kind share

template <class Self>
struct Pointwise {
  static constexpr OpKind kind = OpKind::kPointwise;
  using Attributes = NoAttrs;
  static constexpr Typing typing = Typing::kPromote;
  static std::vector<Type> infer(const OpCall& call) {
    if constexpr (requires { Self::result_dtype(call); })
      return infer_pointwise(call, Self::typing, Self::result_dtype(call));
    else
      return infer_pointwise(call, Self::typing, std::nullopt);
  }
};

struct View {
  static constexpr OpKind kind = OpKind::kView;
  static constexpr bool aliases = true;
};
struct Loop {
  static constexpr OpKind kind = OpKind::kLoop;
};

// Attributes of every whole-dimension reduction. No dims: all of them.
struct ReduceAttrs {
  IntList dims;
  bool keepdim = false;
  std::optional<DType> dtype = {};
  SINTER_FIELDS(dims, keepdim, dtype)
};
// dims as in the attributes, wrapped, sorted; all when none are named. Duplicates are an Error.
IntList reduced_dims(const OpCall& call, const IntList& dims);

template <class Self>
struct Reduce {
  static constexpr OpKind kind = OpKind::kReduce;
  using Attributes = ReduceAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<ReduceAttrs>();
    return {Type{Self::result_dtype(call), reduced_shape(call, a.dims, a.keepdim), call.inputs[0].device}};
  }
  static Shape reduction(const OpCall& call) {
    Shape extents;
    for (int64_t d : reduced_dims(call, call.as<ReduceAttrs>().dims)) extents.push_back(call.shape(0)[size_t(d)]);
    return extents;
  }
  // Operand coordinates: reduced ones from k, the others from i.
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.template as<ReduceAttrs>();
    auto dims = reduced_dims(b.call, a.dims);
    Index at;
    size_t next_i = 0, next_k = 0;
    for (int64_t d = 0; d < b.call.rank(0); ++d) {
      bool reduced = next_k < dims.size() && dims[next_k] == d;
      at.push_back(reduced ? b.k[next_k++] : b.i[next_i]);
      if (!reduced || a.keepdim) ++next_i;
    }
    return b.load(0, at);
  }
};

struct Scatter {
  static constexpr OpKind kind = OpKind::kScatter;
};
struct Scan {
  static constexpr OpKind kind = OpKind::kScan;
};
struct Opaque {
  static constexpr OpKind kind = OpKind::kOpaque;
};
struct Composite {
  static constexpr OpKind kind = OpKind::kComposite;
  static constexpr NotDifferentiable grad{"it is differentiated through its decomposition"};
};

// --- from the struct to the Op

namespace detail {

template <class T, class F, size_t... I>
F call_body(const F* args, std::index_sequence<I...>) {
  return T::body(args[I]...);
}
template <class T>
double body_on_double(const double* args) { return call_body<T>(args, std::make_index_sequence<T::arity>()); }
template <class T>
int64_t body_on_int(const int64_t* args) { return call_body<T>(args, std::make_index_sequence<T::arity>()); }

// An op whose last operands are parameters, which have no gradient, says how many operands are not: tensors = 1.
template <class T>
constexpr int tensors_of() {
  if constexpr (requires { T::tensors; })
    return T::tensors;
  else
    return T::arity;
}

// The functions of bodies that take a few instructions; whatever else a body calls takes tens.
inline constexpr std::string_view kCheapFunctions[] = {
    "abs", "bit_and", "bit_not", "bit_or", "bit_xor", "ceil", "copysign", "eq", "floor", "floor_divide", "fmod", "ge",
    "gt", "hypot", "le", "lit", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum",
    "ne", "reciprocal", "remainder", "round", "rsqrt", "select", "shift_left", "shift_right", "sign", "sqrt",
    "square", "trunc", "trunc_divide"};

constexpr bool is_expensive(std::string_view body) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (size_t at = 0; at < body.size(); ++at) {
    if (!is_letter(body[at])) continue;
    size_t begin = at;
    while (at < body.size() && is_letter(body[at])) ++at;
    if (at == body.size() || body[at] != '(') continue;
    bool cheap = false;
    for (auto& name : kCheapFunctions) cheap = cheap || body.substr(begin, at - begin) == name;
    if (!cheap) return true;
  }
  return false;
}

template <class T>
inline constexpr PointwiseBody pointwise_body{.typing = T::typing,
                                              .params = T::params,
                                              .text = T::text,
                                              .arity = T::arity,
                                              .tensors = tensors_of<T>(),
                                              .expensive = is_expensive(T::text),
                                              .on_double = body_on_double<T>,
                                              .on_int = body_on_int<T>};

template <class T>
constexpr Op make_op() {
  Op op;
  op.name = T::name;
  op.kind = T::kind;
  op.parse = [](const FieldTexts& fields) { return parse_attrs<typename T::Attributes>(T::name, fields); };
  op.infer = T::infer;
  if constexpr (requires { T::inputs; }) op.inputs = T::inputs;
  if constexpr (requires { T::random; }) op.random = T::random;
  if constexpr (requires { T::aliases; }) op.aliases = T::aliases;
  if constexpr (requires(const GradCall& c) { T::grad(c); })
    op.grad = T::grad;
  else
    op.no_grad_reason = T::grad.reason;
  if constexpr (T::kind == OpKind::kPointwise) {
    op.pointwise = &pointwise_body<T>;
    op.inputs = T::arity;
  }
  if constexpr (T::kind == OpKind::kView || T::kind == OpKind::kLoop || T::kind == OpKind::kReduce ||
                T::kind == OpKind::kScatter || T::kind == OpKind::kScan)
    op.element = T::element;
  if constexpr (requires { T::alias; }) op.alias = T::alias;
  if constexpr (requires { T::combine; }) {
    op.combine = T::combine;
    if constexpr (T::kind != OpKind::kScan) op.reduction = T::reduction;
    if constexpr (T::combine == Combine::kArgMax || T::combine == Combine::kArgMin) op.payload = T::payload;
  }
  if constexpr (T::kind == OpKind::kScatter) {
    op.domain = T::domain;
    op.target = T::target;
    op.scatter_combine = T::scatter_combine;
  }
  if constexpr (T::kind == OpKind::kScan) op.scan_dim = T::scan_dim;
  if constexpr (T::kind == OpKind::kOpaque) {
    op.interpret = T::interpret;
    op.run_cpu = T::run_cpu;
  } else if constexpr (requires { T::run_cpu; }) {
    op.run_cpu = T::run_cpu;
  }
  if constexpr (requires { T::reads_host_memory; }) op.reads_host_memory = T::reads_host_memory;
  if constexpr (T::kind == OpKind::kComposite) op.decompose = T::decompose;
  if constexpr (requires { T::on_complex; }) op.on_complex = T::on_complex;
  if constexpr (requires { T::sees_complex; }) op.sees_complex = T::sees_complex;
  if constexpr (requires { T::autocast; }) op.autocast = T::autocast;
  if constexpr (requires { T::tolerance; }) op.tolerance = T::tolerance;
  if constexpr (requires { T::domain_of_inputs; }) op.domain_of_inputs = T::domain_of_inputs;
  // Pointwise ops are sampled by their arity; every other op says what it is tested on.
  if constexpr (T::kind != OpKind::kPointwise) op.samples = T::samples;
  return op;
}

}  // namespace detail

template <class T>
inline constexpr Op op_of = detail::make_op<T>();

// --- calling

// Runs or records the op. Errors thrown meanwhile carry the position of the first operand's call.
Tensor call_op(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Where& where);
TensorList call_op_many(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Where& where);
void call_op_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out, const Where& where);

template <class T>
Tensor call(std::initializer_list<TensorArg> inputs, const Attrs& attrs = {}) {
  return call_op(op_of<T>, {inputs.begin(), inputs.size()}, attrs, inputs.begin()->where());
}
template <class T>
TensorList call_many(std::initializer_list<TensorArg> inputs, const Attrs& attrs = {}) {
  return call_op_many(op_of<T>, {inputs.begin(), inputs.size()}, attrs, inputs.begin()->where());
}

}  // namespace sinter

// A pointwise body: compiled here for double and int64, and kept as text for generated code. Only the functions of
// scalar_math.h, lit(0.5) for constants, select(c, a, b) for branches.
#define SINTER_BODY(parameters, ...)                                                     \
  static constexpr std::string_view params = SINTER_PARAM_TEXT parameters;               \
  static constexpr std::string_view text = #__VA_ARGS__;                                 \
  static constexpr int arity = SINTER_COUNT parameters;                                  \
  template <class T>                                                                     \
  static T body(SINTER_TYPED parameters) {                                               \
    using namespace scalar_math;                                                         \
    [[maybe_unused]] constexpr auto lit = [](auto v) { return T(v); };                   \
    return T(__VA_ARGS__);                                                               \
  }
#define SINTER_PARAM_TEXT(...) #__VA_ARGS__
#define SINTER_COUNT(...) SINTER_COUNT_(__VA_ARGS__, 5, 4, 3, 2, 1)
#define SINTER_COUNT_(a, b, c, d, e, n, ...) n
#define SINTER_TYPED(...) SINTER_TYPED_PICK(__VA_ARGS__, 5, 4, 3, 2, 1)(__VA_ARGS__)
#define SINTER_TYPED_PICK(a, b, c, d, e, n, ...) SINTER_TYPED_##n
#define SINTER_TYPED_1(a) [[maybe_unused]] T a
#define SINTER_TYPED_2(a, b) SINTER_TYPED_1(a), SINTER_TYPED_1(b)
#define SINTER_TYPED_3(a, b, c) SINTER_TYPED_2(a, b), SINTER_TYPED_1(c)
#define SINTER_TYPED_4(a, b, c, d) SINTER_TYPED_3(a, b, c), SINTER_TYPED_1(d)
#define SINTER_TYPED_5(a, b, c, d, e) SINTER_TYPED_4(a, b, c, d), SINTER_TYPED_1(e)

// The samples of an op that is not pointwise: each "operands | attributes". `x[2, 3]` is of the dtype under test,
// `i64[4]<3` holds integers in [0, 3), `bool[2]` is a mask, a plain number is a scalar operand.
#define SINTER_SAMPLES(...)                                             \
  static constexpr std::string_view sample_list[] = {__VA_ARGS__};     \
  static constexpr std::span<const std::string_view> samples = sample_list;
