// Normalisations.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

IntList all_but_channels(In x) {
  IntList out = {0};
  for (int64_t d = 2; d < x.dim(); ++d) out.push_back(d);
  return out;
}

// Training, the running statistics are results.
std::tuple<Tensor, Tensor, Tensor> batch_normalization(In x, Maybe scale, Maybe bias, Maybe mean_of, Maybe variance_of, double eps,
                                                       double momentum, bool training, Ignored) {
  if (!training) return {batch_norm(x, mean_of, variance_of, scale, bias, false, 0, eps), mean_of, variance_of};
  const IntList dims = all_but_channels(x);
  auto mixed = [&](const Tensor& running, const Tensor& now) { return add(mul(running, momentum), mul(now, 1 - momentum)); };
  const Tensor now_mean = mean(x, dims), now_variance = var(x, dims, 0);
  return {batch_norm(x, {}, {}, scale, bias, true, 0, eps), mixed(mean_of, now_mean), mixed(variance_of, now_variance)};
}

Tensor instance_normalization(In x, Maybe scale, Maybe bias, double eps) {
  return instance_norm(x, {}, {}, scale, bias, true, 0, eps);
}

Shape from_axis(In x, Int axis) { return x.sizes().slice(size_t(wrap_dim("LayerNormalization", axis, x.dim()))); }

// Also the mean and the inverse deviation, with dimensions of size 1 where they were taken.
ValueList layer_normalization(In x, Maybe scale, Maybe bias, Int axis, double eps, Ignored, Int output_count) {
  const Shape shape = from_axis(x, axis);
  const bool is_whole = scale.defined() && scale.sizes() == shape && (!bias.defined() || bias.sizes() == shape);
  if (output_count <= 1 && is_whole) return {{layer_norm(x, shape, scale, bias, eps)}};
  auto [out, mean_of, deviation] = native_layer_norm(x, shape, {}, {}, eps);
  if (scale.defined()) out = mul(out, scale);
  if (bias.defined()) out = add(out, bias);
  return {{out}, {mean_of}, {deviation}};
}

Tensor rms_normalization(In x, Maybe scale, Int axis, double eps, Ignored) {
  const Shape shape = from_axis(x, axis);
  if (scale.sizes() == shape) return rms_norm(x, shape, scale, eps);
  return mul(rms_norm(x, shape, {}, eps), scale);
}

// Scale and bias of each group, before version 21.
Tensor group_normalization_by_group(In x, Maybe scale, Maybe bias, double eps, Int groups) {
  const int64_t channels = x.size(1);
  check(groups > 0 && channels % groups == 0, "GroupNormalization: {} groups of {} channels", groups, channels);
  auto of_channels = [&](const Tensor& t) { return repeat_interleave(t, Dim(channels / groups)); };
  return group_norm(x, groups, of_channels(scale), of_channels(bias), eps);
}

// `p` is 1 or 2; along one dimension.
Tensor lp_normalization(In x, Int axis, Int p) {
  const Tensor size = norm(x, p, {axis}, true);
  return where(eq(size, 0), zeros_like(x), div(x, where(eq(size, 0), ones_like(size), size)));
}

Tensor mean_variance_normalization(In x, MaybeInts axes) {
  const IntList dims = axes.value_or(IntList{0, 2, 3});
  return div(sub(x, mean(x, dims, true)), add(std(x, dims, 0, true), 1e-9));
}

Tensor response_normalization(In x, Int size, double alpha, double beta, double bias) {
  return local_response_norm(x, size, alpha, beta, bias);
}

}  // namespace

std::span<const Function> normalization_operators() {
  static const Function kList[] = {
      {"onnx::BatchNormalization.7(Tensor X, Tensor scale, Tensor B, State input_mean, State input_var, *, float epsilon=1e-05, float "
       "momentum=0.9, int training_mode=0, int? spatial=None) -> (Tensor, Tensor, Tensor)",
       batch_normalization},
      {"onnx::InstanceNormalization.6(Tensor input, Tensor scale, Tensor B, *, float epsilon=1e-05) -> Tensor",
       instance_normalization},
      {"onnx::LayerNormalization.17(Tensor X, Tensor Scale, Tensor? B=None, *, int axis=-1, float epsilon=1e-05, int stash_type=1, "
       "int output_count=1) -> (Tensor, Tensor, Tensor)",
       layer_normalization},
      {"onnx::RMSNormalization.23(Tensor X, Tensor scale, *, int axis=-1, float epsilon=1e-05, int stash_type=1) -> Tensor",
       rms_normalization},
      {"onnx::GroupNormalization.18(Tensor X, Tensor scale, Tensor bias, *, float epsilon=1e-05, int num_groups) -> Tensor",
       group_normalization_by_group},
      {"onnx::GroupNormalization.21(Tensor X, Tensor scale, Tensor bias, *, float epsilon=1e-05, int num_groups, int stash_type=1) "
       "-> Tensor",
       [](In x, Maybe scale, Maybe bias, double eps, Int groups, Ignored) { return group_norm(x, groups, scale, bias, eps); }},
      {"onnx::LpNormalization.1(Tensor input, *, int axis=-1, int p=2) -> Tensor", lp_normalization},
      {"onnx::MeanVarianceNormalization.9(Tensor X, *, int[]? axes=None) -> Tensor", mean_variance_normalization},
      {"onnx::LRN.1(Tensor X, *, int size, float alpha=0.0001, float beta=0.75, float bias=1.0) -> Tensor", response_normalization},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
