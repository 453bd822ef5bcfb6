#include <algorithm>
#include <cmath>
#include <numbers>

#include "sinter/base/error.h"
#include "sinter/optim/lr_scheduler.h"

namespace sinter::optim {

// From one value to the other; `part` of the way is done.
static double by_cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  check(step_size > 0, "StepLR: step_size {} is not positive", step_size);
}

double StepLR::lr_at(int64_t epoch, size_t group) const {
  return base_lr(group) * std::pow(gamma_, double(epoch / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
}

double MultiStepLR::lr_at(int64_t epoch, size_t group) const {
  auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
  return base_lr(group) * std::pow(gamma_, double(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  check(factor >= 0 && factor <= 1, "ConstantLR: factor {} must be in [0, 1]", factor);
  set_last_epoch(0);
}

double ConstantLR::lr_at(int64_t epoch, size_t group) const {
  return base_lr(group) * (epoch < total_iters_ ? factor_ : 1);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  check(start_factor > 0 && start_factor <= 1, "LinearLR: start_factor {} must be in (0, 1]", start_factor);
  check(end_factor >= 0 && end_factor <= 1, "LinearLR: end_factor {} must be in [0, 1]", end_factor);
  check(total_iters > 0, "LinearLR: total_iters {} is not positive", total_iters);
  set_last_epoch(0);
}

double LinearLR::lr_at(int64_t epoch, size_t group) const {
  double part = double(std::min(epoch, total_iters_)) / double(total_iters_);
  return base_lr(group) * (start_factor_ + (end_factor_ - start_factor_) * part);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {}

double ExponentialLR::lr_at(int64_t epoch, size_t group) const {
  return base_lr(group) * std::pow(gamma_, double(epoch));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  check(total_iters > 0, "PolynomialLR: total_iters {} is not positive", total_iters);
}

double PolynomialLR::lr_at(int64_t epoch, size_t group) const {
  return base_lr(group) * std::pow(1 - double(std::min(epoch, total_iters_)) / double(total_iters_), power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), t_max_(T_max), eta_min_(eta_min) {
  check(T_max > 0, "CosineAnnealingLR: T_max {} is not positive", T_max);
}

double CosineAnnealingLR::lr_at(int64_t epoch, size_t group) const {
  return by_cosine(base_lr(group), eta_min_, double(epoch) / double(t_max_));
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), t_0_(T_0), t_mult_(T_mult), eta_min_(eta_min) {
  check(T_0 > 0 && T_mult > 0, "CosineAnnealingWarmRestarts: T_0 {} and T_mult {} must be positive", T_0, T_mult);
}

double CosineAnnealingWarmRestarts::lr_at(int64_t epoch, size_t group) const {
  int64_t taken = epoch, length = t_0_;
  if (t_mult_ == 1) taken %= length;
  for (; taken >= length; length *= t_mult_) taken -= length;
  return by_cosine(base_lr(group), eta_min_, double(taken) / double(length));
}

LambdaLR::LambdaLR(Optimizer& optimizer, Factor factor) : LambdaLR(optimizer, std::vector{std::move(factor)}) {}

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Factor> factors)
    : LRScheduler(optimizer), factors_(std::move(factors)) {
  check(factors_.size() == 1 || factors_.size() == num_groups(), "LambdaLR: {} factors for {} groups of parameters",
        factors_.size(), num_groups());
  set_last_epoch(0);
}

double LambdaLR::lr_at(int64_t epoch, size_t group) const {
  return base_lr(group) * factors_[factors_.size() == 1 ? 0 : group](epoch);
}

// --- OneCycleLR

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  auto& rates = options.max_lr();
  check(options.total_steps() > 0, "OneCycleLR: total_steps {} is not positive", options.total_steps());
  check(options.pct_start() >= 0 && options.pct_start() <= 1, "OneCycleLR: pct_start {} must be in [0, 1]",
        options.pct_start());
  check(rates.size() == 1 || rates.size() == num_groups(), "OneCycleLR: {} rates for {} groups of parameters",
        rates.size(), num_groups());
  check(!options.cycle_momentum() || optimizer.momentum(0).has_value(),
        "OneCycleLR: the optimiser has no momentum and no betas; give it cycle_momentum(false)");
  for (size_t g = 0; g < num_groups(); ++g) set_base_lr(g, rates[rates.size() == 1 ? 0 : g] / options.div_factor());
  set_last_epoch(0);
}

double OneCycleLR::anneal(int64_t epoch, double first, double top, double end) const {
  struct Phase {
    double last_step, from, to;
  };
  double steps = double(options_.total_steps()), top_at = options_.pct_start() * steps;
  std::vector<Phase> phases{{top_at - 1, first, top}};
  if (options_.three_phase()) phases.push_back({2 * top_at - 2, top, first});
  phases.push_back({steps - 1, phases.back().to, end});
  check(double(epoch) <= steps, "OneCycleLR: step {} of {}", epoch, options_.total_steps());
  double begin = 0;
  for (auto& [last, from, to] : phases) {
    if (double(epoch) > last && &last != &phases.back().last_step) {
      begin = last;
      continue;
    }
    double part = (double(epoch) - begin) / (last - begin);
    return options_.anneal_strategy() == AnnealStrategy::kCos ? by_cosine(from, to, part) : (to - from) * part + from;
  }
  return end;
}

double OneCycleLR::lr_at(int64_t epoch, size_t group) const {
  double first = base_lr(group);
  return anneal(epoch, first, first * options_.div_factor(), first / options_.final_div_factor());
}

std::optional<double> OneCycleLR::momentum_at(int64_t epoch, size_t) const {
  if (!options_.cycle_momentum()) return {};
  return anneal(epoch, options_.max_momentum(), options_.base_momentum(), options_.max_momentum());
}

// --- SequentialLR

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  check(!schedulers_.empty() && milestones_.size() == schedulers_.size() - 1,
        "SequentialLR: {} milestones between {} schedules", milestones_.size(), schedulers_.size());
  check(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialLR: the milestones are not in order");
  for (auto& schedule : schedulers_)
    check(schedule && has_same_optimizer(*schedule, optimizer),
          "SequentialLR: a schedule belongs to another optimiser");
  set_last_epoch(0);
}

std::pair<const LRScheduler&, int64_t> SequentialLR::at(int64_t epoch) const {
  auto next = std::upper_bound(milestones_.begin(), milestones_.end(), epoch);
  return {*schedulers_[size_t(next - milestones_.begin())], next == milestones_.begin() ? epoch : epoch - next[-1]};
}

double SequentialLR::lr_at(int64_t epoch, size_t group) const {
  auto [schedule, taken] = at(epoch);
  return lr_of(schedule, taken, group);
}

std::optional<double> SequentialLR::momentum_at(int64_t epoch, size_t group) const {
  auto [schedule, taken] = at(epoch);
  return momentum_of(schedule, taken, group);
}

// The steps of each schedule follow from those taken in all; its first rates do not.
NamedTensors SequentialLR::state_dict() const {
  NamedTensors all = LRScheduler::state_dict();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    for (auto& [name, value] : schedulers_[i]->state_dict()) all.emplace_back(format("{}.{}", i, name), value);
  return all;
}

void SequentialLR::load_state_dict(const NamedTensors& state) {
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    NamedTensors its;
    std::string prefix = format("{}.", i);
    for (auto& [name, value] : state)
      if (name.starts_with(prefix)) its.emplace_back(name.substr(prefix.size()), value);
    schedulers_[i]->load_state_dict(its);
  }
  LRScheduler::load_state_dict(state);
}

}  // namespace sinter::optim
