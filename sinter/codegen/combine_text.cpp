#include "sinter/codegen/combine_text.h"

#include "sinter/base/error.h"
#include "sinter/codegen/value_text.h"

namespace sinter::codegen {

std::string identity_text(Combine combine, DType acc) {
  if (combine == Combine::kAll) return "true";
  if (combine == Combine::kAny) return "false";
  return literal_text(identity_of(combine, acc), acc);
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
