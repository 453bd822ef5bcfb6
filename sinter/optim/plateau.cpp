#include <cmath>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/optim/lr_scheduler.h"
#include "sinter/optim/state_of.h"
#include "sinter/tensor/tracer.h"

namespace sinter::optim {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  constexpr double kWorst = std::numeric_limits<double>::infinity();
  known_.best = options.mode() == PlateauMode::kMin ? kWorst : -kWorst;
  check(options.factor() < 1, "ReduceLROnPlateau: factor {} must be below 1", options.factor());
  size_t bounds = options.min_lr().size();
  check(bounds == 1 || bounds == optimizer.num_groups(),
        "ReduceLROnPlateau: {} least rates for {} groups of parameters", bounds, optimizer.num_groups());
}

bool ReduceLROnPlateau::is_better(double metric) const {
  double bound = options_.threshold(), best = known_.best;
  if (options_.mode() == PlateauMode::kMax) bound = -bound;
  best = options_.threshold_mode() == ThresholdMode::kRel ? best * (1 - bound) : best - bound;
  return options_.mode() == PlateauMode::kMin ? metric < best : metric > best;
}

void ReduceLROnPlateau::step(double metric) {
  note_host_change("ReduceLROnPlateau::step()");
  std::vector<double> rates;
  {
    TracerScope none(nullptr);
    for (size_t g = 0; g < optimizer_.num_groups(); ++g) rates.push_back(optimizer_.lr(g));
  }
  perform_on_host(
      "ReduceLROnPlateau::step()", [this, metric] { follow(metric); },
      [this, rates, before = known_] {
        known_ = before;
        for (size_t g = 0; g < rates.size(); ++g) optimizer_.set_lr(g, rates[g]);
      });
}

void ReduceLROnPlateau::follow(double metric) {
  ++known_.epoch;
  ++known_.bad_epochs;
  if (is_better(metric)) {
    known_.best = metric;
    known_.bad_epochs = 0;
  }
  if (known_.cooldown > 0) {
    --known_.cooldown;
    known_.bad_epochs = 0;
  }
  if (known_.bad_epochs <= options_.patience()) return;
  known_.bad_epochs = 0;
  known_.cooldown = options_.cooldown();
  auto& least = options_.min_lr();
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
    double now = optimizer_.lr(g), next = std::max(now * options_.factor(), least[least.size() == 1 ? 0 : g]);
    if (now - next > options_.eps()) optimizer_.set_lr(g, next);
  }
}

int64_t ReduceLROnPlateau::last_epoch() const {
  note_host_change("last_epoch()");
  return known_.epoch;
}

NamedTensors ReduceLROnPlateau::state_dict() const {
  note_host_change("state_dict()");
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) rates.push_back(optimizer_.lr(g));
  return {{"last_epoch", tensor(known_.epoch)},
          {"num_bad_epochs", tensor(known_.bad_epochs)},
          {"cooldown_counter", tensor(known_.cooldown)},
          {"best", tensor(known_.best, kFloat64)},
          {"last_lr", from_data(rates, Shape(int64_t(rates.size())))}};
}

void ReduceLROnPlateau::load_state_dict(const NamedTensors& state) {
  note_host_change("load_state_dict()");
  auto rates = state_of(state, "last_lr").to_vector<double>();
  check(rates.size() == optimizer_.num_groups(), "ReduceLROnPlateau: the state is of {} groups and not of {}",
        rates.size(), optimizer_.num_groups());
  known_ = {.best = state_of(state, "best").item<double>(),
            .bad_epochs = state_of(state, "num_bad_epochs").item<int64_t>(),
            .cooldown = state_of(state, "cooldown_counter").item<int64_t>(),
            .epoch = state_of(state, "last_epoch").item<int64_t>()};
  for (size_t g = 0; g < rates.size(); ++g) optimizer_.set_lr(g, rates[g]);
}

}  // namespace sinter::optim
