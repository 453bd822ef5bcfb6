#include "sinter/optim/lr_scheduler.h"

#include <cmath>
#include <numbers>

namespace sinter::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t g = 0; g < optimizer.num_groups(); ++g) base_lrs_.push_back(optimizer.lr(g));
}

void LRScheduler::step() { set_last_epoch(epoch_ + 1); }

void LRScheduler::set_last_epoch(int64_t epoch) {
  check(epoch >= 0, "LRScheduler: {} steps cannot have been taken", epoch);
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
