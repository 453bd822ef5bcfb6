#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

Adagrad::Adagrad(const TensorList& params, const AdagradOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Adagrad::Adagrad(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Adagrad::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("Adagrad", o);
    check(o.lr_decay() >= 0 && o.initial_accumulator_value() >= 0,
          "Adagrad: lr_decay {} and initial_accumulator_value {} must not be negative", o.lr_decay(),
          o.initial_accumulator_value());
  }
}

void Adagrad::begin(State& state, const Tensor& param, const AdagradOptions& o) const {
  begin_full(state, "sum", param, param.sizes(), o.initial_accumulator_value());
}

void Adagrad::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const AdagradOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) grad = add(grad, param, o.weight_decay());
    Tensor sum = state["sum"];
    sum.addcmul_(grad, grad);
    Scalar rate = number([&o, &state] { return -o.lr() / (1 + double(state.steps - 1) * o.lr_decay()); });
    param.addcdiv_(grad, sqrt(sum).add_(o.eps()), rate);
  });
}

}  // namespace sinter::optim
