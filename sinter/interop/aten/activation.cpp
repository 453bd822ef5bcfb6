// Activation functions, and the softmaxes.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

// As decomposed programs name it: a half type is turned into f32 first where `half_to_float`.
Tensor plain_softmax(In x, Int dim, bool half_to_float) {
  return softmax(x, dim, half_to_float ? MaybeType(kFloat32) : std::nullopt);
}
Tensor plain_log_softmax(In x, Int dim, bool half_to_float) {
  return log_softmax(x, dim, half_to_float ? MaybeType(kFloat32) : std::nullopt);
}
// Zeros where all is minus infinity, and no gradients there.
Tensor safe_softmax(In x, Int dim, MaybeType dtype) {
  Tensor none = all(isneginf(x), dim, /*keepdim=*/true);
  return where(none, 0, softmax(where(none, 0, x), dim, dtype));
}
// elu with a factor for its whole and one for what goes into the exponential.
Tensor scaled_elu(In x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  if (scale.to_double() == 1 && input_scale.to_double() == 1) return elu(x, alpha);
  return where(x > 0, mul(x, scale), mul(expm1(mul(x, input_scale)), alpha.to_double() * scale.to_double()));
}

}  // namespace

std::span<const Function> activation_functions() {
  static const Function kList[] = {
      {"relu(Tensor self) -> Tensor", relu},
      {"relu6(Tensor self) -> Tensor", relu6},
      {"silu(Tensor self) -> Tensor", silu},
      {"mish(Tensor self) -> Tensor", mish},
      {"hardswish(Tensor self) -> Tensor", hardswish},
      {"hardsigmoid(Tensor self) -> Tensor", hardsigmoid},
      {"selu(Tensor self) -> Tensor", selu},
      {"log_sigmoid(Tensor self) -> Tensor", logsigmoid},
      {"gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
       [](In x, Text approximate) { return gelu(x, approximate); }},
      {"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh},
      {"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", leaky_relu},
      {"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", scaled_elu},
      {"celu(Tensor self, Scalar alpha=1.) -> Tensor", celu},
      {"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", softplus},
      {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold},
      {"glu(Tensor self, int dim=-1) -> Tensor", glu},
      {"hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", hardshrink},
      {"softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink},
      {"prelu(Tensor self, Tensor weight) -> Tensor", prelu},
      {"_prelu_kernel(Tensor self, Tensor weight) -> Tensor", prelu},
      {"rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? "
       "generator=None) -> Tensor",
       [](In x, const Scalar& lower, const Scalar& upper, bool training, Unset) {
         return rrelu(x, lower, upper, training);
       }},

      {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax},
      {"_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", plain_softmax},
      {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax},
      {"special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", softmax},
      {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", log_softmax},
      {"_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", plain_log_softmax},
      {"special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", log_softmax},

      // --- gradients, as programs that were differentiated call them
      {"_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       [](In grad, In output, Int dim, DType dtype) {
         const Tensor through = mul(grad, output);
         return to(through - mul(output, sum(through, {dim}, true)), dtype);
       }},
      {"_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
       [](In grad, In output, Int dim, DType dtype) {
         return to(sub(grad, exp(output) * sum(grad, {dim}, true)), dtype);
       }},
      {"native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
       [](In grad, In mask, double scale) { return mul(grad, mask) * scale; }},
  };
  return kList;
}

}  // namespace sinter::interop
