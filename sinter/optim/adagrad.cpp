#include "sinter/optim/optim.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/pointwise.h"

namespace sinter::optim {

Adagrad::Adagrad(const TensorList& params, const AdagradOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Adagrad::Adagrad(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Adagrad::check_options() {
  for (auto& [params, o] : groups_) {
    check(o.lr() >= 0 && o.eps() >= 0 && o.weight_decay() >= 0,
          "Adagrad: lr {}, eps {} and weight_decay {} must not be negative", o.lr(), o.eps(), o.weight_decay());
    check(o.lr_decay() >= 0 && o.initial_accumulator_value() >= 0,
          "Adagrad: lr_decay {} and initial_accumulator_value {} must not be negative", o.lr_decay(),
          o.initial_accumulator_value());
  }
}

void Adagrad::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const AdagradOptions& o) {
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) grad = add(grad, param, o.weight_decay());
    if (!state["sum"].defined()) begin_full(state, "sum", param, param.sizes(), o.initial_accumulator_value());
    Tensor sum = state["sum"];
    sum.addcmul_(grad, grad);
    Scalar rate = number([&o, &state] { return -o.lr() / (1 + double(state.steps - 1) * o.lr_decay()); });
    param.addcdiv_(grad, sqrt(sum).add_(o.eps()), rate);
  });
}

}  // namespace sinter::optim
