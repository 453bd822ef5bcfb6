#include "sinter/optim/optim.h"

#include <cmath>
#include <limits>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

Adafactor::Adafactor(const TensorList& params, const AdafactorOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Adafactor::Adafactor(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Adafactor::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("Adafactor", o);
    check(o.beta2_decay() <= 0, "Adafactor: beta2_decay {} must not be positive", o.beta2_decay());
    check(o.eps().first.value_or(0) >= 0 && o.eps().second >= 0, "Adafactor: eps {} and {} must not be negative",
          o.eps().first.value_or(0), o.eps().second);
    check(o.d() >= 1, "Adafactor: the threshold d is {} and must be at least 1", o.d());
  }
}

Shape Adafactor::state_sizes(std::string_view name, const Tensor& param) const {
  Shape sizes = param.sizes();
  if (sizes.size() < 2) return sizes;
  if (name == "row_var") sizes[sizes.size() - 1] = 1;
  if (name == "col_var") sizes[sizes.size() - 2] = 1;
  return sizes;
}

static double epsilon_of(DType dtype) {
  switch (dtype) {
    case kFloat64:
      return std::numeric_limits<double>::epsilon();
    case kBFloat16:
      return 0x1p-7;
    case kFloat16:
      return 0x1p-10;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

// The root of the mean of squares.
static Tensor size_of(const Tensor& x) { return norm(x) / std::sqrt(double(int64_t(x.numel()))); }

void Adafactor::begin(State& state, const Tensor& param, const AdafactorOptions&) const {
  for (auto* name : {"row_var", "col_var", "variance"})
    if ((param.dim() > 1) == (name != std::string_view("variance")))
      begin_full(state, name, param, state_sizes(name, param), 0);
}

void Adafactor::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, Tensor grad, State& state, const AdafactorOptions& o) {
    auto [given, eps2] = o.eps();
    double eps1 = given ? *given : epsilon_of(param.dtype());
    if (o.maximize()) grad = -grad;
    Scalar mix = number([&o, &state] { return std::pow(double(state.steps), o.beta2_decay()); });
    Scalar rate = number([&o, &state] { return std::min(o.lr(), 1 / std::sqrt(double(state.steps))); });
    Tensor step = clamp_min(size_of(param), eps2) * rate;
    if (o.weight_decay() != 0) param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
    Tensor variance;
    if (grad.dim() > 1) {
      Tensor rows = state["row_var"], columns = state["col_var"];
      rows.lerp_(mean(square(grad), {-1}, true), mix);
      columns.lerp_(mean(square(grad), {-2}, true), mix);
      variance = matmul(rows, columns) / clamp_min(mean(rows, {-2}, true), eps1);
    } else {
      variance = state["variance"].lerp_(square(grad), mix);
    }
    Tensor update = rsqrt(clamp_min(variance, eps1 * eps1)) * grad;
    param.sub_(update * (step / clamp_min(size_of(update) / o.d(), 1.0)));
  });
}

}  // namespace sinter::optim
