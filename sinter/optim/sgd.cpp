#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"

namespace sinter::optim {

SGD::SGD(const TensorList& params, const SGDOptions& options) : GroupedOptimizer(params, options) { check_options(); }
SGD::SGD(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void SGD::check_options() {
  for (auto& [params, o] : groups_) {
    check(o.lr() >= 0 && o.momentum() >= 0 && o.weight_decay() >= 0,
          "SGD: lr {}, momentum {} and weight_decay {} must not be negative", o.lr(), o.momentum(), o.weight_decay());
    check(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
          "SGD: nesterov needs a momentum and no dampening, not {} and {}", o.momentum(), o.dampening());
  }
}

void SGD::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, const Tensor& grad, State& state, const SGDOptions& o) {
    Tensor d = o.maximize() ? -grad : grad;
    if (o.weight_decay() != 0) d = add(d, param, o.weight_decay());
    if (o.momentum() != 0) {
      Tensor buffer = state["momentum_buffer"];
      if (buffer.defined())
        buffer.mul_(number([&o] { return o.momentum(); })).add_(d, 1 - o.dampening());
      else
        buffer = begin_with(state, "momentum_buffer", param, d);
      d = o.nesterov() ? add(d, buffer, number([&o] { return o.momentum(); })) : buffer;
    }
    param.add_(d, number([&o] { return -o.lr(); }));
  });
}

}  // namespace sinter::optim
