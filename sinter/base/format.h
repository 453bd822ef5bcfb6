#pragma once
// Text formatting for messages: `format("matmul: {} and {} differ", a, b)`. Only `{}` is understood.
// Kept apart from any formatting library so that public headers stay cheap to include.
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

namespace detail {

// One argument of a message, turned into text at the call site only when the message is needed.
struct FormatArg {
  std::string text;

  FormatArg(std::string_view s) : text(s) {}
  FormatArg(const std::string& s) : text(s) {}
  FormatArg(const char* s) : text(s) {}
  FormatArg(bool b) : text(b ? "true" : "false") {}
  FormatArg(char c) : text(1, c) {}
  FormatArg(double v);
  template <class T>
    requires(std::is_integral_v<T>)
  FormatArg(T v) : text(std::to_string(v)) {}
  FormatArg(float v) : FormatArg(double(v)) {}
  template <class T>
    requires(std::is_class_v<T> || std::is_enum_v<T>)
  FormatArg(const T& v) : text(to_string(v)) {}
};

std::string format_args(std::string_view pattern, std::initializer_list<FormatArg> args);

}  // namespace detail

// Each `{}` of the pattern is replaced by the next argument: numbers, strings, or anything with a `to_string` beside it.
template <class... Args>
std::string format(std::string_view pattern, const Args&... args) {
  return detail::format_args(pattern, {detail::FormatArg(args)...});
}

// The shortest decimal text that reads back as the same double.
std::string double_to_string(double value);

}  // namespace sinter
