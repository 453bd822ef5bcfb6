#include "sinter/codegen/combine_text.h"

#include <limits>

#include "sinter/base/error.h"
#include "sinter/codegen/value_text.h"

namespace sinter::codegen {

std::string identity_text(Combine combine, DType acc) {
  double inf = std::numeric_limits<double>::infinity();
  auto extreme = [&](bool low) {
    if (is_floating(acc)) return Scalar(low ? -inf : inf);
    if (acc == kInt64) return Scalar(low ? INT64_MIN : INT64_MAX);
    return Scalar(int64_t(low ? INT32_MIN : INT32_MAX));
  };
  switch (combine) {
    case Combine::kProd: return literal_text(1, acc);
    case Combine::kMax:
    case Combine::kArgMax: return literal_text(extreme(true), acc);
    case Combine::kMin:
    case Combine::kArgMin: return literal_text(extreme(false), acc);
    case Combine::kAll: return "true";
    case Combine::kAny: return "false";
    default: return literal_text(0, acc);
  }
}

std::string combine_text(Combine combine, const std::string& a, const std::string& b) {
  switch (combine) {
    case Combine::kSum: return a + " + " + b;
    case Combine::kProd: return a + " * " + b;
    case Combine::kMax: return format("maximum({}, {})", a, b);
    case Combine::kMin: return format("minimum({}, {})", a, b);
    case Combine::kAny: return format("logical_or({}, {})", a, b);
    case Combine::kAll: return format("logical_and({}, {})", a, b);
    case Combine::kReplace: return b;
    default: break;
  }
  SINTER_INTERNAL_ASSERT(false, "this combination has no two-operand form");
}

const char* horizontal_text(Combine combine) {
  switch (combine) {
    case Combine::kSum: return "hsum";
    case Combine::kProd: return "hprod";
    case Combine::kMax: return "hmax";
    case Combine::kMin: return "hmin";
    case Combine::kAny: return "hor";
    default: return "hand";
  }
}

}  // namespace sinter::codegen
