// Questions about elements, logic and bits.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter::interop {

namespace {

// a & b, of truth values or bits.
Tensor both(In a, In b) { return bitwise_and(a, b); }
Tensor either(In a, In b) { return bitwise_or(a, b); }
Tensor one_of(In a, In b) { return bitwise_xor(a, b); }

}  // namespace

std::span<const Function> comparison_functions() {
  static const Function kList[] = {
      // --- comparisons
      {"eq.Tensor(Tensor self, Tensor other) -> Tensor", eq},
      {"eq.Scalar(Tensor self, Scalar other) -> Tensor", eq},
      {"ne.Tensor(Tensor self, Tensor other) -> Tensor", ne},
      {"ne.Scalar(Tensor self, Scalar other) -> Tensor", ne},
      {"lt.Tensor(Tensor self, Tensor other) -> Tensor", lt},
      {"lt.Scalar(Tensor self, Scalar other) -> Tensor", lt},
      {"le.Tensor(Tensor self, Tensor other) -> Tensor", le},
      {"le.Scalar(Tensor self, Scalar other) -> Tensor", le},
      {"gt.Tensor(Tensor self, Tensor other) -> Tensor", gt},
      {"gt.Scalar(Tensor self, Scalar other) -> Tensor", gt},
      {"ge.Tensor(Tensor self, Tensor other) -> Tensor", ge},
      {"ge.Scalar(Tensor self, Scalar other) -> Tensor", ge},
      {"less.Tensor(Tensor self, Tensor other) -> Tensor", lt},
      {"less.Scalar(Tensor self, Scalar other) -> Tensor", lt},
      {"less_equal.Tensor(Tensor self, Tensor other) -> Tensor", le},
      {"less_equal.Scalar(Tensor self, Scalar other) -> Tensor", le},
      {"greater.Tensor(Tensor self, Tensor other) -> Tensor", gt},
      {"greater.Scalar(Tensor self, Scalar other) -> Tensor", gt},
      {"greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", ge},
      {"greater_equal.Scalar(Tensor self, Scalar other) -> Tensor", ge},
      {"not_equal.Tensor(Tensor self, Tensor other) -> Tensor", ne},
      {"not_equal.Scalar(Tensor self, Scalar other) -> Tensor", ne},
      {"isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) "
       "-> Tensor",
       isclose},
      {"allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) "
       "-> bool",
       allclose},
      {"equal(Tensor self, Tensor other) -> bool", equal},
      {"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       isin},
      {"isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       isin},
      {"isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
       "Tensor",
       isin},
      {"isfinite(Tensor self) -> Tensor", isfinite},
      {"isinf(Tensor self) -> Tensor", isinf},
      {"isnan(Tensor self) -> Tensor", isnan},
      {"isneginf(Tensor self) -> Tensor", isneginf},
      {"isposinf(Tensor self) -> Tensor", isposinf},
      {"isreal(Tensor self) -> Tensor", isreal},

      // --- logic and bits
      {"bitwise_not(Tensor self) -> Tensor", bitwise_not},
      {"logical_not(Tensor self) -> Tensor", logical_not},
      {"logical_and(Tensor self, Tensor other) -> Tensor", logical_and},
      {"logical_or(Tensor self, Tensor other) -> Tensor", logical_or},
      {"logical_xor(Tensor self, Tensor other) -> Tensor", logical_xor},
      {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", both},
      {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", both},
      {"bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", both},
      {"__and__.Tensor(Tensor self, Tensor other) -> Tensor", both},
      {"__and__.Scalar(Tensor self, Scalar other) -> Tensor", both},
      {"__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
       [](const Tensor& a, In b) { return a.bitwise_and_(b); }},
      {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", either},
      {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", either},
      {"bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", either},
      {"__or__.Tensor(Tensor self, Tensor other) -> Tensor", either},
      {"__or__.Scalar(Tensor self, Scalar other) -> Tensor", either},
      {"__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
       [](const Tensor& a, In b) { return a.bitwise_or_(b); }},
      {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", one_of},
      {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", one_of},
      {"bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", one_of},
      {"__xor__.Tensor(Tensor self, Tensor other) -> Tensor", one_of},
      {"__xor__.Scalar(Tensor self, Scalar other) -> Tensor", one_of},
      {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", bitwise_left_shift},
      {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", bitwise_left_shift},
      {"bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", bitwise_left_shift},
      {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", bitwise_right_shift},
      {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", bitwise_right_shift},
      {"bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", bitwise_right_shift},
      {"__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", bitwise_left_shift},
      {"__lshift__.Scalar(Tensor self, Scalar other) -> Tensor", bitwise_left_shift},
      {"__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", bitwise_right_shift},
      {"__rshift__.Scalar(Tensor self, Scalar other) -> Tensor", bitwise_right_shift},

      // --- choice
      {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
       [](In condition, In a, In b) { return where(condition, a, b); }},
      {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
       [](In condition, In a, In b) { return where(condition, a, b); }},
      {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
       [](In condition, In a, In b) { return where(condition, a, b); }},
      {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
       [](In condition, In a, In b) { return where(condition, a, b); }},
      {"where(Tensor condition) -> Tensor[]", [](In condition) { return where(condition); }},
      {"masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", masked_fill},
      {"masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", masked_fill},

      // --- every element
      {"_is_all_true(Tensor self) -> Tensor", [](In x) { return all(x); }},
      {"_is_any_true(Tensor self) -> Tensor", [](In x) { return any(x); }},
      {"is_nonzero(Tensor self) -> bool", [](const Tensor& x) { return Value{x.item()}; }},
  };
  return kList;
}

}  // namespace sinter::interop
