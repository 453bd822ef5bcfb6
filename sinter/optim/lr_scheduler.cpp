#include "sinter/optim/lr_scheduler.h"

#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/capture/function.h"
#include "sinter/optim/existence.h"
#include "sinter/optim/state_of.h"
#include "sinter/tensor/tracer.h"

namespace sinter::optim {

LRScheduler::~LRScheduler() { Existence::end(state_); }

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  // A schedule that was made before may have moved the rates already.
  auto& initial = optimizer.initial_lrs_;
  for (size_t g = initial.size(); g < optimizer.num_groups(); ++g) initial.push_back(optimizer.lr(g));
  base_lrs_ = initial;
}

void LRScheduler::step() { move(true, 1); }

int64_t LRScheduler::last_epoch() const {
  note_host_change("last_epoch()");
  return epoch_;
}

void LRScheduler::set_last_epoch(int64_t epoch) {
  check(epoch >= 0, "LRScheduler: {} steps cannot have been taken", epoch);
  move(false, epoch);
}

void LRScheduler::move(bool relative, int64_t steps) {
  auto apply = [=, this] { set_epoch(relative ? epoch_ + steps : steps); };
  if (!capture::is_capturing()) return apply();
  Existence::watch(state_, "a schedule of learning rates");
  optimizer_.watch();
  std::vector<std::pair<double, std::optional<double>>> rates;
  {
    TracerScope none(nullptr);
    for (size_t g = 0; g < base_lrs_.size(); ++g) rates.emplace_back(optimizer_.lr(g), optimizer_.momentum(g));
  }
  perform_on_host("a schedule's step()", apply, [this, rates, before = epoch_] {
    epoch_ = before;
    for (size_t g = 0; g < rates.size(); ++g) {
      optimizer_.set_lr(g, rates[g].first);
      if (rates[g].second) optimizer_.set_momentum(g, *rates[g].second);
    }
  });
  // The rate follows from the steps taken so far, which are not guarded: a schedule would never fit twice.
  capture::changes_unforeseen(optimizer_.rates_state());
}

void LRScheduler::set_epoch(int64_t epoch) {
  for (size_t g = 0; g < base_lrs_.size(); ++g) {
    optimizer_.set_lr(g, lr_at(epoch, g));
    if (auto momentum = momentum_at(epoch, g)) optimizer_.set_momentum(g, *momentum);
  }
  epoch_ = epoch;
}

NamedTensors LRScheduler::state_dict() const {
  note_host_change("state_dict()");
  return {{"last_epoch", tensor(epoch_)}, {"base_lrs", from_data(base_lrs_, Shape(int64_t(base_lrs_.size())))}};
}

void LRScheduler::load_state_dict(const NamedTensors& state) {
  note_host_change("load_state_dict()");
  auto rates = state_of(state, "base_lrs").to_vector<double>();
  check(rates.size() == base_lrs_.size(), "LRScheduler: the state is of {} groups and not of {}", rates.size(),
        base_lrs_.size());
  base_lrs_ = rates;
  set_epoch(state_of(state, "last_epoch").item<int64_t>());
}

const Tensor& state_of(const NamedTensors& state, std::string_view name) {
  for (auto& [key, value] : state)
    if (key == name) return value;
  throw Error(format("the state has no '{}'", name));
}

}  // namespace sinter::optim
