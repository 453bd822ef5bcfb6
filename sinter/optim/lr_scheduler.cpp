#include "sinter/optim/lr_scheduler.h"

#include <cmath>
#include <numbers>

#include "sinter/base/error.h"
#include "sinter/base/host_effects.h"
#include "sinter/capture/function.h"
#include "sinter/tensor/tracer.h"

namespace sinter::optim {

// That a schedule exists: captured programs step it.
class LRScheduler::Watched final : public capture::HostState {
 public:
  std::optional<uint64_t> fingerprint() const override { return exists ? std::optional<uint64_t>(1) : std::nullopt; }
  std::string name() const override { return "a schedule of learning rates"; }
  std::atomic<bool> exists{true};
};

LRScheduler::~LRScheduler() {
  if (!state_) return;
  static_cast<Watched&>(*state_).exists = false;
  capture::HostState::clock.fetch_add(1, std::memory_order_relaxed);
}

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t g = 0; g < optimizer.num_groups(); ++g) base_lrs_.push_back(optimizer.lr(g));
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
  if (!state_) state_ = make_intrusive<Watched>();
  capture::depend_on(state_);
  optimizer_.watch();
  std::vector<double> rates;
  {
    TracerScope none(nullptr);
    for (size_t g = 0; g < base_lrs_.size(); ++g) rates.push_back(optimizer_.lr(g));
  }
  perform_on_host("a schedule's step()", apply, [this, rates, before = epoch_] {
    epoch_ = before;
    for (size_t g = 0; g < rates.size(); ++g) optimizer_.set_lr(g, rates[g]);
  });
  // The rate follows from the steps taken so far, which are not guarded: a schedule would never fit twice.
  capture::changes_unforeseen(optimizer_.rates_state());
}

void LRScheduler::set_epoch(int64_t epoch) {
  epoch_ = epoch;
  for (size_t g = 0; g < base_lrs_.size(); ++g) optimizer_.set_lr(g, lr_at(epoch, base_lrs_[g]));
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  check(step_size > 0, "StepLR: step_size {} is not positive", step_size);
}

double StepLR::lr_at(int64_t epoch, double base_lr) const {
  return base_lr * std::pow(gamma_, double(epoch / step_size_));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), t_max_(T_max), eta_min_(eta_min) {
  check(T_max > 0, "CosineAnnealingLR: T_max {} is not positive", T_max);
}

double CosineAnnealingLR::lr_at(int64_t epoch, double base_lr) const {
  double phase = std::numbers::pi * double(epoch) / double(t_max_);
  return eta_min_ + (base_lr - eta_min_) * (1 + std::cos(phase)) / 2;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : LRScheduler(optimizer), factor_(std::move(factor)) {
  set_last_epoch(0);
}

double LambdaLR::lr_at(int64_t epoch, double base_lr) const { return base_lr * factor_(epoch); }

}  // namespace sinter::optim
