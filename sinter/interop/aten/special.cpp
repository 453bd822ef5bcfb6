// Special functions.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/special.h"

namespace sinter::interop {

std::span<const Function> special_functions() {
  static const Function kList[] = {
      {"lgamma(Tensor self) -> Tensor", lgamma},
      {"digamma(Tensor self) -> Tensor", digamma},
      {"polygamma(int n, Tensor self) -> Tensor", [](Int n, In x) { return polygamma(n, x); }},
      {"mvlgamma(Tensor self, int p) -> Tensor", mvlgamma},
      {"igamma(Tensor self, Tensor other) -> Tensor", gammainc},
      {"igammac(Tensor self, Tensor other) -> Tensor", gammaincc},
      {"erfinv(Tensor self) -> Tensor", erfinv},
      {"special_gammaln(Tensor self) -> Tensor", lgamma},
      {"special_digamma(Tensor self) -> Tensor", digamma},
      {"special_psi(Tensor self) -> Tensor", digamma},
      {"special_polygamma(int n, Tensor self) -> Tensor", [](Int n, In x) { return polygamma(n, x); }},
      {"special_multigammaln(Tensor self, int p) -> Tensor", mvlgamma},
      {"special_gammainc(Tensor self, Tensor other) -> Tensor", gammainc},
      {"special_gammaincc(Tensor self, Tensor other) -> Tensor", gammaincc},
      {"special_erfinv(Tensor self) -> Tensor", erfinv},
      {"special_erfcx(Tensor self) -> Tensor", special::erfcx},
      {"special_ndtr(Tensor self) -> Tensor", special::ndtr},
      {"special_log_ndtr(Tensor self) -> Tensor", special::log_ndtr},
      {"special_ndtri(Tensor self) -> Tensor", special::ndtri},
      {"special_entr(Tensor self) -> Tensor", special::entr},
      {"special_zeta(Tensor self, Tensor other) -> Tensor", special::zeta},
      {"special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", special::zeta},
      {"special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", special::zeta},
      {"special_xlog1py(Tensor self, Tensor other) -> Tensor", special::xlog1py},
      {"special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", special::xlog1py},
      {"special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", special::xlog1py},

      // --- Bessel functions
      {"special_i0e(Tensor self) -> Tensor", special::i0e},
      {"special_i1(Tensor self) -> Tensor", special::i1},
      {"special_i1e(Tensor self) -> Tensor", special::i1e},
      {"i0(Tensor self) -> Tensor", i0},
      {"special_i0(Tensor self) -> Tensor", i0},
      {"special_modified_bessel_i0(Tensor self) -> Tensor", i0},
      {"special_modified_bessel_i1(Tensor self) -> Tensor", special::i1},
      {"special_bessel_j0(Tensor self) -> Tensor", special::bessel_j0},
      {"special_bessel_j1(Tensor self) -> Tensor", special::bessel_j1},
      {"special_bessel_y0(Tensor self) -> Tensor", special::bessel_y0},
      {"special_bessel_y1(Tensor self) -> Tensor", special::bessel_y1},
      {"special_modified_bessel_k0(Tensor self) -> Tensor", special::modified_bessel_k0},
      {"special_modified_bessel_k1(Tensor self) -> Tensor", special::modified_bessel_k1},
      {"special_scaled_modified_bessel_k0(Tensor x) -> Tensor", special::scaled_modified_bessel_k0},
      {"special_scaled_modified_bessel_k1(Tensor x) -> Tensor", special::scaled_modified_bessel_k1},
      {"special_spherical_bessel_j0(Tensor x) -> Tensor", special::spherical_bessel_j0},
      {"special_airy_ai(Tensor x) -> Tensor", special::airy_ai},

      // --- orthogonal polynomials
      {"special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", special::chebyshev_polynomial_t},
      {"special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", special::chebyshev_polynomial_t},
      {"special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", special::chebyshev_polynomial_t},
      {"special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", special::chebyshev_polynomial_u},
      {"special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", special::chebyshev_polynomial_u},
      {"special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", special::chebyshev_polynomial_u},
      {"special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", special::chebyshev_polynomial_v},
      {"special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", special::chebyshev_polynomial_v},
      {"special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", special::chebyshev_polynomial_v},
      {"special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", special::chebyshev_polynomial_w},
      {"special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", special::chebyshev_polynomial_w},
      {"special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", special::chebyshev_polynomial_w},
      {"special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_t},
      {"special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_t},
      {"special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor", special::shifted_chebyshev_polynomial_t},
      {"special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_u},
      {"special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_u},
      {"special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor", special::shifted_chebyshev_polynomial_u},
      {"special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_v},
      {"special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_v},
      {"special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor", special::shifted_chebyshev_polynomial_v},
      {"special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_w},
      {"special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor", special::shifted_chebyshev_polynomial_w},
      {"special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor", special::shifted_chebyshev_polynomial_w},
      {"special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", special::hermite_polynomial_h},
      {"special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor", special::hermite_polynomial_h},
      {"special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor", special::hermite_polynomial_h},
      {"special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", special::hermite_polynomial_he},
      {"special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor", special::hermite_polynomial_he},
      {"special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor", special::hermite_polynomial_he},
      {"special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", special::laguerre_polynomial_l},
      {"special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor", special::laguerre_polynomial_l},
      {"special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor", special::laguerre_polynomial_l},
      {"special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", special::legendre_polynomial_p},
      {"special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor", special::legendre_polynomial_p},
      {"special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor", special::legendre_polynomial_p},

      // --- draws from distributions of these
      {"poisson(Tensor self, Generator? generator=None) -> Tensor", [](In rate, Unset) { return poisson(rate); }},
      {"binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
       [](In count, In probability, Unset) { return binomial(count, probability); }},
      {"_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
       [](In alpha, Unset) { return _standard_gamma(alpha); }},
  };
  return kList;
}

}  // namespace sinter::interop
