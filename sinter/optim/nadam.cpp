#include "sinter/optim/optim.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

NAdam::NAdam(const TensorList& params, const NAdamOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
NAdam::NAdam(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void NAdam::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("NAdam", o);
    check(o.momentum_decay() >= 0, "NAdam: momentum_decay {} must not be negative", o.momentum_decay());
  }
}

Shape NAdam::state_sizes(std::string_view name, const Tensor& param) const {
  return name == "mu_product" ? Shape() : param.sizes();
}

// The momentum of a step.
static double momentum_at(double step, const NAdamOptions& o) {
  return o.betas().first * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay()));
}

void NAdam::begin(State& state, const Tensor& param, const NAdamOptions&) const {
  for (auto* name : {"exp_avg", "exp_avg_sq"}) begin_zero(state, name, param);
  begin_full(state, "mu_product", param, {}, 1);
}

void NAdam::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const NAdamOptions& o) {
    const double beta2 = o.betas().second;
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) {
      if (o.decoupled_weight_decay())
        param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
      else
        grad = add(grad, param, o.weight_decay());
    }
    Tensor mean = state["exp_avg"], square = state["exp_avg_sq"], product = state["mu_product"];
    product.mul_(number([&o, &state] { return momentum_at(double(state.steps), o); }));
    mean.lerp_(grad, number([&o] { return 1 - o.betas().first; }));
    square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    Scalar correction = number([&o, &state] { return 1 - std::pow(o.betas().second, double(state.steps)); });
    Tensor denominator = sqrt(square / correction).add_(o.eps());
    Scalar next = number([&o, &state] { return momentum_at(double(state.steps + 1), o); });
    Scalar of_grad = number([&o, &state] { return -o.lr() * (1 - momentum_at(double(state.steps), o)); });
    Scalar of_mean = number([&o, &state] { return -o.lr() * momentum_at(double(state.steps + 1), o); });
    param.addcdiv_(grad * (of_grad / (1 - product)), denominator);
    param.addcdiv_(mean * (of_mean / (1 - product * next)), denominator);
  });
}

}  // namespace sinter::optim
