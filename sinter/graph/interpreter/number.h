#pragma once
// Scalars of the interpreter and their conversions.
#include <cstdint>

#include "sinter/tensor/dtype.h"
#include "sinter/tensor/scalar.h"

namespace sinter::interpreter {

// Toward zero. What no int64 can hold gives the lowest one, as the processor does.
int64_t truncate(double value);
// The same for an integer type; what does not fit wraps, but int32 too has the processor's lowest one for it.
int64_t to_integer(DType dtype, double value);
// The integer as the dtype stores it: two's complement of its width, 0 or 1 for bool.
int64_t wrap_integer(DType dtype, int64_t value);
// The nearest value that the floating dtype can hold.
double round_to(DType dtype, double value);

// A double or an integer.
struct Number {
  bool floating = false;
  union {
    double f;
    int64_t i = 0;
  };

  Number() = default;
  Number(double v) : floating(true), f(v) {}
  Number(int64_t v) : i(v) {}
  explicit Number(const Scalar& s) : floating(s.is_floating()) {
    if (floating)
      f = s.to_double();
    else
      i = s.to_int();
  }

  double to_double() const { return floating ? f : double(i); }
  int64_t to_int() const { return floating ? truncate(f) : i; }
  bool truth() const { return floating ? f != 0 : i != 0; }
  // The same number in the category of the dtype: double, integer, or 0 and 1 for bool.
  Number as(DType dtype) const {
    if (is_floating(dtype)) return to_double();
    return dtype == kBool ? int64_t(truth()) : to_int();
  }
};

}  // namespace sinter::interpreter
