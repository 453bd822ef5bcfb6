#pragma once
// Bounds on gradients, applied between backward() and the optimiser's step.
#include "sinter/tensor/tensor.h"

namespace sinter::nn::utils {

// Scales all gradients by one factor so that their common norm is at most max_norm; gives the norm they had. Tensors
// without a gradient are passed over. Nothing is read on the host unless error_if_nonfinite.
Tensor clip_grad_norm_(const TensorList& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false, Where where = Where::current());
// Holds every element of every gradient within [-clip_value, clip_value].
void clip_grad_value_(const TensorList& parameters, double clip_value, Where where = Where::current());

}  // namespace sinter::nn::utils
