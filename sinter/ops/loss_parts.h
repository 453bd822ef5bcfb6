#pragma once
// What the losses of loss.cpp and margin_loss.cpp share.
#include "sinter/ops/norm.h"

namespace sinter {

// The losses as they are, their sum or their mean.
Tensor reduced_loss(const char* op, const Tensor& loss, Reduction reduction);

// Operands in f32 where they are half types; the loss is rounded to `dtype` at the end.
struct LossOperands {
  Tensor x, target;
  DType dtype;
};
LossOperands loss_operands(const char* op, const TensorArg& x, const TensorArg& target);
// The same of losses that take whole numbers, too: where both are such they become the default dtype.
LossOperands numeric_operands(const char* op, const TensorArg& x, const TensorArg& target);

}  // namespace sinter
