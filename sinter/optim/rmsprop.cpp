#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

RMSprop::RMSprop(const TensorList& params, const RMSpropOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
RMSprop::RMSprop(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void RMSprop::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("RMSprop", o);
    check(o.alpha() >= 0, "RMSprop: alpha {} must not be negative", o.alpha());
  }
}

void RMSprop::begin(State& state, const Tensor& param, const RMSpropOptions& o) const {
  begin_zero(state, "square_avg", param);
  if (o.centered()) begin_zero(state, "grad_avg", param);
  if (o.momentum() > 0) begin_zero(state, "momentum_buffer", param);
}

void RMSprop::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const RMSpropOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) grad = add(grad, param, o.weight_decay());
    Tensor square = state["square_avg"];
    square.mul_(o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
    Tensor average;
    if (o.centered()) {
      Tensor mean = state["grad_avg"];
      mean.lerp_(grad, 1 - o.alpha());
      average = sqrt(addcmul(square, mean, mean, -1));
    } else {
      average = sqrt(square);
    }
    average.add_(o.eps());
    Scalar rate = number([&o] { return -o.lr(); });
    if (o.momentum() > 0)
      param.add_(state["momentum_buffer"].mul_(number([&o] { return o.momentum(); })).addcdiv_(grad, average), rate);
    else
      param.addcdiv_(grad, average, rate);
  });
}

}  // namespace sinter::optim
