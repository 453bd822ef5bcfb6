#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

SGD::SGD(const TensorList& params, const SGDOptions& options) : GroupedOptimizer(params, options) { check_options(); }
SGD::SGD(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void SGD::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("SGD", o);
    check(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
          "SGD: nesterov needs a momentum and no dampening, not {} and {}", o.momentum(), o.dampening());
  }
}

void SGD::begin(State& state, const Tensor& param, const SGDOptions& o) const {
  if (o.momentum() != 0) begin_zero(state, "momentum_buffer", param);
}

void SGD::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, const Tensor& grad, State& state, const SGDOptions& o) {
    Tensor d = o.maximize() ? -grad : grad;
    if (o.weight_decay() != 0) d = add(d, param, o.weight_decay());
    if (o.momentum() != 0) {
      Tensor buffer = state["momentum_buffer"];
      // The first gradient is taken whole.
      Scalar share = o.dampening() == 0
                         ? Scalar(1.0)
                         : number([&o, &state] { return state.steps == state.first ? 1 : 1 - o.dampening(); });
      buffer.mul_(number([&o] { return o.momentum(); })).add_(d, share);
      d = o.nesterov() ? add(d, buffer, number([&o] { return o.momentum(); })) : buffer;
    }
    param.add_(d, number([&o] { return -o.lr(); }));
  });
}

}  // namespace sinter::optim
