#pragma once
// Activation functions.
#include <string_view>

#include "sinter/tensor/tensor.h"

namespace sinter {

// max(x, 0).
Tensor relu(const TensorArg& x);
// x held between 0 and 6.
Tensor relu6(const TensorArg& x);
// x Φ(x) with Φ the normal distribution function; approximate = "tanh" for the usual approximation.
Tensor gelu(const TensorArg& x, std::string_view approximate = "none");
// x * sigmoid(x).
Tensor silu(const TensorArg& x);
// x * tanh(softplus(x)).
Tensor mish(const TensorArg& x);
// x held between the two bounds.
Tensor hardtanh(const TensorArg& x, const Scalar& min_val = -1, const Scalar& max_val = 1);
// x * relu6(x + 3) / 6.
Tensor hardswish(const TensorArg& x);
// relu6(x + 3) / 6.
Tensor hardsigmoid(const TensorArg& x);
// x, or slope * x below zero.
Tensor leaky_relu(const TensorArg& x, const Scalar& negative_slope = 0.01);
// x, or alpha * (exp(x) - 1) below zero.
Tensor elu(const TensorArg& x, const Scalar& alpha = 1.0);
// elu with the fixed scale and alpha that keep mean and variance.
Tensor selu(const TensorArg& x);
// x, or alpha * (exp(x / alpha) - 1) below zero.
Tensor celu(const TensorArg& x, const Scalar& alpha = 1.0);
// log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold.
Tensor softplus(const TensorArg& x, const Scalar& beta = 1.0, const Scalar& threshold = 20.0);
// log(sigmoid(x)).
Tensor logsigmoid(const TensorArg& x);
// x / (1 + |x|).
Tensor softsign(const TensorArg& x);
// x where it exceeds the threshold, `value` elsewhere.
Tensor threshold(const TensorArg& x, const Scalar& threshold, const Scalar& value);
// The first half of a dimension times the sigmoid of its second half.
Tensor glu(const TensorArg& x, int64_t dim = -1);

}  // namespace sinter
