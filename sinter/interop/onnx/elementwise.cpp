// Arithmetic, comparisons and conversions, element by element.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Value sum(Any a, Any b) {
  if (auto out = combine_on_host(a, b, [](const Dim& x, const Dim& y) { return x + y; })) return *out;
  if (auto out = combine_constants(a, b, [](double x, double y) { return x + y; })) return *out;
  auto [x, y] = pair_of(a, b);
  return {add(x, y)};
}
Value difference(Any a, Any b) {
  if (auto out = combine_on_host(a, b, [](const Dim& x, const Dim& y) { return x - y; })) return *out;
  if (auto out = combine_constants(a, b, [](double x, double y) { return x - y; })) return *out;
  auto [x, y] = pair_of(a, b);
  return {sub(x, y)};
}
Value product(Any a, Any b) {
  if (auto out = combine_on_host(a, b, [](const Dim& x, const Dim& y) { return x * y; })) return *out;
  if (auto out = combine_constants(a, b, [](double x, double y) { return x * y; })) return *out;
  auto [x, y] = pair_of(a, b);
  return {mul(x, y)};
}

void check_divisor(const Dim& divisor) {
  check(!divisor.is_number() || divisor.number() != 0, "an integer is divided by 0");
}
// Integers are cut towards zero; sizes are not negative.
Value quotient(Any a, Any b) {
  auto of_whole = [](const Dim& x, const Dim& y) {
    check_divisor(y);
    if (x.is_number() && y.is_number()) return Dim(x.number() / y.number());
    return x / y;
  };
  if (auto out = combine_on_host(a, b, of_whole)) return *out;
  if (auto out = combine_constants(a, b, [](double x, double y) { return x / y; })) return *out;
  auto [x, y] = pair_of(a, b);
  return {is_floating(dtype_of(a)) ? div(x, y) : trunc_divide(x, y)};
}
Value modulo(Any a, Any b, bool as_in_c) {
  auto of_whole = [](const Dim& x, const Dim& y) {
    check_divisor(y);
    return x % y;
  };
  if (auto out = as_in_c ? std::nullopt : combine_on_host(a, b, of_whole)) return *out;
  auto [x, y] = pair_of(a, b);
  return {as_in_c ? fmod(x, y) : remainder(x, y)};
}

// The result is of the base's type.
Tensor power(Any base, Any exponent) {
  const DType dtype = dtype_of(base);
  if (dtype == dtype_of(exponent)) {
    auto [x, y] = pair_of(base, exponent);
    return pow(x, y);
  }
  const HostTensor* host = host_of(exponent);
  if (host && host->count() == 1 && host->sizes.empty() && host->is_constant() && is_floating(dtype))
    return pow(value_to<Tensor>(base), value_to<Scalar>(exponent));
  const DType wide = promote_types(dtype, dtype_of(exponent));
  return pow(value_to<Tensor>(base).to(wide), value_to<Tensor>(exponent).to(wide)).to(dtype);
}

// Of any number of operands.
template <class Combine>
Value fold(Any list, Combine combine) {
  const ValueList& each = list.as<ValueList>();
  check(!each.empty(), "it has no operand");
  Value out = each[0];
  for (size_t i = 1; i < each.size(); ++i) out = combine(out, each[i]);
  return out;
}
Value larger(Any a, Any b) {
  if (auto out = combine_on_host(a, b, [](const Dim& x, const Dim& y) { return max(x, y); })) return *out;
  return {maximum(value_to<Tensor>(a), value_to<Tensor>(b))};
}
Value smaller(Any a, Any b) {
  if (auto out = combine_on_host(a, b, [](const Dim& x, const Dim& y) { return min(x, y); })) return *out;
  return {minimum(value_to<Tensor>(a), value_to<Tensor>(b))};
}
Value mean_of(Any list) {
  return {div(value_to<Tensor>(fold(list, sum)), int64_t(list.as<ValueList>().size()))};
}

// --- comparisons and truth values

template <auto on_tensors>
Value compare(Any a, Any b, OfWhole on_host) {
  if (auto out = combine_on_host(a, b, on_host, kBool)) return *out;
  auto [x, y] = pair_of(a, b);
  return {on_tensors(x, y)};
}
Tensor equal_of(const TensorArg& x, const TensorArg& y) { return eq(x, y); }
Tensor less_of(const TensorArg& x, const TensorArg& y) { return lt(x, y); }
Tensor at_most_of(const TensorArg& x, const TensorArg& y) { return le(x, y); }
Tensor and_of(const TensorArg& x, const TensorArg& y) { return logical_and(x, y); }
Tensor or_of(const TensorArg& x, const TensorArg& y) { return logical_or(x, y); }
Tensor xor_of(const TensorArg& x, const TensorArg& y) { return logical_xor(x, y); }

Value is_equal(Any a, Any b) {
  return compare<equal_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t(x == y)); });
}
Value is_less(Any a, Any b) {
  return compare<less_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t(x < y)); });
}
Value is_at_most(Any a, Any b) {
  return compare<at_most_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t(x <= y)); });
}
Value both(Any a, Any b) {
  return compare<and_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t(x != 0 && y != 0)); });
}
Value either(Any a, Any b) {
  return compare<or_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t(x != 0 || y != 0)); });
}
Value one_of(Any a, Any b) {
  return compare<xor_of>(a, b, [](const Dim& x, const Dim& y) { return Dim(int64_t((x != 0) != (y != 0))); });
}
Value opposite(Any a) {
  if (auto* host = host_of(a)) {
    HostTensor out{.dtype = kBool, .sizes = host->sizes, .device = host->place()};
    for (auto& each : host->whole) out.whole.push_back(int64_t(each == 0));
    return host_value(std::move(out));
  }
  return {logical_not(value_to<Tensor>(a))};
}

Value chosen(Any condition, Any a, Any b) {
  const HostTensor *c = host_of(condition), *x = host_of(a), *y = host_of(b);
  const bool is_whole = c && x && y && !x->is_real() && !y->is_real();
  if (is_whole && c->count() == x->count() && c->count() == y->count()) {
    HostTensor out{.dtype = x->dtype, .sizes = x->sizes, .device = x->place()};
    for (size_t i = 0; i < c->whole.size(); ++i) out.whole.push_back(c->whole[i] != 0 ? x->whole[i] : y->whole[i]);
    return host_value(std::move(out));
  }
  auto [left, right] = pair_of(a, b);
  return {where(value_to<Tensor>(condition), left, right)};
}

// --- conversions

Value converted(Any x, DType dtype, Ignored) {
  const HostTensor* host = host_of(x);
  if (!host) return {value_to<Tensor>(x).to(dtype)};
  HostTensor out{.dtype = dtype, .sizes = host->sizes, .device = host->place()};
  const bool is_plain = dtype == kInt64 || dtype == kInt32 || dtype == kBool || dtype == kFloat32 || dtype == kFloat64;
  if (!is_plain || (is_floating(dtype) && !host->is_constant())) return {value_to<Tensor>(x).to(dtype)};
  for (int64_t i = 0; i < host->count(); ++i) {
    if (out.is_real())
      out.real.push_back(host->is_real() ? host->real[size_t(i)] : double(host->whole[size_t(i)].number()));
    else if (dtype == kBool)
      out.whole.push_back(int64_t(host->is_real() ? host->real[size_t(i)] != 0 : host->whole[size_t(i)] != 0));
    else
      out.whole.push_back(host->is_real() ? Dim(int64_t(host->real[size_t(i)])) : host->whole[size_t(i)]);
  }
  return host_value(std::move(out));
}

Tensor clipped(In x, Maybe low, Maybe high) {
  Tensor out = x.tensor();
  if (low.defined()) out = maximum(out, low);
  if (high.defined()) out = minimum(out, high);
  return out;
}

Tensor shifted(In x, In by, Text direction) {
  check(direction == "LEFT" || direction == "RIGHT", "BitShift: there is no direction '{}'", direction);
  return direction == "LEFT" ? bitwise_left_shift(x, by) : bitwise_right_shift(x, by);
}

// Signs of infinity that count.
Tensor is_infinite(In x, bool negative, bool positive) {
  if (negative && positive) return isinf(x);
  if (positive) return isposinf(x);
  return negative ? isneginf(x) : zeros_like(x, kBool);
}

Value negated(Any x) {
  const HostTensor* host = host_of(x);
  if (!host || host->is_real()) return {neg(value_to<Tensor>(x))};
  HostTensor out{.dtype = host->dtype, .sizes = host->sizes, .device = host->place()};
  for (auto& each : host->whole) out.whole.push_back(-each);
  return host_value(std::move(out));
}

}  // namespace

std::span<const Function> elementwise_operators() {
  static const Function kList[] = {
      {"onnx::Add.7(Tensor A, Tensor B) -> Tensor", sum},
      {"onnx::Sub.7(Tensor A, Tensor B) -> Tensor", difference},
      {"onnx::Mul.7(Tensor A, Tensor B) -> Tensor", product},
      {"onnx::Div.7(Tensor A, Tensor B) -> Tensor", quotient},
      {"onnx::Mod.10(Tensor A, Tensor B, *, int fmod=0) -> Tensor", modulo},
      {"onnx::Pow.7(Tensor X, Tensor Y) -> Tensor", power},
      {"onnx::Sum.8(Tensor[] data_0) -> Tensor", [](Any list) { return fold(list, sum); }},
      {"onnx::Mean.8(Tensor[] data_0) -> Tensor", mean_of},
      {"onnx::Max.8(Tensor[] data_0) -> Tensor", [](Any list) { return fold(list, larger); }},
      {"onnx::Min.8(Tensor[] data_0) -> Tensor", [](Any list) { return fold(list, smaller); }},
      {"onnx::Neg.6(Tensor X) -> Tensor", negated},
      {"onnx::Abs.6(Tensor X) -> Tensor", abs},
      {"onnx::Sign.9(Tensor input) -> Tensor", sign},
      {"onnx::Reciprocal.6(Tensor X) -> Tensor", reciprocal},
      {"onnx::Floor.6(Tensor X) -> Tensor", floor},
      {"onnx::Ceil.6(Tensor X) -> Tensor", ceil},
      {"onnx::Round.11(Tensor X) -> Tensor", [](In x) { return round(x); }},
      {"onnx::Sqrt.6(Tensor X) -> Tensor", sqrt},
      {"onnx::Exp.6(Tensor input) -> Tensor", exp},
      {"onnx::Log.6(Tensor input) -> Tensor", log},
      {"onnx::Erf.9(Tensor input) -> Tensor", erf},
      {"onnx::Sin.7(Tensor input) -> Tensor", sin},
      {"onnx::Cos.7(Tensor input) -> Tensor", cos},
      {"onnx::Tan.7(Tensor input) -> Tensor", tan},
      {"onnx::Asin.7(Tensor input) -> Tensor", asin},
      {"onnx::Acos.7(Tensor input) -> Tensor", acos},
      {"onnx::Atan.7(Tensor input) -> Tensor", atan},
      {"onnx::Sinh.9(Tensor input) -> Tensor", sinh},
      {"onnx::Cosh.9(Tensor input) -> Tensor", cosh},
      {"onnx::Asinh.9(Tensor input) -> Tensor", asinh},
      {"onnx::Acosh.9(Tensor input) -> Tensor", acosh},
      {"onnx::Atanh.9(Tensor input) -> Tensor", atanh},

      // --- comparisons and truth values
      {"onnx::Equal.7(Tensor A, Tensor B) -> Tensor", is_equal},
      {"onnx::Less.7(Tensor A, Tensor B) -> Tensor", is_less},
      {"onnx::LessOrEqual.12(Tensor A, Tensor B) -> Tensor", is_at_most},
      {"onnx::Greater.7(Tensor A, Tensor B) -> Tensor", [](Any a, Any b) { return is_less(b, a); }},
      {"onnx::GreaterOrEqual.12(Tensor A, Tensor B) -> Tensor", [](Any a, Any b) { return is_at_most(b, a); }},
      {"onnx::And.7(Tensor A, Tensor B) -> Tensor", both},
      {"onnx::Or.7(Tensor A, Tensor B) -> Tensor", either},
      {"onnx::Xor.7(Tensor A, Tensor B) -> Tensor", one_of},
      {"onnx::Not.1(Tensor X) -> Tensor", opposite},
      {"onnx::Where.9(Tensor condition, Tensor X, Tensor Y) -> Tensor", chosen},
      {"onnx::IsNaN.9(Tensor X) -> Tensor", isnan},
      {"onnx::IsInf.10(Tensor X, *, int detect_negative=1, int detect_positive=1) -> Tensor", is_infinite},
      {"onnx::BitwiseAnd.18(Tensor A, Tensor B) -> Tensor", bitwise_and},
      {"onnx::BitwiseOr.18(Tensor A, Tensor B) -> Tensor", bitwise_or},
      {"onnx::BitwiseXor.18(Tensor A, Tensor B) -> Tensor", bitwise_xor},
      {"onnx::BitwiseNot.18(Tensor X) -> Tensor", bitwise_not},
      {"onnx::BitShift.11(Tensor X, Tensor Y, *, str direction) -> Tensor", shifted},

      // --- conversions
      {"onnx::Cast.6(Tensor input, *, ScalarType to, int saturate=1, str round_mode=\"up\") -> Tensor",
       [](Any x, DType to, Ignored saturate, Ignored) { return converted(x, to, saturate); }},
      {"onnx::CastLike.15(Tensor input, Tensor target_type, *, int saturate=1, str round_mode=\"up\") -> Tensor",
       [](Any x, Any like, Ignored saturate, Ignored) { return converted(x, dtype_of(like), saturate); }},
      {"onnx::BitCast.26(Tensor input, *, ScalarType to) -> Tensor",
       [](const Tensor& x, DType to) { return view(x, GivenDType(to)); }},
      {"onnx::Clip.6(Tensor input, Tensor? min=None, Tensor? max=None) -> Tensor", clipped},
      {"onnx::Identity.1(Tensor input) -> Tensor", [](Any x) { return x; }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
