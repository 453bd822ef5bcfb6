#include "sinter/optim/optim.h"

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/optim/option_checks.h"

namespace sinter::optim {

Muon::Muon(const TensorList& params, const MuonOptions& options) : GroupedOptimizer(params, options) {
  check_options();
}
Muon::Muon(std::vector<Group> groups) : GroupedOptimizer(std::move(groups)) { check_options(); }

void Muon::check_options() {
  for (auto& group : groups_) {
    const auto& o = group.options();
    check_common("Muon", o);
    check(o.ns_steps() >= 0 && o.ns_steps() < 100, "Muon: ns_steps {} must be in [0, 100)", o.ns_steps());
    check(is_floating(o.ns_dtype()), "Muon: ns_dtype {} is no floating type", o.ns_dtype());
    for (auto& param : group.params())
      check(param.dim() == 2, "Muon: a parameter of shape {} is no matrix; give it to another optimiser",
            param.sizes());
  }
}

// A polynomial of odd powers, applied again and again, moves all singular values towards 1.
static Tensor orthogonalized(const Tensor& update, const MuonOptions& o) {
  auto [a, b, c] = o.ns_coefficients();
  bool is_tall = update.size(0) > update.size(1);
  Tensor x = update.to(o.ns_dtype());
  if (is_tall) x = x.t();  // the smaller of both squares
  x = x / clamp_min(norm(x), o.eps());
  for (int64_t i = 0; i < o.ns_steps(); ++i) {
    Tensor gram = mm(x, x.t());
    x = addmm(x, addmm(gram, gram, gram, b, c), x, a);
  }
  return is_tall ? x.t() : x;
}

static double factor_of(MuonRate rate, double rows, double columns) {
  switch (rate) {
    case MuonRate::kOriginal:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonRate::kMatchRmsAdamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case MuonRate::kSpectralUnclamped:
      return std::sqrt(rows / columns);
  }
  return 1;
}

void Muon::begin(State& state, const Tensor& param, const MuonOptions&) const {
  begin_zero(state, "momentum_buffer", param);
}

void Muon::step() {
  NoGradGuard no_grad;
  for_each_gradient([](const Tensor& param, const Tensor& grad, State& state, const MuonOptions& o) {
    Tensor buffer = state["momentum_buffer"];
    buffer.lerp_(grad, number([&o] { return 1 - o.momentum(); }));
    Tensor update =
        orthogonalized(o.nesterov() ? lerp(grad, buffer, number([&o] { return o.momentum(); })) : buffer, o);
    double factor = factor_of(o.adjust_lr_fn(), double(int64_t(param.size(0))), double(int64_t(param.size(1))));
    param.mul_(number([&o] { return 1 - o.lr() * o.weight_decay(); }));
    param.add_(update, number([&o, factor] { return -o.lr() * factor; }));
  });
}

}  // namespace sinter::optim
