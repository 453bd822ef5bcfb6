#include "sinter/tensor/scalar.h"

#include <ostream>

#include "sinter/base/format.h"

namespace sinter {

namespace detail {

namespace {

template <class T>
Scalar combine_numbers(std::string_view op, T a, T b) {
  if (op == "+") return T(a + b);
  if (op == "-") return T(a - b);
  if (op == "*") return T(a * b);
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  return a == b;
}

}  // namespace

Scalar combine(const char* op, const Scalar& a, const Scalar& b) {
  if (a.is_lazy()) return a.lazy()->combine(op, b, false);
  if (b.is_lazy()) return b.lazy()->combine(op, a, true);
  if (std::string_view(op) == "/") return a.to_double() / b.to_double();
  if (a.is_floating() || b.is_floating()) return combine_numbers(op, a.to_double(), b.to_double());
  return combine_numbers(op, a.to_int(), b.to_int());
}

}  // namespace detail

std::string to_string(const Scalar& s) {
  if (s.is_lazy()) return to_string(s.lazy()->shown());
  if (s.dtype() == kBool) return s.to_bool() ? "true" : "false";
  if (s.dtype() == kInt64) return std::to_string(s.to_int());
  std::string text = double_to_string(s.to_double());
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // also leaves inf, nan, 1e+20 alone
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) { return out << to_string(s); }

}  // namespace sinter
