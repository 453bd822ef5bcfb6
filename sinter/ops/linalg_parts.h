#pragma once
// What the sources of linalg.h share.
#include <string>

#include "sinter/tensor/tensor.h"

namespace sinter {

// The operand as matrices of f32 or f64, or of complex numbers where those are taken; PyTorch's refusals name the op.
Tensor matrix_operand(const char* op, const TensorArg& a, bool takes_complex = false);
Tensor square_operand(const char* op, const TensorArg& a, bool takes_complex = false);
// Both with the batch that theirs broadcast to.
std::pair<Tensor, Tensor> with_common_batch(const char* op, const Tensor& a, const Tensor& b);

}  // namespace sinter
