#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

Lion::Lion(const TensorList& params, const LionOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Lion::Lion(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Lion::check_options() {
  for (auto& group : groups_) check_common("Lion", group.options());
}

void Lion::begin(State& state, const Tensor& param, const LionOptions&) const {
  begin_zero(state, "exp_avg", param);
}

void Lion::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const LionOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
    Tensor mean = state["exp_avg"];
    // The step looks further ahead than what is remembered.
    param.add_(sign(lerp(mean, grad, number([&o] { return 1 - o.betas().first; }))), number([&o] { return -o.lr(); }));
    mean.lerp_(grad, 1 - o.betas().second);
  });
}

}  // namespace sinter::optim
