#include "sinter/base/format.h"

#include <charconv>

namespace sinter {

std::string double_to_string(double value) {
  char buffer[40];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

namespace detail {

FormatArg::FormatArg(double v) : text(double_to_string(v)) {}

std::string format_args(std::string_view pattern, std::initializer_list<FormatArg> args) {
  std::string out;
  auto next = args.begin();
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{' && i + 1 < pattern.size() && pattern[i + 1] == '}' && next != args.end()) {
      out += (next++)->text;
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

}  // namespace detail
}  // namespace sinter
