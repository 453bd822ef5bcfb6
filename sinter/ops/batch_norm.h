#pragma once
// Of batch_norm.cpp, for norm.cpp.
#include "sinter/ops/norm.h"

namespace sinter {

// x by the statistics of its channels, then weight and bias, where they are defined; and these statistics, a mean and a
// variance a channel.
TensorTriple batch_norm_training(const TensorArg& x, const Tensor& weight, const Tensor& bias, double eps);

}  // namespace sinter
