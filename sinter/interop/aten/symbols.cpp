// Arithmetic on sizes and other numbers of a program, questions about tensors that a number answers, and assertions.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"

namespace sinter::interop {

namespace {

// Numbers are sizes, of which arithmetic stays symbolic, or Scalars, of which it stays lazy.
using Number = const Value&;

bool are_sizes(Number a, Number b) { return a.is<Dim>() && b.is<Dim>(); }

template <class OfDims>
Value combine(Number a, Number b, const char* op, OfDims of_dims) {
  if (are_sizes(a, b)) return {of_dims(a.as<Dim>(), b.as<Dim>())};
  return {sinter::detail::combine(op, value_to<Scalar>(a), value_to<Scalar>(b))};
}

Value sum(Number a, Number b) {
  return combine(a, b, "+", [](const Dim& x, const Dim& y) { return x + y; });
}
Value difference(Number a, Number b) {
  return combine(a, b, "-", [](const Dim& x, const Dim& y) { return x - y; });
}
Value product(Number a, Number b) {
  return combine(a, b, "*", [](const Dim& x, const Dim& y) { return x * y; });
}
Value is_equal(Number a, Number b) {
  return combine(a, b, "==", [](const Dim& x, const Dim& y) { return x == y; });
}
Value is_less(Number a, Number b) {
  return combine(a, b, "<", [](const Dim& x, const Dim& y) { return x < y; });
}
Value is_at_most(Number a, Number b) {
  return combine(a, b, "<=", [](const Dim& x, const Dim& y) { return x <= y; });
}

double real(Number a) { return value_to<double>(a); }

Value quotient(Number a, Number b) { return {sinter::detail::combine("/", Scalar(real(a)), Scalar(real(b)))}; }
Value floor_quotient(Number a, Number b) {
  if (!are_sizes(a, b)) return {Scalar(std::floor(real(a) / real(b)))};
  check(!(b.as<Dim>().is_number() && b.as<Dim>().number() == 0), "a size is divided by 0");
  return {a.as<Dim>() / b.as<Dim>()};
}
Value remainder_of(Number a, Number b) {
  if (!are_sizes(a, b)) return {Scalar(real(a) - std::floor(real(a) / real(b)) * real(b))};
  check(!(b.as<Dim>().is_number() && b.as<Dim>().number() == 0), "a size is divided by 0");
  return {a.as<Dim>() % b.as<Dim>()};
}
Value power(Number a, Number b) {
  constexpr int64_t kMost = 16;
  if (are_sizes(a, b)) {
    const int64_t times = value_to<int64_t>(b);
    if (times >= 0 && times <= kMost) {
      Dim out = 1;
      for (int64_t i = 0; i < times; ++i) out *= a.as<Dim>();
      return {out};
    }
  }
  return {Scalar(std::pow(real(a), real(b)))};
}
Value negative_of(Number a) {
  return a.is<Dim>() ? Value{-a.as<Dim>()} : Value{sinter::detail::combine("-", Scalar(0), value_to<Scalar>(a))};
}
Value larger(Number a, Number b) {
  return are_sizes(a, b) ? Value{max(a.as<Dim>(), b.as<Dim>())} : Value{Scalar(std::max(real(a), real(b)))};
}
Value smaller(Number a, Number b) {
  return are_sizes(a, b) ? Value{min(a.as<Dim>(), b.as<Dim>())} : Value{Scalar(std::min(real(a), real(b)))};
}
Value as_integer(Number a) { return a.is<Dim>() ? a : Value{Dim(value_to<Scalar>(a).to_int())}; }
Value as_real(Number a) { return {Scalar(real(a))}; }
Value rounded_down(Number a) { return a.is<Dim>() ? a : Value{Dim(int64_t(std::floor(real(a))))}; }
Value rounded_up(Number a) { return a.is<Dim>() ? a : Value{Dim(int64_t(std::ceil(real(a))))}; }
Value truncated(Number a) { return a.is<Dim>() ? a : Value{Dim(int64_t(std::trunc(real(a))))}; }
Value rounded(Number a) { return a.is<Dim>() ? a : Value{Dim(int64_t(std::nearbyint(real(a))))}; }

// What a tensor of one element holds; under capture it is known when the program runs.
Value item_of(const Tensor& x) {
  Scalar item = x.item();
  if (!item.is_lazy() && item.dtype() == kInt64) return {Dim(item.to_int())};
  if (!item.is_lazy() && item.dtype() == kBool) return {item.to_bool()};
  return {item};
}

// A number that only the running program will know is not asked: that would end the graph for the sake of a check.
void assert_number(Number holds, Text message) {
  if (auto* scalar = std::get_if<Scalar>(&holds.held); scalar && scalar->is_lazy()) return;
  check(value_to<bool>(holds), "{}", message);
}
void constrain(Number value, MaybeInt low, MaybeInt high) {
  if (auto* scalar = std::get_if<Scalar>(&value.held); scalar && scalar->is_lazy()) return;
  const Dim number = value_to<Dim>(value);
  check(!low || number >= Dim(*low), "a number of the program, {}, is below {}", number, low.value_or(0));
  check(!high || number <= Dim(*high), "a number of the program, {}, is above {}", number, high.value_or(0));
}
void assert_tensor(const Tensor& holds, Text message) {
  if (!holds.is_traced()) check(holds.item().to_bool(), "{}", message);
}
void assert_dtype(const Tensor& x, Ignored, Ignored, MaybeType dtype, Ignored, Ignored) {
  check(!dtype || x.dtype() == *dtype, "a tensor has the dtype {} where the program was exported with {}", x.dtype(),
        dtype.value_or(x.dtype()));
}

}  // namespace

std::span<const Function> symbol_functions() {
  static const Function kList[] = {
      {"_operator::add(Scalar a, Scalar b) -> Scalar", sum},
      {"_operator::sub(Scalar a, Scalar b) -> Scalar", difference},
      {"_operator::mul(Scalar a, Scalar b) -> Scalar", product},
      {"_operator::truediv(Scalar a, Scalar b) -> Scalar", quotient},
      {"_operator::floordiv(Scalar a, Scalar b) -> Scalar", floor_quotient},
      {"_operator::mod(Scalar a, Scalar b) -> Scalar", remainder_of},
      {"_operator::pow(Scalar a, Scalar b) -> Scalar", power},
      {"_operator::neg(Scalar a) -> Scalar", negative_of},
      {"_operator::pos(Scalar a) -> Scalar", [](Number a) { return a; }},
      {"_operator::eq(Scalar a, Scalar b) -> bool", is_equal},
      {"_operator::ne(Scalar a, Scalar b) -> bool", [](Number a, Number b) { return !value_to<bool>(is_equal(a, b)); }},
      {"_operator::lt(Scalar a, Scalar b) -> bool", is_less},
      {"_operator::le(Scalar a, Scalar b) -> bool", is_at_most},
      {"_operator::gt(Scalar a, Scalar b) -> bool", [](Number a, Number b) { return is_less(b, a); }},
      {"_operator::ge(Scalar a, Scalar b) -> bool", [](Number a, Number b) { return is_at_most(b, a); }},
      {"_operator::and_(bool a, bool b) -> bool", [](bool a, bool b) { return a && b; }},
      {"_operator::or_(bool a, bool b) -> bool", [](bool a, bool b) { return a || b; }},
      {"torch::sym_not(bool a) -> bool", [](bool a) { return !a; }},
      {"torch::sym_max(Scalar a, Scalar b) -> Scalar", larger},
      {"torch::sym_min(Scalar a, Scalar b) -> Scalar", smaller},
      {"torch::sym_int(Scalar a) -> int", as_integer},
      {"torch::sym_float(Scalar a) -> float", as_real},
      {"torch::sym_ite(bool b, Scalar t, Scalar f) -> Scalar",
       [](bool condition, Number yes, Number no) { return condition ? yes : no; }},
      {"torch::_sym_sqrt(Scalar a) -> float", [](Number a) { return Value{Scalar(std::sqrt(real(a)))}; }},
      {"math::sqrt(Scalar a) -> float", [](Number a) { return Value{Scalar(std::sqrt(real(a)))}; }},
      {"math::floor(Scalar a) -> int", rounded_down},
      {"math::ceil(Scalar a) -> int", rounded_up},
      {"math::trunc(Scalar a) -> int", truncated},
      {"builtins::round(Scalar a) -> int", rounded},

      // --- questions about tensors
      {"sym_size.int(Tensor self, int dim) -> SymInt", [](const Tensor& x, Int dim) { return x.size(dim); }},
      {"sym_numel(Tensor self) -> SymInt", [](const Tensor& x) { return x.numel(); }},
      {"sym_stride.int(Tensor self, int dim) -> SymInt", [](const Tensor& x, Int dim) { return Dim(x.stride(dim)); }},
      {"sym_storage_offset(Tensor self) -> SymInt", [](const Tensor& x) { return Dim(x.storage_offset()); }},
      {"sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool",
       [](const Tensor& x, MemoryFormat format) { return x.is_contiguous(format); }},
      {"item(Tensor self) -> Scalar", item_of},
      {"_local_scalar_dense(Tensor self) -> Scalar", item_of},

      // --- assertions
      {"_assert_scalar(Scalar self, str assert_msg) -> ()", assert_number},
      {"_assert_async(Tensor self) -> ()",
       [](const Tensor& holds) { assert_tensor(holds, "an assertion of the program fails"); }},
      {"_assert_async.msg(Tensor self, str assert_msg) -> ()", assert_tensor},
      {"_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
       "Device? device=None, Layout? layout=None) -> ()",
       assert_dtype},
      {"sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", constrain},
      {"sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", constrain},
  };
  return kList;
}

}  // namespace sinter::interop
