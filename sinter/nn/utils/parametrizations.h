#pragma once
// Weights that are computed from other parameters whenever their module is called, as PyTorch's parametrizations are: the
// module has these in the place of `weight`, under PyTorch's names. Not part of sinter/sinter.h.
//
//   auto layer = nn::utils::weight_norm(nn::Linear(4, 8));   // parametrizations.weight.original0, .original1, bias
//
// The weight is there while the module is called, through a handle or nn::call; between calls layer->weight is undefined.
// Make optimisers afterwards: the parameters are others.
#include <string>

#include "sinter/base/api.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace nn::utils {

// The same for any member of a module that holds one of its parameters.
void weight_norm(Module& module, Tensor& member, const std::string& name, int64_t dim = 0);
void spectral_norm(Module& module, Tensor& member, const std::string& name, int64_t n_power_iterations = 1,
                   double eps = 1e-12, int64_t dim = 0);
// The parameter again, with the value it has now.
void remove_parametrizations(Module& module, Tensor& member, const std::string& name);

// weight = original0 * original1 / |original1|, a length for each index along dim and a direction; dim -1: one length for all.
template <class M>
M weight_norm(const M& module, int64_t dim = 0) {
  weight_norm(*module, module->weight, "weight", dim);
  return module;
}

// weight = original / its largest singular value, as a matrix whose rows are counted along dim (1 for transposed
// convolutions). Buffers 0._u and 0._v follow the singular vectors by n_power_iterations in each call while training.
template <class M>
M spectral_norm(const M& module, int64_t n_power_iterations = 1, double eps = 1e-12, int64_t dim = 0) {
  spectral_norm(*module, module->weight, "weight", n_power_iterations, eps, dim);
  return module;
}

template <class M>
M remove_parametrizations(const M& module) {
  remove_parametrizations(*module, module->weight, "weight");
  return module;
}

}  // namespace nn::utils
}  // namespace sinter
