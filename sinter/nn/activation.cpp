#include "sinter/nn/activation.h"

#include "sinter/base/error.h"
#include "sinter/nn/init.h"

namespace sinter::nn {

Tensor Softmax2dImpl::forward(const TensorArg& x) {
  UserPosition here(x.where(), "nn::Softmax2d");
  check(x.dim() == 3 || x.dim() == 4, "nn::Softmax2d: expected an input [n, c, h, w] or [c, h, w], got {}", x.sizes());
  return softmax(x, -3);
}

PReLUImpl::PReLUImpl(const PReLUOptions& options) : options(options) {
  check(options.num_parameters() >= 1, "nn::PReLU: expected at least one parameter, got {}", options.num_parameters());
  weight = register_parameter("weight", new_parameter({options.num_parameters()}));
  if (initialises_parameters()) reset_parameters();
}

void PReLUImpl::reset_parameters() { init::constant_(weight, options.init()); }

}  // namespace sinter::nn
