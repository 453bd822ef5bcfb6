#pragma once
// What addmm, addmv, addbmm and their like have in common.
#include "sinter/tensor/tracer.h"

namespace sinter {

// beta * input + alpha * product, without reading the input where beta is 0; plain sums where they are 1. The input broadcasts to
// the product. Whole numbers are scaled by whole numbers only.
Tensor add_scaled(const char* op, const TensorArg& input, const Tensor& product, const Scalar& beta, const Scalar& alpha);

}  // namespace sinter
