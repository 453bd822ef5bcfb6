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

static Tensor total_norm(const char* function, const TensorList& tensors, double norm_type, bool error_if_nonfinite) {
  if (tensors.empty()) return tensor(0.0);
  NoGradGuard no_grad;
  // The usual one adds up squares and takes one root.
  TensorList parts;
  for (auto& one : tensors)
    parts.push_back(norm_type == 2 ? square(one.to(kFloat32)).sum() : norm(one, norm_type).to(kFloat32));
  Tensor total = norm_type == 2 ? stack(parts).sum().sqrt() : norm(stack(parts), norm_type);
  if (error_if_nonfinite) {
    double value = total.item<double>();
    check(std::isfinite(value), "{}: the norm of the gradients is {}, so they cannot be clipped", function, value);
  }
  return total;
}

Tensor get_total_norm(const TensorList& tensors, double norm_type, bool error_if_nonfinite, Where where) {
  UserPosition here(where);
  return total_norm("get_total_norm", tensors, norm_type, error_if_nonfinite);
}

Tensor clip_grad_norm_(const TensorList& parameters, double max_norm, double norm_type, bool error_if_nonfinite,
                       Where where) {
  UserPosition here(where);
  NoGradGuard no_grad;
  TensorList grads = gradients_of(parameters);
  Tensor total = total_norm("clip_grad_norm_", grads, norm_type, error_if_nonfinite);
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
