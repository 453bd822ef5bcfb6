#pragma once
// Values as the parameters of C++ functions, and their results as values. What does not fit is an Error that says what was
// wanted; the caller adds whose argument it is.
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sinter/interop/value.h"

namespace sinter::interop {

// A parameter that changes no result here: pin_memory, layout, sparse, a generator that is None.
struct Ignored {};
// One that Sinter has only the default of: None, False, or nothing.
struct Unset {};

namespace detail {

[[noreturn]] void fail_conversion(const char* wanted, const Value& value);

bool to_bool(const Value& value);
Dim to_dim(const Value& value);
Scalar to_scalar(const Value& value);
Tensor to_tensor(const Value& value);
TensorArg to_operand(const Value& value);
const std::string& to_text(const Value& value);
DType to_dtype(const Value& value);
MemoryFormat to_memory_format(const Value& value);
Device to_device(const Value& value);
// The entries of a list; a single value stands for a list of one, as in schemas with int[1].
ValueList to_list(const Value& value);
// The same of numbers, which may also be the elements of a vector.
ValueList to_numbers(const Value& value);
std::vector<TensorIndex> to_indices(const Value& value);
void expect_unset(const Value& value);

template <class T>
struct Conversion;
#define SINTER_CONVERSION(Type, expression)                       \
  template <>                                                     \
  struct Conversion<Type> {                                       \
    static Type from(const Value& value) { return (expression); } \
  };
SINTER_CONVERSION(Tensor, to_tensor(value))
SINTER_CONVERSION(TensorArg, to_operand(value))
SINTER_CONVERSION(bool, to_bool(value))
SINTER_CONVERSION(Dim, to_dim(value))
SINTER_CONVERSION(int64_t, to_dim(value).to_int())
SINTER_CONVERSION(Scalar, to_scalar(value))
SINTER_CONVERSION(double, to_scalar(value).to_double())
SINTER_CONVERSION(std::string, to_text(value))
SINTER_CONVERSION(DType, to_dtype(value))
SINTER_CONVERSION(MemoryFormat, to_memory_format(value))
SINTER_CONVERSION(Device, to_device(value))
SINTER_CONVERSION(std::vector<TensorIndex>, to_indices(value))
SINTER_CONVERSION(Value, value)
SINTER_CONVERSION(Ignored, (void(value), Ignored()))
SINTER_CONVERSION(Unset, (expect_unset(value), Unset()))
#undef SINTER_CONVERSION

template <class List, class Entry>
List list_of(const Value& value) {
  List out;
  for (auto& entry : to_list(value)) out.push_back(Conversion<Entry>::from(entry));
  return out;
}
template <class List, class Entry>
List numbers_of(const Value& value) {
  List out;
  for (auto& entry : to_numbers(value)) out.push_back(Conversion<Entry>::from(entry));
  return out;
}
template <>
struct Conversion<IntList> {
  static IntList from(const Value& value) { return numbers_of<IntList, int64_t>(value); }
};
template <>
struct Conversion<Shape> {
  static Shape from(const Value& value) { return numbers_of<Shape, Dim>(value); }
};
template <>
struct Conversion<TensorList> {
  static TensorList from(const Value& value) { return list_of<TensorList, Tensor>(value); }
};
template <>
struct Conversion<std::vector<double>> {
  static std::vector<double> from(const Value& value) { return numbers_of<std::vector<double>, double>(value); }
};
template <>
struct Conversion<std::vector<Scalar>> {
  static std::vector<Scalar> from(const Value& value) { return list_of<std::vector<Scalar>, Scalar>(value); }
};
template <size_t N>
struct Conversion<std::array<bool, N>> {
  static std::array<bool, N> from(const Value& value) {
    ValueList list = to_list(value);
    if (list.size() != N) fail_conversion("a list of truth values", value);
    std::array<bool, N> out;
    for (size_t i = 0; i < N; ++i) out[i] = to_bool(list[i]);
    return out;
  }
};
template <class T>
struct Conversion<std::optional<T>> {
  static std::optional<T> from(const Value& value) {
    if (value.is<Value::None>()) return std::nullopt;
    return Conversion<T>::from(value);
  }
};

}  // namespace detail

// The value as a parameter of type T.
template <class T>
T value_to(const Value& value) {
  return detail::Conversion<T>::from(value);
}

// --- results, one value for each

inline ValueList results_of(Tensor result) { return {Value{std::move(result)}}; }
inline ValueList results_of(bool result) { return {Value{result}}; }
inline ValueList results_of(const Dim& result) { return {Value{result}}; }
inline ValueList results_of(const Value& result) { return {result}; }
inline ValueList results_of(ValueList results) { return results; }
ValueList results_of(const TensorList& result);
template <class... T>
ValueList results_of(const std::tuple<T...>& result) {
  return std::apply([](auto&... each) { return ValueList{Value{each}...}; }, result);
}

}  // namespace sinter::interop
