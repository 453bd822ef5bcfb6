#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/ops/view.h"

namespace sinter::nn::utils {

Tensor parameters_to_vector(const TensorList& parameters, Where where) {
  UserPosition here(where);
  TensorList parts;
  for (auto& parameter : parameters) parts.push_back(parameter.reshape({-1}));
  check(!parts.empty(), "parameters_to_vector: there are no parameters");
  return cat(parts);
}

void vector_to_parameters(const Tensor& vector, const TensorList& parameters, Where where) {
  UserPosition here(where);
  NoGradGuard no_grad;
  Dim wanted = 0, at = 0;
  for (auto& parameter : parameters) wanted = wanted + parameter.numel();
  check(vector.dim() == 1 && vector.size(0) == wanted, "vector_to_parameters: a vector {} for {} elements",
        vector.sizes(), wanted);
  for (auto& parameter : parameters) {
    parameter.copy_(vector.narrow(0, at, parameter.numel()).view(parameter.sizes()));
    at = at + parameter.numel();
  }
}

}  // namespace sinter::nn::utils
