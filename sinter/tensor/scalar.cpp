#include "sinter/tensor/scalar.h"

#include <complex>
#include <ostream>

#include "sinter/base/error.h"
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

using Complex = std::complex<double>;

Scalar combine_complex(std::string_view op, const Complex& a, const Complex& b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  check(op == "==", "{}: complex numbers have no order", op);
  return a == b;
}

}  // namespace

Scalar combine(const char* op, const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return combine_complex(op, a.to<Complex>(), b.to<Complex>());
  if (a.is_lazy()) return a.lazy()->combine(op, b, false);
  if (b.is_lazy()) return b.lazy()->combine(op, a, true);
  if (std::string_view(op) == "/") return a.to_double() / b.to_double();
  if (a.is_floating() || b.is_floating()) return combine_numbers(op, a.to_double(), b.to_double());
  return combine_numbers(op, a.to_int(), b.to_int());
}

}  // namespace detail

double Scalar::without_imaginary() const {
  check(imaginary_ == 0, "the complex number {} is not a real one: take its real() or imag()", to_string(*this));
  return float_;
}

std::string to_string(const Scalar& s) {
  if (s.is_lazy()) return to_string(s.lazy()->shown());
  if (s.is_complex()) return format("({}, {})", to_string(Scalar(s.real())), to_string(Scalar(s.imag())));
  if (s.dtype() == kBool) return s.to_bool() ? "true" : "false";
  if (s.dtype() == kInt64) return std::to_string(s.to_int());
  std::string text = double_to_string(s.to_double());
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // also leaves inf, nan, 1e+20 alone
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) { return out << to_string(s); }

}  // namespace sinter
