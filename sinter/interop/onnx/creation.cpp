// Tensors from nothing: random draws, windows, identities.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Tensor identity_like(In x, MaybeType dtype, Int k) {
  const Shape s = x.sizes();
  check(s.rank() == 2, "EyeLike: the operand has {} dimensions", s.rank());
  const TensorOptions options = TensorOptions(kInt64).device(x.tensor().device());
  const Tensor row = arange_of_size(s[0], options).unsqueeze(1), column = arange_of_size(s[1], options);
  return eq(add(row, k), column).to(dtype.value_or(x.dtype()));
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), over n or n - 1.
Tensor window(const Dim& size, DType dtype, bool periodic, double a0, double a1, double a2) {
  const Dim over = periodic ? size : size - 1;
  const Tensor angle = div(mul(arange_of_size(size, kFloat64), 2 * M_PI), TensorArg(over));
  return add(sub(mul(cos(mul(angle, 2)), a2), mul(cos(angle), a1)), a0).to(dtype);
}

// The default stream is used whatever the seed: a seed would make every call draw the same.
Tensor uniform(const Shape& shape, DType dtype, double low, double high, const TensorOptions& options) {
  return add(mul(rand(shape, TensorOptions(options).dtype(dtype)), high - low), low);
}
Tensor normal_of(const Shape& shape, DType dtype, double mean, double scale, const TensorOptions& options) {
  return add(mul(randn(shape, TensorOptions(options).dtype(dtype)), scale), mean);
}

}  // namespace

std::span<const Function> creation_operators() {
  static const Function kList[] = {
      {"onnx::EyeLike.9(Tensor input, *, ScalarType? dtype=None, int k=0) -> Tensor", identity_like},
      {"onnx::HannWindow.17(int size, *, ScalarType output_datatype=6, int periodic=1) -> Tensor",
       [](const Dim& size, DType dtype, bool periodic) { return window(size, dtype, periodic, 0.5, 0.5, 0); }},
      {"onnx::HammingWindow.17(int size, *, ScalarType output_datatype=6, int periodic=1) -> Tensor",
       [](const Dim& size, DType dtype, bool periodic) {
         return window(size, dtype, periodic, 25.0 / 46, 21.0 / 46, 0);
       }},
      {"onnx::BlackmanWindow.17(int size, *, ScalarType output_datatype=6, int periodic=1) -> Tensor",
       [](const Dim& size, DType dtype, bool periodic) { return window(size, dtype, periodic, 0.42, 0.5, 0.08); }},

      // --- random draws
      {"onnx::RandomUniform.1(*, int[] shape, ScalarType dtype=6, float low=0.0, float high=1.0, float? seed=None) -> Tensor",
       [](Sizes shape, DType dtype, double low, double high, Ignored) { return uniform(shape, dtype, low, high, {}); }},
      {"onnx::RandomNormal.1(*, int[] shape, ScalarType dtype=6, float mean=0.0, float scale=1.0, float? seed=None) -> Tensor",
       [](Sizes shape, DType dtype, double mean, double scale, Ignored) { return normal_of(shape, dtype, mean, scale, {}); }},
      {"onnx::RandomUniformLike.1(Tensor input, *, ScalarType? dtype=None, float low=0.0, float high=1.0, float? seed=None) -> "
       "Tensor",
       [](In x, MaybeType dtype, double low, double high, Ignored) {
         return uniform(x.sizes(), dtype.value_or(x.dtype()), low, high, x.tensor().options());
       }},
      {"onnx::RandomNormalLike.1(Tensor input, *, ScalarType? dtype=None, float mean=0.0, float scale=1.0, float? seed=None) -> "
       "Tensor",
       [](In x, MaybeType dtype, double mean, double scale, Ignored) {
         return normal_of(x.sizes(), dtype.value_or(x.dtype()), mean, scale, x.tensor().options());
       }},
      {"onnx::Bernoulli.15(Tensor input, *, ScalarType? dtype=None, float? seed=None) -> Tensor",
       [](In x, MaybeType dtype, Ignored) { return bernoulli(x).to(dtype.value_or(x.dtype())); }},
      {"onnx::Multinomial.7(Tensor input, *, ScalarType dtype=3, int sample_size=1, float? seed=None) -> Tensor",
       [](In x, DType dtype, Int count, Ignored) { return multinomial(exp(x), count, true).to(dtype); }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
