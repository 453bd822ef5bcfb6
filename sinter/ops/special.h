#pragma once
// LibTorch's torch::special: special functions, element by element. Those of real functions give f32 on integers.
#include "sinter/base/api.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace special {

// --- other names of functions of the other headers
using sinter::digamma, sinter::erf, sinter::erfc, sinter::erfinv, sinter::exp2, sinter::expm1, sinter::gammainc, sinter::gammaincc,
    sinter::i0, sinter::log1p, sinter::log_softmax, sinter::logit, sinter::logsumexp, sinter::polygamma, sinter::round, sinter::sinc,
    sinter::softmax, sinter::xlogy;
inline Tensor gammaln(const TensorArg& x) { return lgamma(x); }
inline Tensor psi(const TensorArg& x) { return digamma(x); }
inline Tensor multigammaln(const TensorArg& x, int64_t p) { return mvlgamma(x, p); }
inline Tensor expit(const TensorArg& x) { return sigmoid(x); }

// --- the normal distribution and the error function
// The share of the standard normal distribution below x, and its logarithm, accurate for negative x.
Tensor ndtr(const TensorArg& x);
Tensor log_ndtr(const TensorArg& x);
// The quantile of the standard normal distribution; NaN outside [0, 1].
Tensor ndtri(const TensorArg& p);
// exp(x²) erfc(x), which does not vanish for large x.
Tensor erfcx(const TensorArg& x);

// --- entropies and zeta
// -x log(x); 0 at 0, minus infinity below.
Tensor entr(const TensorArg& x);
// x log(1 + y), 0 where x is 0.
Tensor xlog1py(const TensorArg& x, const TensorArg& y);
// Hurwitz' zeta function: the sum of (q + k)^-x over k = 0, 1, … Differentiable by q.
Tensor zeta(const TensorArg& x, const TensorArg& q);

// --- Bessel functions of orders 0 and 1
// Of the first kind.
Tensor bessel_j0(const TensorArg& x);
Tensor bessel_j1(const TensorArg& x);
// Of the second kind; NaN below 0.
Tensor bessel_y0(const TensorArg& x);
Tensor bessel_y1(const TensorArg& x);
// Modified, of the first kind; i0 is a function of sinter, too.
Tensor i1(const TensorArg& x);
inline Tensor modified_bessel_i0(const TensorArg& x) { return i0(x); }
inline Tensor modified_bessel_i1(const TensorArg& x) { return i1(x); }
// The same times exp(-|x|).
Tensor i0e(const TensorArg& x);
Tensor i1e(const TensorArg& x);
// Modified, of the second kind; NaN below 0.
Tensor modified_bessel_k0(const TensorArg& x);
Tensor modified_bessel_k1(const TensorArg& x);
// The same times exp(x).
Tensor scaled_modified_bessel_k0(const TensorArg& x);
Tensor scaled_modified_bessel_k1(const TensorArg& x);
// The spherical one: sin(x) / x, 1 at 0.
Tensor spherical_bessel_j0(const TensorArg& x);
// Airy's function Ai. Without a gradient.
Tensor airy_ai(const TensorArg& x);

// --- orthogonal polynomials of degree n, cut to a whole number; 0 for a negative one. Without gradients
// Chebyshev's, of the first, second, third and fourth kind.
Tensor chebyshev_polynomial_t(const TensorArg& x, const TensorArg& n);
Tensor chebyshev_polynomial_u(const TensorArg& x, const TensorArg& n);
Tensor chebyshev_polynomial_v(const TensorArg& x, const TensorArg& n);
Tensor chebyshev_polynomial_w(const TensorArg& x, const TensorArg& n);
// The same at 2 x - 1.
Tensor shifted_chebyshev_polynomial_t(const TensorArg& x, const TensorArg& n);
Tensor shifted_chebyshev_polynomial_u(const TensorArg& x, const TensorArg& n);
Tensor shifted_chebyshev_polynomial_v(const TensorArg& x, const TensorArg& n);
Tensor shifted_chebyshev_polynomial_w(const TensorArg& x, const TensorArg& n);
// Hermite's, of physicists and of probabilists.
Tensor hermite_polynomial_h(const TensorArg& x, const TensorArg& n);
Tensor hermite_polynomial_he(const TensorArg& x, const TensorArg& n);
// Laguerre's.
Tensor laguerre_polynomial_l(const TensorArg& x, const TensorArg& n);
// Legendre's.
Tensor legendre_polynomial_p(const TensorArg& x, const TensorArg& n);

}  // namespace special
}  // namespace sinter
