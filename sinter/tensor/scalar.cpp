#include "sinter/tensor/scalar.h"

#include <ostream>

#include "sinter/base/format.h"

namespace sinter {

std::string to_string(const Scalar& s) {
  if (s.dtype() == kBool) return s.to_bool() ? "true" : "false";
  if (s.dtype() == kInt64) return std::to_string(s.to_int());
  std::string text = double_to_string(s.to_double());
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // also leaves inf, nan, 1e+20 alone
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) { return out << to_string(s); }

}  // namespace sinter
