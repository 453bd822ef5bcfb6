// Orthogonal polynomials. Their scalar functions are those of polynomials.embed.
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/special.h"

namespace sinter {

namespace {

#define SINTER_POLYNOMIAL(Struct, op_name, function)                                                          \
  struct Struct : Pointwise<Struct> {                                                                         \
    static constexpr auto name = op_name;                                                                     \
    static constexpr Typing typing = Typing::kFloat;                                                          \
    SINTER_BODY((x, n), function(x, n))                                                                       \
    static constexpr NotDifferentiable grad{"PyTorch has no gradients of orthogonal polynomials"};            \
    static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};                                         \
    static constexpr Domain domain_of_inputs{-1.5, 6};                                                        \
  };

SINTER_POLYNOMIAL(ChebyshevT, "special_chebyshev_polynomial_t", chebyshev_t)
SINTER_POLYNOMIAL(ChebyshevU, "special_chebyshev_polynomial_u", chebyshev_u)
SINTER_POLYNOMIAL(ChebyshevV, "special_chebyshev_polynomial_v", chebyshev_v)
SINTER_POLYNOMIAL(ChebyshevW, "special_chebyshev_polynomial_w", chebyshev_w)
SINTER_POLYNOMIAL(HermiteH, "special_hermite_polynomial_h", hermite_h)
SINTER_POLYNOMIAL(HermiteHe, "special_hermite_polynomial_he", hermite_he)
SINTER_POLYNOMIAL(LaguerreL, "special_laguerre_polynomial_l", laguerre_l)
SINTER_POLYNOMIAL(LegendreP, "special_legendre_polynomial_p", legendre_p)
#undef SINTER_POLYNOMIAL

// From [0, 1] to [-1, 1].
TensorArg shifted(const TensorArg& x) { return x.is_scalar() ? TensorArg(2 * x.scalar().to_double() - 1) : TensorArg(x * 2 - 1); }

}  // namespace

namespace special {

Tensor chebyshev_polynomial_t(const TensorArg& x, const TensorArg& n) { return call<ChebyshevT>({x, n}); }
Tensor chebyshev_polynomial_u(const TensorArg& x, const TensorArg& n) { return call<ChebyshevU>({x, n}); }
Tensor chebyshev_polynomial_v(const TensorArg& x, const TensorArg& n) { return call<ChebyshevV>({x, n}); }
Tensor chebyshev_polynomial_w(const TensorArg& x, const TensorArg& n) { return call<ChebyshevW>({x, n}); }
Tensor shifted_chebyshev_polynomial_t(const TensorArg& x, const TensorArg& n) {
  UserPosition here(x.where());
  return chebyshev_polynomial_t(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_u(const TensorArg& x, const TensorArg& n) {
  UserPosition here(x.where());
  return chebyshev_polynomial_u(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_v(const TensorArg& x, const TensorArg& n) {
  UserPosition here(x.where());
  return chebyshev_polynomial_v(shifted(x), n);
}
Tensor shifted_chebyshev_polynomial_w(const TensorArg& x, const TensorArg& n) {
  UserPosition here(x.where());
  return chebyshev_polynomial_w(shifted(x), n);
}
Tensor hermite_polynomial_h(const TensorArg& x, const TensorArg& n) { return call<HermiteH>({x, n}); }
Tensor hermite_polynomial_he(const TensorArg& x, const TensorArg& n) { return call<HermiteHe>({x, n}); }
Tensor laguerre_polynomial_l(const TensorArg& x, const TensorArg& n) { return call<LaguerreL>({x, n}); }
Tensor legendre_polynomial_p(const TensorArg& x, const TensorArg& n) { return call<LegendreP>({x, n}); }

}  // namespace special

OpFamily polynomial_ops() {
  static const Op* const ops[] = {&op_of<ChebyshevT>, &op_of<ChebyshevU>, &op_of<ChebyshevV>, &op_of<ChebyshevW>,
                                  &op_of<HermiteH>,   &op_of<HermiteHe>,  &op_of<LaguerreL>,  &op_of<LegendreP>};
  return ops;
}

}  // namespace sinter
