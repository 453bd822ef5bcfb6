#pragma once
// Of layer_norm.cpp, for norm.cpp.
#include "sinter/ops/norm.h"

namespace sinter {

// The last `dims` dimensions of x are its rows: normalised, then weight and bias, where they are defined; and the mean and the
// inverse deviation of each row.
TensorTriple layer_norm_of_rows(const TensorArg& x, int64_t dims, const Tensor& weight, const Tensor& bias, double eps);
// The gradients of x, weight and bias, as far as they are wanted, in the type that they are computed in; `rows` dimensions are a
// row.
TensorTriple layer_norm_gradients(const Tensor& grad, const Tensor& x, int64_t rows, const Tensor& mean, const Tensor& rstd,
                                  const Tensor& weight, const std::array<bool, 3>& wanted);
Tensor rms_norm_of_rows(const TensorArg& x, int64_t dims, const Tensor& weight, double eps);

}  // namespace sinter
