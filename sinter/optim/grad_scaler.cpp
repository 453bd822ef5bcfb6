#include <algorithm>
#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/optim/optim.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::optim {

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options), scale_(options.init_scale()) {
  check(scale_ > 0 && options.growth_factor() > 1 && options.backoff_factor() > 0 && options.backoff_factor() < 1 &&
            options.growth_interval() > 0,
        "GradScaler: init_scale {} and growth_interval {} must be positive, growth_factor {} above 1, backoff_factor {} between 0 "
        "and 1",
        scale_, options.growth_interval(), options.growth_factor(), options.backoff_factor());
}

Tensor GradScaler::scale(const Tensor& loss) const {
  return options_.enabled() ? loss * capture::host_number([this] { return scale_; }) : loss;
}

GradScaler::Unscaled* GradScaler::find(const Optimizer& optimizer) {
  auto found = std::find_if(unscaled_.begin(), unscaled_.end(), [&](auto& known) { return known.optimizer == &optimizer; });
  return found == unscaled_.end() ? nullptr : &*found;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled()) return;
  check(!find(optimizer), "GradScaler: unscale_() has been called for this optimiser since the last update()");
  note_host_change("GradScaler");
  NoGradGuard no_grad;
  TensorList finite;
  const Scalar factor = capture::host_number([this] { return 1 / scale_; });
  for (size_t g = 0; g < optimizer.num_groups(); ++g)
    for (auto& param : optimizer.params(g))
      if (Tensor grad = param.grad(); grad.defined()) {
        grad.mul_(factor);
        finite.push_back(isfinite(grad).all().to(kUInt8));
      }
  check(!finite.empty(), "GradScaler: no parameter of the optimiser has a gradient: call backward() of the scaled loss first");
  unscaled_.push_back({&optimizer, stack(finite).amin().item<int64_t>() != 0});
}

bool GradScaler::step(Optimizer& optimizer) {
  if (options_.enabled()) {
    if (!find(optimizer)) unscale_(optimizer);
    if (!find(optimizer)->finite) return false;
  }
  optimizer.step();
  return true;
}

void GradScaler::update() {
  if (!options_.enabled()) return;
  check(!unscaled_.empty(), "GradScaler: update() comes after step()");
  note_host_change("GradScaler");
  const bool finite = std::all_of(unscaled_.begin(), unscaled_.end(), [](auto& known) { return known.finite; });
  unscaled_.clear();
  good_steps_ = finite ? good_steps_ + 1 : 0;
  if (!finite) scale_ *= options_.backoff_factor();
  if (good_steps_ < options_.growth_interval()) return;
  good_steps_ = 0;
  // Infinity would never come back.
  if (double grown = scale_ * options_.growth_factor(); std::isfinite(float(grown))) scale_ = grown;
}

NamedTensors GradScaler::state_dict() const {
  if (!options_.enabled()) return {};
  return {{"scale", tensor(scale_, kFloat64)}, {"good_steps", tensor(good_steps_)}};
}

void GradScaler::load_state_dict(const NamedTensors& state) {
  for (auto& [name, value] : state) {
    check(name == "scale" || name == "good_steps", "GradScaler: there is no '{}' in its state", name);
    if (name == "scale")
      scale_ = value.item<double>();
    else
      good_steps_ = value.item<int64_t>();
  }
}

}  // namespace sinter::optim
