// Activations.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// The slope broadcasts from the right, as in no other PRelu.
Tensor sloped(In x, In slope) { return where(lt(x, 0), mul(x, slope), x); }

Tensor selu_of(In x, double alpha, double gamma) {
  return mul(where(gt(x, 0), x, mul(expm1(x), alpha)), gamma);
}

Tensor celu_of(In x, double alpha) { return celu(x, alpha); }

Tensor shrunk(In x, double bias, double lambd) {
  return where(lt(x, -lambd), add(x, bias), where(gt(x, lambd), sub(x, bias), zeros_like(x)));
}

// 1 where the first largest element along a dimension is.
Tensor hardest(In x, Int axis) {
  const int64_t dim = wrap_dim("Hardmax", axis, x.dim());
  Tensor place = argmax(x, dim, true);
  Shape along(std::vector<int64_t>(size_t(x.dim()), 1));
  along[size_t(dim)] = x.size(dim);
  Tensor position = arange_of_size(x.size(dim), TensorOptions(kInt64).device(x.tensor().device())).view(along);
  return eq(position, place).to(x.dtype());
}

std::tuple<Tensor, Tensor> dropout_of(In x, const std::optional<double>& ratio, Any training, Ignored) {
  if (!is_given(training) || !value_to<bool>(training)) return {x.tensor(), ones_like(x, kBool)};
  return native_dropout(x, ratio.value_or(0.5), true);
}

}  // namespace

std::span<const Function> activation_operators() {
  static const Function kList[] = {
      {"onnx::Relu.6(Tensor X) -> Tensor", relu},
      {"onnx::LeakyRelu.6(Tensor X, *, float alpha=0.01) -> Tensor", [](In x, const Scalar& alpha) { return leaky_relu(x, alpha); }},
      {"onnx::PRelu.7(Tensor X, Tensor slope) -> Tensor", sloped},
      {"onnx::ThresholdedRelu.10(Tensor X, *, float alpha=1.0) -> Tensor",
       [](In x, double alpha) { return where(gt(x, alpha), x, zeros_like(x)); }},
      {"onnx::Elu.6(Tensor X, *, float alpha=1.0) -> Tensor", [](In x, const Scalar& alpha) { return elu(x, alpha); }},
      {"onnx::Celu.12(Tensor X, *, float alpha=1.0) -> Tensor", celu_of},
      {"onnx::Selu.6(Tensor X, *, float alpha=1.67326319217681884765625, float gamma=1.05070102214813232421875) -> Tensor",
       selu_of},
      {"onnx::Gelu.20(Tensor X, *, str approximate=\"none\") -> Tensor", [](In x, Text how) { return gelu(x, how); }},
      {"onnx::Sigmoid.6(Tensor X) -> Tensor", sigmoid},
      {"onnx::HardSigmoid.6(Tensor X, *, float alpha=0.2, float beta=0.5) -> Tensor",
       [](In x, double alpha, double beta) { return clamp(add(mul(x, alpha), beta), 0.0, 1.0); }},
      {"onnx::HardSwish.14(Tensor X) -> Tensor", hardswish},
      {"onnx::Swish.24(Tensor X, *, float alpha=1.0) -> Tensor",
       [](In x, double alpha) { return mul(x, sigmoid(mul(x, alpha))); }},
      {"onnx::Mish.18(Tensor X) -> Tensor", mish},
      {"onnx::Tanh.6(Tensor input) -> Tensor", tanh},
      {"onnx::Softplus.1(Tensor X) -> Tensor", [](In x) { return softplus(x); }},
      {"onnx::Softsign.1(Tensor input) -> Tensor", softsign},
      {"onnx::Shrink.9(Tensor input, *, float bias=0.0, float lambd=0.5) -> Tensor", shrunk},
      {"onnx::Softmax.13(Tensor input, *, int axis=-1) -> Tensor", [](In x, Int axis) { return softmax(x, axis); }},
      {"onnx::LogSoftmax.13(Tensor input, *, int axis=-1) -> Tensor", [](In x, Int axis) { return log_softmax(x, axis); }},
      {"onnx::Hardmax.13(Tensor input, *, int axis=-1) -> Tensor", hardest},
      {"onnx::Dropout.7(Tensor data, float? ratio=None, bool? training_mode=None, *, int? seed=None) -> (Tensor, Tensor)",
       dropout_of},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
