// Bessel functions of orders 0 and 1 and Airy's function. Their scalar functions are those of bessel.embed.
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/real_function.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/special.h"

namespace sinter {

namespace {

// Derivatives of order 1 have f(x) / x in them, which at 0 is f'(0).
Tensor over(const Tensor& value, const TensorArg& x, double at_zero) {
  Tensor zero = x == 0;
  return where(zero, at_zero, value / where(zero, 1, x));
}

#define SINTER_BESSEL_FUNCTION(Struct, op_name, function, derivative, low, high)                                      \
  SINTER_REAL_OP(Struct, op_name, function, derivative, static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6}; \
                 static constexpr Domain domain_of_inputs{low, high};)

SINTER_BESSEL_FUNCTION(J0, "special_bessel_j0", bessel_j0, -special::bessel_j1(x), -12, 40)
SINTER_BESSEL_FUNCTION(J1, "special_bessel_j1", bessel_j1, special::bessel_j0(x) - over(y, x, 0.5), -12, 40)
SINTER_BESSEL_FUNCTION(Y0, "special_bessel_y0", bessel_y0, -special::bessel_y1(x), 0.2, 40)
SINTER_BESSEL_FUNCTION(Y1, "special_bessel_y1", bessel_y1, special::bessel_y0(x) - y / x, 0.2, 40)
SINTER_BESSEL_FUNCTION(I0, "i0", bessel_i0, special::i1(x), -6, 6)
SINTER_BESSEL_FUNCTION(I1, "special_i1", bessel_i1, i0(x) - over(y, x, 0.5), -6, 6)
SINTER_BESSEL_FUNCTION(ScaledI0, "special_i0e", scaled_bessel_i0, special::i1e(x) - y * sign(x), -12, 40)
SINTER_BESSEL_FUNCTION(ScaledI1, "special_i1e", scaled_bessel_i1, special::i0e(x) - y * sign(x) - over(y, x, 0.5), -12, 40)
SINTER_BESSEL_FUNCTION(K0, "special_modified_bessel_k0", bessel_k0, -special::modified_bessel_k1(x), 0.2, 6)
SINTER_BESSEL_FUNCTION(K1, "special_modified_bessel_k1", bessel_k1, -special::modified_bessel_k0(x) - y / x, 0.2, 6)
SINTER_BESSEL_FUNCTION(ScaledK0, "special_scaled_modified_bessel_k0", scaled_bessel_k0,
                       y - special::scaled_modified_bessel_k1(x), 0.2, 40)
SINTER_BESSEL_FUNCTION(ScaledK1, "special_scaled_modified_bessel_k1", scaled_bessel_k1,
                       y - special::scaled_modified_bessel_k0(x) - y / x, 0.2, 40)
#undef SINTER_BESSEL_FUNCTION

struct AiryAi : Pointwise<AiryAi> {
  static constexpr auto name = "special_airy_ai";
  static constexpr Typing typing = Typing::kFloat;
  SINTER_BODY((x), airy_ai(x))
  static constexpr NotDifferentiable grad{"its derivative is a function of its own, which neither Sinter nor PyTorch has"};
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  static constexpr Domain domain_of_inputs{-15, 5};
};

}  // namespace

Tensor i0(const TensorArg& x) { return call<I0>({x}); }

namespace special {

Tensor i0e(const TensorArg& x) { return call<ScaledI0>({x}); }
Tensor i1(const TensorArg& x) { return call<I1>({x}); }
Tensor i1e(const TensorArg& x) { return call<ScaledI1>({x}); }
Tensor bessel_j0(const TensorArg& x) { return call<J0>({x}); }
Tensor bessel_j1(const TensorArg& x) { return call<J1>({x}); }
Tensor bessel_y0(const TensorArg& x) { return call<Y0>({x}); }
Tensor bessel_y1(const TensorArg& x) { return call<Y1>({x}); }
Tensor modified_bessel_k0(const TensorArg& x) { return call<K0>({x}); }
Tensor modified_bessel_k1(const TensorArg& x) { return call<K1>({x}); }
Tensor scaled_modified_bessel_k0(const TensorArg& x) { return call<ScaledK0>({x}); }
Tensor scaled_modified_bessel_k1(const TensorArg& x) { return call<ScaledK1>({x}); }
Tensor airy_ai(const TensorArg& x) { return call<AiryAi>({x}); }

Tensor spherical_bessel_j0(const TensorArg& x) {
  UserPosition here(x.where());
  Tensor zero = x == 0;
  return where(zero, 1.0, where(isinf(x), 0.0, sin(x) / where(zero, 1, x)));
}

}  // namespace special

OpFamily bessel_ops() {
  static const Op* const ops[] = {&op_of<J0>,       &op_of<J1>,       &op_of<Y0>, &op_of<Y1>, &op_of<I0>,       &op_of<I1>,
                                  &op_of<ScaledI0>, &op_of<ScaledI1>, &op_of<K0>, &op_of<K1>, &op_of<ScaledK0>, &op_of<ScaledK1>,
                                  &op_of<AiryAi>};
  return ops;
}

}  // namespace sinter
