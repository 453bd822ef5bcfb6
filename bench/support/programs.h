#pragma once
// Small programs that benches time beside PyTorch's; bench/peers/torch_programs.py has the same, by the same names.
#include <string>

#include "sinter/sinter.h"

namespace sinter::bench::programs {

// The tensors of a call: arguments, then weights.
using Program = TensorList (*)(const TensorList& in);

TensorList softmax(const TensorList& in);
TensorList cross_entropy(const TensorList& in);      // of logits and targets
TensorList layer_norm(const TensorList& in);         // x, weight, bias
TensorList rms_norm_residual(const TensorList& in);  // x, residual, weight; gives their sum too
TensorList gelu_mlp(const TensorList& in);           // x, weight, bias, weight, bias
TensorList swiglu(const TensorList& in);             // x, gate, up, down
TensorList rotary(const TensorList& in);             // x, cos, sin
// x [batch, length, width] and weight and bias of a norm, of one product for queries, keys and values, and of the output.
TensorList attention_block(const TensorList& in);
TensorList bn_relu_conv(const TensorList& in);  // x, mean, variance, weight, bias, filters
// One step, the 10th, in place, in PyTorch's arithmetic: parameter, gradient and both moments.
TensorList adamw(const TensorList& in);

// The one of that name; null where there is none.
Program find(const std::string& name);

}  // namespace sinter::bench::programs
