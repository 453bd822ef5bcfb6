#pragma once
// Which types the arguments and results of compiled functions may have. A call is looked at anew each time, and a capture
// puts traced tensors into a copy of the arguments; so a type must own what it holds, or hold nothing that is replaced.
// What cannot be followed is refused when the program is compiled, with the remedy.
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace capture {

enum class Role : uint8_t { kArgument, kResult };

namespace detail {

template <class T>
concept HasFields = requires(T& t) { t.visit_fields([](const char*, auto&) {}); };
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <class T>
concept MapLike = requires(T& t) {
  typename T::mapped_type;
  t.begin();
};
template <class T>
concept ListLike = requires(T& t) {
  t.begin();
  t.size();
} && !MapLike<T>;
template <class T>
concept OptionalLike = requires(T& t) {
  t.has_value();
  *t;
};
// The handle of a module, and a pointer at one.
template <class T>
concept ModuleHandle = requires(T& t) { t.ptr()->watched(); };
template <class T>
concept ModulePointer = std::is_pointer_v<T> && requires(T t) { t->watched(); };

template <class T>
inline constexpr bool is_text_view = std::is_same_v<T, std::string_view> || std::is_same_v<T, const char*>;
template <class T>
inline constexpr bool is_text = std::is_same_v<T, std::string> || is_text_view<T>;
template <class T>
inline constexpr bool is_value =
    std::is_same_v<T, Tensor> || std::is_same_v<T, TensorArg> || std::is_same_v<T, Dim> || std::is_same_v<T, Scalar>;

template <class T>
decltype(auto) first_of(T& container) {
  if constexpr (OptionalLike<T>)
    return *container;
  else
    return *container.begin();
}
// What a container or optional gives, with its reference.
template <class T>
using ElementOf = decltype(first_of(std::declval<T&>()));

// Applies f<I>() to the types of a tuple's elements.
template <class T, class F>
constexpr bool all_of_tuple(F f) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return (f(std::type_identity<std::tuple_element_t<I, T>>()) && ...);
  }(std::make_index_sequence<std::tuple_size_v<T>>());
}

// Whether a capture replaces something in it: a tensor, a size, a number.
template <class T>
constexpr bool holds_values() {
  using U = std::remove_cvref_t<T>;
  if constexpr (is_value<U> || HasFields<U>)
    return true;
  else if constexpr (std::is_arithmetic_v<U> || ComplexNumber<U> || std::is_enum_v<U> || is_text<U> || std::is_pointer_v<U> ||
                     ModuleHandle<U>)
    return false;
  else if constexpr (MapLike<U>)
    return holds_values<typename U::key_type>() || holds_values<typename U::mapped_type>();
  else if constexpr (OptionalLike<U> || ListLike<U>)
    return holds_values<ElementOf<U>>();
  else if constexpr (TupleLike<U>)
    return !all_of_tuple<U>([](auto t) { return !holds_values<typename decltype(t)::type>(); });
  else
    return false;
}

// Whether const of a container is const of its elements, as it is with one that owns them.
template <class T, class Element = ElementOf<T>>
inline constexpr bool owns_elements = std::is_lvalue_reference_v<Element> &&
                                      !std::is_const_v<std::remove_reference_t<Element>> &&
                                      std::is_same_v<ElementOf<const T>, const std::remove_reference_t<Element>&>;

enum class Refusal : uint8_t { kNone, kUnknown, kPointer, kLook, kLookResult, kReference, kWide, kKey, kArgumentOnly };

// Why a type is refused on its own account; its parts are asked themselves.
template <class T, Role role>
constexpr Refusal refusal_of() {
  using U = std::remove_cv_t<T>;
  constexpr bool is_result = role == Role::kResult;
  if constexpr (std::is_reference_v<T>) {
    return Refusal::kReference;
  } else if constexpr (is_value<U>) {
    return is_result && std::is_same_v<U, TensorArg> ? Refusal::kArgumentOnly : Refusal::kNone;
  } else if constexpr (std::is_arithmetic_v<U> || std::is_enum_v<U>) {
    return sizeof(U) > sizeof(int64_t) ? Refusal::kWide : Refusal::kNone;
  } else if constexpr (ComplexNumber<U>) {
    return Refusal::kNone;
  } else if constexpr (is_text<U>) {
    return is_result && is_text_view<U> ? Refusal::kLookResult : Refusal::kNone;
  } else if constexpr (std::is_pointer_v<U>) {
    bool is_function = std::is_function_v<std::remove_pointer_t<U>>;
    return is_function || ModulePointer<U> ? Refusal::kNone : Refusal::kPointer;
  } else if constexpr (HasFields<U> || ModuleHandle<U> || std::is_same_v<U, std::vector<bool>>) {
    return Refusal::kNone;
  } else if constexpr (MapLike<U>) {
    return holds_values<typename U::key_type>() ? Refusal::kKey : Refusal::kNone;
  } else if constexpr (OptionalLike<U> || ListLike<U>) {
    // What gives no references to its elements has none: it makes them.
    bool is_owner = owns_elements<U> || requires { typename U::allocator_type; };
    bool is_look = holds_values<U>() || !std::is_lvalue_reference_v<ElementOf<U>>;
    return is_owner ? Refusal::kNone : is_result ? Refusal::kLookResult : is_look ? Refusal::kLook : Refusal::kNone;
  } else {
    return TupleLike<U> ? Refusal::kNone : Refusal::kUnknown;
  }
}

// Says why a type is refused, naming it.
template <class Type, Refusal why>
struct RefusedType {
  static_assert(why != Refusal::kUnknown,
                "compile: arguments and results are tensors, numbers, text, modules, and containers or structs of them; "
                "list the fields of a struct with SINTER_FIELDS(...)");
  static_assert(why != Refusal::kPointer,
                "compile: what a pointer points at cannot be looked at in each call, since it may be one or many: pass the "
                "Tensor itself (it is a handle already, and may be undefined), std::optional or std::vector");
  static_assert(why != Refusal::kLook,
                "compile: a span or view of tensors is a look at the caller's own, which a capture would replace: pass "
                "std::vector<Tensor> (TensorList)");
  static_assert(why != Refusal::kLookResult,
                "compile: a result that is a look at memory (a span, a string_view, a C string) may outlive it: return the "
                "container or a std::string");
  static_assert(why != Refusal::kReference,
                "compile: a reference inside of a tuple or pair is a look at the caller's own: hold the value, not "
                "std::tie() or std::ref()");
  static_assert(why != Refusal::kWide, "compile: a number of more than 64 bits cannot be guarded: pass a double or an int64_t");
  static_assert(why != Refusal::kKey, "compile: keys of maps are numbers, enums or text");
  static_assert(why != Refusal::kArgumentOnly, "compile: a TensorArg is for arguments: return a Tensor");
};

// Whether compile() takes the type. The fields of a struct are looked at when it is compiled.
template <class T, Role role>
constexpr bool is_capturable() {
  using U = std::remove_cv_t<T>;
  if constexpr (refusal_of<T, role>() != Refusal::kNone)
    return false;
  else if constexpr (is_value<U> || std::is_arithmetic_v<U> || ComplexNumber<U> || std::is_enum_v<U> || is_text<U> ||
                     std::is_pointer_v<U> || HasFields<U> || ModuleHandle<U> || std::is_same_v<U, std::vector<bool>>)
    return true;
  else if constexpr (MapLike<U>)
    return is_capturable<typename U::key_type, role>() && is_capturable<typename U::mapped_type, role>();
  else if constexpr (OptionalLike<U> || ListLike<U>)
    return is_capturable<std::remove_reference_t<ElementOf<U>>, role>();
  else
    return all_of_tuple<U>([](auto t) { return is_capturable<typename decltype(t)::type, role>(); });
}

}  // namespace detail

// The reference of a parameter or result itself does not count.
template <class T>
concept CapturableArgument = detail::is_capturable<std::decay_t<T>, Role::kArgument>();
template <class T>
concept CapturableResult = std::is_void_v<T> || detail::is_capturable<std::remove_cvref_t<T>, Role::kResult>();

}  // namespace capture
}  // namespace sinter
