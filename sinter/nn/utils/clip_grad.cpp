#include "sinter/nn/init.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn::utils {

static TensorList gradients_of(const TensorList& parameters) {
  TensorList grads;
  for (auto& parameter : parameters)
    if (Tensor grad = parameter.grad(); grad.defined()) grads.push_back(grad);
  return grads;
}

// Of all elements together. The usual one adds up squares and takes one root.
static Tensor total_norm(const TensorList& grads, double norm_type) {
  TensorList parts;
  for (auto& grad : grads)
    parts.push_back(norm_type == 2 ? square(grad.to(kFloat32)).sum() : norm(grad, norm_type).to(kFloat32));
  return norm_type == 2 ? stack(parts).sum().sqrt() : norm(stack(parts), norm_type);
}

Tensor clip_grad_norm_(const TensorList& parameters, double max_norm, double norm_type, bool error_if_nonfinite,
                       Where where) {
  UserPosition here(where);
  NoGradGuard no_grad;
  TensorList grads = gradients_of(parameters);
  if (grads.empty()) return tensor(0.0);
  Tensor total = total_norm(grads, norm_type);
  if (error_if_nonfinite) {
    double value = total.item<double>();
    check(std::isfinite(value), "clip_grad_norm_: the norm of the gradients is {}, so they cannot be clipped", value);
  }
  // Multiplying even when the factor is 1 keeps the host from waiting for the norm.
  Tensor factor = clamp_max(max_norm / (total + 1e-6), 1.0);
  for (auto& grad : grads) grad.mul_(factor.to(grad.dtype()));
  return total;
}

void clip_grad_value_(const TensorList& parameters, double clip_value, Where where) {
  UserPosition here(where);
  NoGradGuard no_grad;
  for (auto& grad : gradients_of(parameters)) grad.clamp_(-clip_value, clip_value);
}

}  // namespace sinter::nn::utils
