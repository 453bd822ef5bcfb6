#pragma once
// Normalisations. Half types are computed in f32 and rounded once. Weight, bias, running statistics may be undefined.
#include <array>
#include <tuple>

#include "sinter/tensor/tensor.h"

namespace sinter {

using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;

// Over the last dimensions, whose sizes are normalized_shape: zero mean and unit variance, then weight and bias.
Tensor layer_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// x / sqrt(mean(x²) + eps) * weight over the last dimensions; eps is the dtype's own by default.
Tensor rms_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});
// Over all dimensions but channels (the second). When training, by the batch's own statistics, which are mixed into the
// running ones in place; else by the running ones.
Tensor batch_norm(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// Over groups of channels of each sample.
Tensor group_norm(const TensorArg& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// Over each channel of each sample; with use_input_stats false, by the running statistics.
Tensor instance_norm(const TensorArg& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);
// x / (k + alpha * mean of squares over `size` neighbouring channels) ^ beta.
Tensor local_response_norm(const TensorArg& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
// x / max(p-norm along dim, eps).
Tensor normalize(const TensorArg& x, double p = 2, int64_t dim = 1, double eps = 1e-12);

// --- as exported graphs name them: the result, the mean, and 1 / sqrt(var + eps). Statistics of half types are f32.
TensorTriple native_layer_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight,
                               const Tensor& bias, double eps);
TensorTriple native_group_norm(const TensorArg& x, const Tensor& weight, const Tensor& bias, Dim batch, Dim channels,
                               Dim plane, int64_t groups, double eps);
TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var, bool training,
                                      double momentum, double eps);
TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias, bool training,
                                      double momentum, double eps);
// Statistics are empty: nothing was measured.
TensorTriple _native_batch_norm_legit_no_training(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                                  const Tensor& running_mean, const Tensor& running_var,
                                                  double momentum, double eps);

// Gradients of input, weight and bias, each where its mask is set (undefined elsewhere).
TensorTriple native_layer_norm_backward(const TensorArg& grad_output, const TensorArg& x, const Shape& normalized_shape,
                                        const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                        const Tensor& bias,
                                        const std::array<bool, 3>& output_mask = {true, true, true});
TensorTriple native_group_norm_backward(const TensorArg& grad_output, const TensorArg& x, const Tensor& mean,
                                        const Tensor& rstd, const Tensor& weight, Dim batch, Dim channels, Dim plane,
                                        int64_t groups, const std::array<bool, 3>& output_mask = {true, true, true});

}  // namespace sinter
