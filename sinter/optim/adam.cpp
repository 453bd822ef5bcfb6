#include "sinter/optim/optim.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/ops/pointwise.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

template <class Options>
AdamBase<Options>::AdamBase(const TensorList& params, const Options& options)
    : GroupedOptimizer<Options>(params, options) {
  check_options();
}

template <class Options>
AdamBase<Options>::AdamBase(std::vector<Group> groups) : GroupedOptimizer<Options>(std::move(groups)) {
  check_options();
}

template <class Options>
void AdamBase<Options>::check_options() {
  for (auto& group : this->groups_) check_common("Adam", group.options());
}

template <class Options>
void AdamBase<Options>::begin(Optimizer::State& state, const Tensor& param, const Options& o) const {
  for (auto* name : {"exp_avg", "exp_avg_sq"}) Optimizer::begin_zero(state, name, param);
  if (o.amsgrad()) Optimizer::begin_zero(state, "max_exp_avg_sq", param);
}

template <class Options>
void AdamBase<Options>::step() {
  constexpr bool kDecoupled = std::is_same_v<Options, AdamWOptions>;
  NoGradGuard no_grad;
  this->for_each_gradient([](const Tensor& param, Tensor grad, Optimizer::State& state, const Options& o) {
    const double beta2 = o.betas().second;
    if (o.maximize()) grad = -grad;
    if (o.weight_decay() != 0) {
      if (kDecoupled)
        param.mul_(Optimizer::number([&o] { return 1 - o.lr() * o.weight_decay(); }));
      else
        grad = add(grad, param, o.weight_decay());
    }
    Tensor mean = state["exp_avg"], square = state["exp_avg_sq"];
    mean.lerp_(grad, Optimizer::number([&o] { return 1 - o.betas().first; }));
    square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    // How much of the averages is still missing depends on the steps so far, this one included.
    Scalar correction =
        Optimizer::number([&o, &state] { return std::sqrt(1 - std::pow(o.betas().second, double(state.steps))); });
    Scalar rate =
        Optimizer::number([&o, &state] { return -o.lr() / (1 - std::pow(o.betas().first, double(state.steps))); });
    if (o.amsgrad()) {
      Tensor largest = state["max_exp_avg_sq"];
      square = largest.copy_(maximum(largest, square));
    }
    Tensor denominator = (sqrt(square) / correction).add_(o.eps());
    param.addcdiv_(mean, denominator, rate);
  });
}

template class AdamBase<AdamOptions>;
template class AdamBase<AdamWOptions>;

}  // namespace sinter::optim
