#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"

namespace sinter::optim {

Lion::Lion(const TensorList& params, const LionOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Lion::Lion(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Lion::check_options() {
  for (auto& [params, o] : groups_) {
    auto [beta1, beta2] = o.betas();
    check(o.lr() >= 0 && o.weight_decay() >= 0, "Lion: lr {} and weight_decay {} must not be negative", o.lr(),
          o.weight_decay());
    check(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, "Lion: betas {} and {} must be in [0, 1)", beta1, beta2);
  }
}

void Lion::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const LionOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
    if (!state["exp_avg"].defined()) begin_zero(state, "exp_avg", param);
    Tensor mean = state["exp_avg"];
    // The step looks further ahead than what is remembered.
    param.add_(sign(lerp(mean, grad, number([&o] { return 1 - o.betas().first; }))), number([&o] { return -o.lr(); }));
    mean.lerp_(grad, 1 - o.betas().second);
  });
}

}  // namespace sinter::optim
