#pragma once
// Functions of complex numbers as formulas over their parts: what `on_complex` of the ops of the same names calls. Branch cuts and
// signed zeros are those of C; nothing overflows in between whose result does not.
#include "sinter/ops/complex_call.h"
#include "sinter/ops/view.h"

namespace sinter::complex_math {

Parts product(const Parts& x, const Parts& y);
Parts quotient(const Parts& x, const Parts& y);
Parts reciprocal(const Parts& z);
Parts scaled(const Parts& z, const TensorArg& factor);
Parts sum(const Parts& x, const Parts& y);
Parts difference(const Parts& x, const Parts& y);
Parts conjugate(const Parts& z);

Parts square(const Parts& z);
Parts sqrt(const Parts& z);
Parts rsqrt(const Parts& z);
Parts exp(const Parts& z);
Parts exp2(const Parts& z);
Parts expm1(const Parts& z);
Parts log(const Parts& z);
Parts log2(const Parts& z);
Parts log10(const Parts& z);
Parts log1p(const Parts& z);
// To the power of a real number, and of a complex one.
Parts power(const Parts& z, double exponent);
Parts power(const Parts& z, const Parts& exponent);
Parts sin(const Parts& z);
Parts cos(const Parts& z);
Parts tan(const Parts& z);
Parts asin(const Parts& z);
Parts acos(const Parts& z);
Parts atan(const Parts& z);
Parts sinh(const Parts& z);
Parts cosh(const Parts& z);
Parts tanh(const Parts& z);
Parts asinh(const Parts& z);
Parts acosh(const Parts& z);
Parts atanh(const Parts& z);
Parts sigmoid(const Parts& z);
// z / |z|, 0 at 0.
Parts sign(const Parts& z);

inline Parts parts_of(const Tensor& z) { return {sinter::real(z), sinter::imag(z)}; }

// As `on_complex`: the function of the one operand.
template <Parts (*kFunction)(const Parts&)>
TensorList of_one(const ComplexCall& c) {
  return {joined(kFunction(c.parts(0)))};
}
// Of an op that is linear in each of its first two operands: four real ones, two where one of them is real.
TensorList of_products(const ComplexCall& c);
// A tensor that is true where the number is not 0.
Tensor truth(const Parts& z);

}  // namespace sinter::complex_math
