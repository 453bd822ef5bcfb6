#include "sinter/optim/optim.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

RAdam::RAdam(const TensorList& params, const RAdamOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
RAdam::RAdam(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void RAdam::check_options() {
  for (auto& group : groups_) check_common("RAdam", group.options());
}

// What the adaptive rate of a step is to be multiplied by, its bias included; nothing while its variance is too large.
static double rectification(double step, double beta2) {
  double missing = 1 - std::pow(beta2, step), at_last = 2 / (1 - beta2) - 1;
  double now = at_last - 2 * step * std::pow(beta2, step) / missing;
  if (now <= 5) return 0;
  return std::sqrt((now - 4) * (now - 2) * at_last / ((at_last - 4) * (at_last - 2) * now)) * std::sqrt(missing);
}

void RAdam::begin(State& state, const Tensor& param, const RAdamOptions&) const {
  for (auto* name : {"exp_avg", "exp_avg_sq"}) begin_zero(state, name, param);
}

void RAdam::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const RAdamOptions& o) {
    const double beta2 = o.betas().second;
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) {
      if (o.decoupled_weight_decay())
        param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
      else
        grad = add(grad, param, o.weight_decay());
    }
    Tensor mean = state["exp_avg"], square = state["exp_avg_sq"];
    mean.lerp_(grad, number([&o] { return 1 - o.betas().first; }));
    square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    Scalar rate = number([&o, &state] { return -o.lr() / (1 - std::pow(o.betas().first, double(state.steps))); });
    // Which of both it is changes from step to step, and the program does not.
    auto rectified = [&o, &state] { return rectification(double(state.steps), o.betas().second); };
    Scalar adaptive = number(rectified), plain = number([rectified] { return rectified() > 0 ? 0.0 : 1.0; });
    Tensor scale = adaptive / (sqrt(square).add_(o.eps())) + plain;
    param.add_(mean * scale, rate);
  });
}

}  // namespace sinter::optim
