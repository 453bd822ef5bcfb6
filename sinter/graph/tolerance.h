#pragma once
// When a result is right: the numbers behind an op's Tolerance, in one place for the tests and for checks at run time.
#include "sinter/graph/op.h"

namespace sinter {

// What a floating dtype can hold, and what a kernel that gives it computes with.
struct Precision {
  double computing = 0;  // distance from 1 to the next number of the computing type
  double storing = 0;    // relative error of rounding to the dtype, where that is coarser than the computing type
  double smallest = 0;   // below this a kernel may give zero
  double largest = 0;    // beyond this it may give an infinity
};
Precision precision_of(DType dtype);

// The error against the double-precision referee that an op may make where the referee has `want`.
double allowed_error(DType dtype, const Tolerance& tolerance, double want);

// Whether a result is the referee's up to this error. NaN agrees with NaN, and an infinity with what the dtype cannot hold.
bool agrees(DType dtype, double got, double want, double allowed);

}  // namespace sinter
