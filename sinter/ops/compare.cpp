// The ops of binary.h that give truth values or work on bits.
#include "sinter/ops/complex_math.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"

namespace sinter {

namespace {

#define SINTER_WITHOUT_SLOPE(Struct, op_name, op_typing, expression, reason, ...)         \
  struct Struct : Pointwise<Struct> {                                                     \
    static constexpr auto name = #op_name;                                                \
    static constexpr Typing typing = op_typing;                                           \
    SINTER_BODY((x, y), expression)                                                       \
    static constexpr NotDifferentiable grad{reason};                                      \
    __VA_ARGS__                                                                           \
  };                                                                                      \
  }                                                                                       \
  Tensor op_name(const TensorArg& a, const TensorArg& b) { return call<Struct>({a, b}); } \
  namespace {

#define SINTER_COMPARISON(Struct, op_name, ...) \
  SINTER_WITHOUT_SLOPE(Struct, op_name, Typing::kCompare, op_name(x, y), "a truth value has no slope", __VA_ARGS__)
// Of complex numbers by what the comparisons of both parts are together.
#define SINTER_OF_BOTH_PARTS(op_name, together)                                 \
  static TensorList on_complex(const ComplexCall& c) {                          \
    const Parts a = c.parts(0), b = c.parts(1);                                 \
    return {together(op_name(a.re, b.re), op_name(a.im, b.im))};                \
  }
SINTER_COMPARISON(Equal, eq, SINTER_OF_BOTH_PARTS(eq, logical_and))
SINTER_COMPARISON(NotEqual, ne, SINTER_OF_BOTH_PARTS(ne, logical_or))
SINTER_COMPARISON(Less, lt)
SINTER_COMPARISON(LessEqual, le)
SINTER_COMPARISON(Greater, gt)
SINTER_COMPARISON(GreaterEqual, ge)

#define SINTER_LOGICAL(Struct, op_name) \
  SINTER_WITHOUT_SLOPE(Struct, op_name, Typing::kBool, op_name(x, y), "a truth value has no slope", \
    static TensorList on_complex(const ComplexCall& c) {                                            \
      return {op_name(complex_math::truth(c.parts(0)), complex_math::truth(c.parts(1)))};           \
    })
SINTER_LOGICAL(LogicalAnd, logical_and)
SINTER_LOGICAL(LogicalOr, logical_or)
SINTER_LOGICAL(LogicalXor, logical_xor)

#define SINTER_BITS(Struct, op_name, expression) \
  SINTER_WITHOUT_SLOPE(Struct, op_name, Typing::kInteger, expression, "it works on integers")
SINTER_BITS(BitwiseAnd, bitwise_and, bit_and(x, y))
SINTER_BITS(BitwiseOr, bitwise_or, bit_or(x, y))
SINTER_BITS(BitwiseXor, bitwise_xor, bit_xor(x, y))
SINTER_BITS(LeftShift, bitwise_left_shift, shift_left(x, y))
SINTER_BITS(RightShift, bitwise_right_shift, shift_right(x, y))

#undef SINTER_WITHOUT_SLOPE
#undef SINTER_COMPARISON
#undef SINTER_OF_BOTH_PARTS
#undef SINTER_LOGICAL
#undef SINTER_BITS

}  // namespace

Tensor isclose(const TensorArg& a, const TensorArg& b, double rtol, double atol, bool equal_nan) {
  UserPosition here(a.where());
  check(!a.is_scalar(), "isclose: the first operand must be a tensor");
  Tensor other = b.is_scalar() ? full({}, b.scalar(), a.tensor().options()) : b.tensor();
  if (a.dtype() == kBool && other.dtype() == kBool) return a == other;
  // Infinities are close only to themselves.
  Tensor close = (a == other) | (isfinite(other) & (abs(a - other) <= abs(other) * rtol + atol));
  return equal_nan ? close | (isnan(a) & isnan(other)) : close;
}
bool allclose(const TensorArg& a, const TensorArg& b, double rtol, double atol, bool equal_nan) {
  UserPosition here(a.where());
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}
bool equal(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  Shape x = a.sizes(), y = b.sizes();
  return std::equal(x.begin(), x.end(), y.begin(), y.end()) && all(eq(a, b)).item<bool>();
}

Tensor operator<(const TensorArg& a, const TensorArg& b) { return lt(a, b); }
Tensor operator<=(const TensorArg& a, const TensorArg& b) { return le(a, b); }
Tensor operator>(const TensorArg& a, const TensorArg& b) { return gt(a, b); }
Tensor operator>=(const TensorArg& a, const TensorArg& b) { return ge(a, b); }
Tensor operator==(const TensorArg& a, const TensorArg& b) { return eq(a, b); }
Tensor operator!=(const TensorArg& a, const TensorArg& b) { return ne(a, b); }
Tensor operator&(const TensorArg& a, const TensorArg& b) { return bitwise_and(a, b); }
Tensor operator|(const TensorArg& a, const TensorArg& b) { return bitwise_or(a, b); }
Tensor operator^(const TensorArg& a, const TensorArg& b) { return bitwise_xor(a, b); }
Tensor operator~(const TensorArg& a) { return bitwise_not(a); }
Tensor operator&&(const TruthArg& a, const TruthArg& b) { return logical_and(a.arg, b.arg); }
Tensor operator||(const TruthArg& a, const TruthArg& b) { return logical_or(a.arg, b.arg); }
Tensor operator!(const TruthArg& a) { return logical_not(a.arg); }

OpFamily compare_ops() {
  static const Op* const ops[] = {&op_of<Equal>,      &op_of<NotEqual>,     &op_of<Less>,       &op_of<LessEqual>,
                                  &op_of<Greater>,    &op_of<GreaterEqual>, &op_of<LogicalAnd>, &op_of<LogicalOr>,
                                  &op_of<LogicalXor>, &op_of<BitwiseAnd>,   &op_of<BitwiseOr>,  &op_of<BitwiseXor>,
                                  &op_of<LeftShift>,  &op_of<RightShift>};
  return ops;
}

}  // namespace sinter
