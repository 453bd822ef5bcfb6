#include "sinter/ops/pointwise.h"

#include <numbers>

#include "sinter/ops/complex_math.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/real_function.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/to_device.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// A real function (ops/real_function.h) and what calls it.
#define SINTER_REAL_FUNCTION(Struct, function, derivative, ...)                                                        \
  SINTER_REAL_OP(Struct, #function, function, derivative, static constexpr Tolerance tolerance{.ulp = 4}; __VA_ARGS__) \
  }                                                                                                                    \
  Tensor function(const TensorArg& x) { return call<Struct>({x}); }                                                    \
  namespace {

#define SINTER_WIDE_ON_GPU static constexpr auto autocast = Autocast::kWideOnGpu;
#define SINTER_COMPLEX(function) static constexpr auto on_complex = complex_math::of_one<complex_math::function>;
#define SINTER_DRAW_FROM(low, high) static constexpr Domain domain_of_inputs{low, high};

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

SINTER_REAL_FUNCTION(Acos, acos, -rsqrt(1 - square(x)), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(-1, 1) SINTER_COMPLEX(acos))
SINTER_REAL_FUNCTION(Acosh, acosh, rsqrt(square(x) - 1), SINTER_DRAW_FROM(1, 5) SINTER_COMPLEX(acosh))
SINTER_REAL_FUNCTION(Asin, asin, rsqrt(1 - square(x)), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(-1, 1) SINTER_COMPLEX(asin))
SINTER_REAL_FUNCTION(Asinh, asinh, rsqrt(square(x) + 1), SINTER_COMPLEX(asinh))
SINTER_REAL_FUNCTION(Atan, atan, reciprocal(square(x) + 1), SINTER_COMPLEX(atan))
SINTER_REAL_FUNCTION(Atanh, atanh, reciprocal(1 - square(x)), SINTER_DRAW_FROM(-0.95, 0.95) SINTER_COMPLEX(atanh))
SINTER_REAL_FUNCTION(Cos, cos, -sin(x), SINTER_COMPLEX(cos))
SINTER_REAL_FUNCTION(Cosh, cosh, sinh(x), SINTER_WIDE_ON_GPU SINTER_COMPLEX(cosh))
SINTER_REAL_FUNCTION(Erf, erf, exp(-square(x)) * kTwoOverSqrtPi)
SINTER_REAL_FUNCTION(Erfc, erfc, exp(-square(x)) * -kTwoOverSqrtPi)
SINTER_REAL_FUNCTION(Exp, exp, y, SINTER_WIDE_ON_GPU SINTER_COMPLEX(exp))
SINTER_REAL_FUNCTION(Exp2, exp2, y * kLn2, SINTER_COMPLEX(exp2))
SINTER_REAL_FUNCTION(Expm1, expm1, y + 1, SINTER_WIDE_ON_GPU SINTER_COMPLEX(expm1))
SINTER_REAL_FUNCTION(Log, log, reciprocal(x), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(0.05, 5) SINTER_COMPLEX(log))
SINTER_REAL_FUNCTION(Log10, log10, reciprocal(x * kLn10), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(0.05, 5) SINTER_COMPLEX(log10))
SINTER_REAL_FUNCTION(Log1p, log1p, reciprocal(x + 1), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(-0.9, 5) SINTER_COMPLEX(log1p))
SINTER_REAL_FUNCTION(Log2, log2, reciprocal(x * kLn2), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(0.05, 5) SINTER_COMPLEX(log2))
SINTER_REAL_FUNCTION(Reciprocal, reciprocal, -square(y), SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(0.1, 3) SINTER_COMPLEX(reciprocal))
SINTER_REAL_FUNCTION(Rsqrt, rsqrt, y * y * y * -0.5, SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(0.05, 5) SINTER_COMPLEX(rsqrt))
SINTER_REAL_FUNCTION(Sigmoid, sigmoid, (1 - y) * y, SINTER_COMPLEX(sigmoid))
SINTER_REAL_FUNCTION(Sin, sin, cos(x), SINTER_COMPLEX(sin))
SINTER_REAL_FUNCTION(Sinh, sinh, cosh(x), SINTER_WIDE_ON_GPU SINTER_COMPLEX(sinh))
SINTER_REAL_FUNCTION(Sqrt, sqrt, reciprocal(y * 2), SINTER_DRAW_FROM(0.05, 5) SINTER_COMPLEX(sqrt))
SINTER_REAL_FUNCTION(Tan, tan, square(y) + 1, SINTER_WIDE_ON_GPU SINTER_DRAW_FROM(-1.4, 1.4) SINTER_COMPLEX(tan))
SINTER_REAL_FUNCTION(Tanh, tanh, 1 - square(y), SINTER_COMPLEX(tanh))

#undef SINTER_REAL_FUNCTION
#undef SINTER_COMPLEX
#undef SINTER_DRAW_FROM

// Rounding: integers are their own result, so the op itself takes floats only. Flat almost everywhere.
template <class Self>
struct Rounding : Pointwise<Self> {
  static std::vector<Type> infer(const OpCall& call) {
    check(is_floating(call.inputs[0].dtype), "{}: expected a floating tensor, got {}", call.name(), call.inputs[0]);
    return infer_pointwise(call, Typing::kPromote, std::nullopt);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return zeros_like(c.grad()); });
  }
};

template <class T>
Tensor rounded(const TensorArg& x) {
  return is_differentiable(x.dtype()) ? call<T>({x}) : clone(x);
}

struct Ceil : Rounding<Ceil> {
  static constexpr auto name = "ceil";
  SINTER_BODY((x), ceil(x))
};
struct Floor : Rounding<Floor> {
  static constexpr auto name = "floor";
  SINTER_BODY((x), floor(x))
};
struct Round : Rounding<Round> {
  static constexpr auto name = "round";
  SINTER_BODY((x), round(x))
};
struct Trunc : Rounding<Trunc> {
  static constexpr auto name = "trunc";
  SINTER_BODY((x), trunc(x))
};

struct Abs : Pointwise<Abs> {
  static constexpr auto name = "abs";
  SINTER_BODY((x), abs(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * sign(c[0]); });
  }
  static TensorList on_complex(const ComplexCall& c) {
    const Parts x = c.parts(0);
    return {modulus(x.re, x.im)};
  }
};

struct Neg : Pointwise<Neg> {
  static constexpr auto name = "neg";
  SINTER_BODY((x), -x)
  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs[0].dtype != kBool, "neg: bool has no negative; use logical_not");
    return infer_pointwise(call, Typing::kPromote, std::nullopt);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return -c.grad(); });
  }
  static constexpr auto on_complex = by_parts<>;
};

struct Sign : Pointwise<Sign> {
  static constexpr auto name = "sign";
  SINTER_BODY((x), sign(x))
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return zeros_like(c.grad()); });
  }
  static constexpr auto on_complex = complex_math::of_one<complex_math::sign>;
};

struct Square : Pointwise<Square> {
  static constexpr auto name = "square";
  SINTER_BODY((x), square(x))
  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs[0].dtype != kBool, "square: not defined for bool");
    return infer_pointwise(call, Typing::kPromote, std::nullopt);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad() * (c[0] * 2); });
  }
  static constexpr auto on_complex = complex_math::of_one<complex_math::square>;
};

struct LogicalNot : Pointwise<LogicalNot> {
  static constexpr auto name = "logical_not";
  static constexpr Typing typing = Typing::kBool;
  SINTER_BODY((x), logical_not(x))
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) { return {logical_not(complex_math::truth(c.parts(0)))}; }
};

struct BitwiseNot : Pointwise<BitwiseNot> {
  static constexpr auto name = "bitwise_not";
  static constexpr Typing typing = Typing::kInteger;
  SINTER_BODY((x), bit_not(x))
  static constexpr NotDifferentiable grad{"it works on integers"};
};

// The classifications are written so that they hold for integers too: inf - inf and NaN are not equal to themselves.
struct IsNan : Pointwise<IsNan> {
  static constexpr auto name = "isnan";
  static constexpr Typing typing = Typing::kCompare;
  SINTER_BODY((x), ne(x, x))
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) {
    const Parts x = c.parts(0);
    return {isnan(x.re) | isnan(x.im)};
  }
};
struct IsInf : Pointwise<IsInf> {
  static constexpr auto name = "isinf";
  static constexpr Typing typing = Typing::kCompare;
  SINTER_BODY((x), logical_and(eq(x, x), ne(x - x, x - x)))
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) {
    const Parts x = c.parts(0);
    return {isinf(x.re) | isinf(x.im)};
  }
};
struct IsFinite : Pointwise<IsFinite> {
  static constexpr auto name = "isfinite";
  static constexpr Typing typing = Typing::kCompare;
  SINTER_BODY((x), eq(x - x, x - x))
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) {
    const Parts x = c.parts(0);
    return {isfinite(x.re) & isfinite(x.im)};
  }
};

struct ToCopyAttrs {
  DType dtype = kFloat32;
  SINTER_FIELDS(dtype)
};
struct ToCopy : Pointwise<ToCopy> {
  static constexpr auto name = "_to_copy";
  using Attributes = ToCopyAttrs;
  static constexpr Typing typing = Typing::kAttr;
  SINTER_BODY((x), x)
  static DType result_dtype(const OpCall& call) { return call.as<ToCopyAttrs>().dtype; }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return to(c.grad(), c[0].dtype()); });
  }
  // A real number drops the imaginary part; a truth value does not.
  static TensorList on_complex(const ComplexCall& c) {
    const DType dtype = c.as<ToCopyAttrs>().dtype, part = real_dtype(dtype);
    if (dtype == kBool) return {complex_math::truth(c.parts(0))};
    if (!is_complex(dtype)) return {to(real(c[0]), dtype)};
    if (!c.is_complex(0)) return {joined(to(c[0], part), 0.0)};
    return {look_at_pairs(to(view_as_real(c[0]), part))};
  }
};

struct Clone : Pointwise<Clone> {
  static constexpr auto name = "clone";
  SINTER_BODY((x), x)
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return c.grad(); });
  }
  static constexpr auto on_complex = by_parts<>;
};

}  // namespace

Tensor ceil(const TensorArg& x) { return rounded<Ceil>(x); }
Tensor floor(const TensorArg& x) { return rounded<Floor>(x); }
Tensor round(const TensorArg& x) { return rounded<Round>(x); }
Tensor trunc(const TensorArg& x) { return rounded<Trunc>(x); }
Tensor abs(const TensorArg& x) { return call<Abs>({x}); }
Tensor neg(const TensorArg& x) { return call<Neg>({x}); }
Tensor sign(const TensorArg& x) { return call<Sign>({x}); }
// A product of truth values counts, as PyTorch's does.
Tensor square(const TensorArg& x) {
  UserPosition here(x.where());
  return x.dtype() == kBool ? call<Square>({to(x, kInt64)}) : call<Square>({x});
}
Tensor logical_not(const TensorArg& x) { return call<LogicalNot>({x}); }
Tensor bitwise_not(const TensorArg& x) { return call<BitwiseNot>({x}); }
Tensor isnan(const TensorArg& x) { return call<IsNan>({x}); }
Tensor isinf(const TensorArg& x) { return call<IsInf>({x}); }
Tensor isfinite(const TensorArg& x) { return call<IsFinite>({x}); }
Tensor to(const TensorArg& x, DType dtype) {
  UserPosition here(x.where());
  if (!x.is_scalar() && x.dtype() == dtype) return x.tensor();
  if (is_complex(dtype)) return call_on_complex(op_of<ToCopy>, {&x, 1}, ToCopyAttrs{dtype})[0];
  return call<ToCopy>({x}, ToCopyAttrs{dtype});
}

// --- methods

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy, Where where) const {
  UserPosition here(where);
  const TensorOptions wanted = options.over(this->options());
  Tensor there = wanted.device_ == device() ? *this : to_device({*this, where}, wanted.device_, non_blocking);
  Tensor out = sinter::to({there, where}, wanted.dtype_);
  return copy && out.is_same(*this) ? out.clone(MemoryFormat::kPreserve, where) : out;
}

const Tensor& Tensor::copy_(const TensorArg& source, bool non_blocking) const {
  UserPosition here(source.where());
  if (source.is_scalar() || source.dim() == 0) return fill_(source);
  Tensor from = to_device(source, device(), non_blocking);
  const Shape sizes = this->sizes();
  check(from.dim() <= dim(), "copy_: a source of shape {} does not fit a tensor of shape {}", from.sizes(), sizes);
  for (int64_t d = 1; d <= from.dim(); ++d)
    check(from.size(-d).same_as(1) || from.size(-d) == size(-d) || from.size(-d) == 1,
          "copy_: a source of shape {} does not fit a tensor of shape {}", from.sizes(), sizes);
  // What was written over keeps its history, and gets a gradient of zero: a captured program has to show it.
  if (Tracer::current() && requires_grad() && !is_leaf() && !from.requires_grad())
    from = sinter::where(full({}, false, TensorOptions(kBool).device(device())), *this, from.to(dtype()));
  const TensorArg operand(from.sizes().same_as(sizes) ? from : from.expand(sizes), source.where());
  call_op_into(op_of<ToCopy>, {&operand, 1}, ToCopyAttrs{dtype()}, *this, source.where());
  return *this;
}

OpFamily unary_ops() {
  static const Op* const ops[] = {
      &op_of<Abs>,      &op_of<Acos>,       &op_of<Acosh>,  &op_of<Asin>,       &op_of<Asinh>, &op_of<Atan>,
      &op_of<Atanh>,    &op_of<BitwiseNot>, &op_of<Ceil>,   &op_of<Clone>,      &op_of<Cos>,   &op_of<Cosh>,
      &op_of<Erf>,      &op_of<Erfc>,       &op_of<Exp>,    &op_of<Exp2>,       &op_of<Expm1>, &op_of<Floor>,
      &op_of<IsFinite>, &op_of<IsInf>,      &op_of<IsNan>,  &op_of<Log>,        &op_of<Log10>, &op_of<Log1p>,
      &op_of<Log2>,     &op_of<LogicalNot>, &op_of<Neg>,    &op_of<Reciprocal>, &op_of<Round>, &op_of<Rsqrt>,
      &op_of<Sigmoid>,  &op_of<Sign>,       &op_of<Sin>,    &op_of<Sinh>,       &op_of<Sqrt>,  &op_of<Square>,
      &op_of<Tan>,      &op_of<Tanh>,       &op_of<ToCopy>, &op_of<Trunc>};
  return ops;
}

}  // namespace sinter
