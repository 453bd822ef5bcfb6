#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

Adadelta::Adadelta(const TensorList& params, const AdadeltaOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Adadelta::Adadelta(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Adadelta::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("Adadelta", o);
    check(o.rho() >= 0 && o.rho() <= 1, "Adadelta: rho {} must be in [0, 1]", o.rho());
  }
}

void Adadelta::begin(State& state, const Tensor& param, const AdadeltaOptions&) const {
  for (auto* name : {"square_avg", "acc_delta"}) begin_zero(state, name, param);
}

void Adadelta::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const AdadeltaOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) grad = add(grad, param, o.weight_decay());
    Tensor square = state["square_avg"], steps = state["acc_delta"];
    square.mul_(o.rho()).addcmul_(grad, grad, 1 - o.rho());
    Tensor delta = sqrt(steps + o.eps()) / sqrt(square + o.eps()) * grad;
    steps.mul_(o.rho()).addcmul_(delta, delta, 1 - o.rho());
    param.add_(delta, number([&o] { return -o.lr(); }));
  });
}

}  // namespace sinter::optim
