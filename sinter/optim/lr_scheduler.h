#pragma once
// Schedules of the learning rate, with PyTorch's names, defaults and rates. Each is made for an optimiser, which must outlive
// it, and steps once an epoch (or a batch) after the optimiser: the rate is a function of the steps taken and of the rate each
// group had at first, which is the one it had when the first schedule was made for this optimiser. A step inside a compiled
// function is part of the program and needs no new one.
#include <functional>
#include <optional>
#include <string>

#include "sinter/base/api.h"
#include "sinter/optim/optimizer.h"

namespace sinter SINTER_API {
namespace optim {

class LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  void step();
  // Steps taken.
  int64_t last_epoch() const;
  // To go on after so many steps.
  void set_last_epoch(int64_t epoch);
  // What a schedule made with the same arguments needs to go on: the steps taken and the rates at first. Loading sets the
  // optimiser's rates too.
  virtual NamedTensors state_dict() const;
  virtual void load_state_dict(const NamedTensors& state);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  // What a group's rate is after so many steps.
  virtual double lr_at(int64_t epoch, size_t group) const = 0;
  // What its momentum is then, where the schedule moves that too.
  virtual std::optional<double> momentum_at(int64_t, size_t) const { return {}; }
  // The same of another schedule.
  static double lr_of(const LRScheduler& other, int64_t epoch, size_t group) { return other.lr_at(epoch, group); }
  static std::optional<double> momentum_of(const LRScheduler& other, int64_t epoch, size_t group) {
    return other.momentum_at(epoch, group);
  }
  // The rate of a group at first.
  double base_lr(size_t group) const { return base_lrs_[group]; }
  void set_base_lr(size_t group, double lr) { base_lrs_[group] = lr; }
  size_t num_groups() const { return base_lrs_.size(); }
  static bool has_same_optimizer(const LRScheduler& one, const Optimizer& optimizer) {
    return &one.optimizer_ == &optimizer;
  }

 private:
  // To so many steps from those taken then, or to the very number.
  void move(bool relative, int64_t steps);
  void set_epoch(int64_t epoch);

  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
  int64_t epoch_ = 0;
  IntrusivePtr<capture::HostState> state_;  // null until a capture needs it
};

// Times gamma every step_size steps.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  int64_t step_size_;
  double gamma_;
};

// Times gamma at each of these steps.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

// Times factor for the first total_iters steps.
class ConstantLR final : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  double factor_;
  int64_t total_iters_;
};

// The factor goes evenly from start_factor to end_factor in total_iters steps: a warm-up.
class LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1, int64_t total_iters = 5);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

// Times gamma every step.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  double gamma_;
};

// To zero in total_iters steps, as what is left of them to a power.
class PolynomialLR final : public LRScheduler {
 public:
  PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  int64_t total_iters_;
  double power_;
};

// Half a cosine from the first rate to eta_min in T_max steps, and back in the next T_max.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  int64_t t_max_;
  double eta_min_;
};

// Half a cosine in T_0 steps, then again from the first rate in T_mult times as many.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  int64_t t_0_, t_mult_;
  double eta_min_;
};

// The first rate times factor(steps), one factor for all groups or one for each; factor(0) applies at once.
class LambdaLR final : public LRScheduler {
 public:
  using Factor = std::function<double(int64_t)>;
  LambdaLR(Optimizer& optimizer, Factor factor);
  LambdaLR(Optimizer& optimizer, std::vector<Factor> factors);

 private:
  double lr_at(int64_t epoch, size_t group) const override;
  std::vector<Factor> factors_;
};

enum class AnnealStrategy : uint8_t { kCos, kLinear };

struct OneCycleLROptions {
  // PyTorch's epochs and steps_per_epoch are their product here. A rate for all groups, or one for each.
  OneCycleLROptions(double max_lr, int64_t total_steps) : OneCycleLROptions(std::vector{max_lr}, total_steps) {}
  OneCycleLROptions(std::vector<double> max_lr, int64_t total_steps)
      : max_lr_(std::move(max_lr)), total_steps_(total_steps) {}
  SINTER_OPTION(std::vector<double>, max_lr);
  SINTER_OPTION(int64_t, total_steps);
  SINTER_OPTION(double, pct_start) = 0.3;
  SINTER_OPTION(AnnealStrategy, anneal_strategy) = AnnealStrategy::kCos;
  SINTER_OPTION(bool, cycle_momentum) = true;
  SINTER_OPTION(double, base_momentum) = 0.85;
  SINTER_OPTION(double, max_momentum) = 0.95;
  SINTER_OPTION(double, div_factor) = 25;
  SINTER_OPTION(double, final_div_factor) = 1e4;
  SINTER_OPTION(bool, three_phase) = false;
};

// Up from max_lr / div_factor to max_lr in pct_start of all steps, and down to next to nothing in the rest; three_phase: as
// fast down as up, and then to next to nothing. The momentum, or the first of the betas, goes the other way; an optimiser
// that has neither needs cycle_momentum(false).
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 private:
  // Of three values, those at first, at the top and at the end.
  double anneal(int64_t epoch, double first, double top, double end) const;
  double lr_at(int64_t epoch, size_t group) const override;
  std::optional<double> momentum_at(int64_t epoch, size_t group) const override;
  OneCycleLROptions options_;
};

// One schedule after the other: the next begins at its milestone, as if no step had been taken before. They are not stepped
// themselves any more.
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  NamedTensors state_dict() const override;
  void load_state_dict(const NamedTensors& state) override;

 private:
  // The schedule that decides after so many steps, and how many of them it has taken.
  std::pair<const LRScheduler&, int64_t> at(int64_t epoch) const;
  double lr_at(int64_t epoch, size_t group) const override;
  std::optional<double> momentum_at(int64_t epoch, size_t group) const override;
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

enum class PlateauMode : uint8_t { kMin, kMax };
enum class ThresholdMode : uint8_t { kRel, kAbs };

struct ReduceLROnPlateauOptions {
  ReduceLROnPlateauOptions() = default;
  SINTER_OPTION(PlateauMode, mode) = PlateauMode::kMin;
  SINTER_OPTION(double, factor) = 0.1;
  SINTER_OPTION(int64_t, patience) = 10;
  SINTER_OPTION(double, threshold) = 1e-4;
  SINTER_OPTION(ThresholdMode, threshold_mode) = ThresholdMode::kRel;
  SINTER_OPTION(int64_t, cooldown) = 0;
  SINTER_OPTION(std::vector<double>, min_lr) = {0};  // for all groups, or one for each
  SINTER_OPTION(double, eps) = 1e-8;
};

// Times factor when a metric has not become better for more than `patience` steps. The metric is a number of the host's: a
// compiled function that steps it is called every time.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  ReduceLROnPlateau(const ReduceLROnPlateau&) = delete;
  void step(double metric);
  int64_t last_epoch() const;
  // All that it knows, the rates among it.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 private:
  struct Known {
    double best;
    int64_t bad_epochs = 0, cooldown = 0, epoch = 0;
  };
  void follow(double metric);
  bool is_better(double metric) const;
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  Known known_;
};

// The same with LibTorch's name and arguments.
class ReduceLROnPlateauScheduler : public ReduceLROnPlateau {
 public:
  enum SchedulerMode { max, min };
  enum ThresholdMode { rel, abs };
  explicit ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, double factor = 0.1, int64_t patience = 10,
                                      double threshold = 1e-4, ThresholdMode threshold_mode = rel, int64_t cooldown = 0,
                                      const std::vector<double>& min_lr = {0}, double eps = 1e-8)
      : ReduceLROnPlateau(optimizer, ReduceLROnPlateauOptions()
                                         .mode(mode == min ? PlateauMode::kMin : PlateauMode::kMax)
                                         .factor(factor)
                                         .patience(patience)
                                         .threshold(threshold)
                                         .threshold_mode(threshold_mode == rel ? optim::ThresholdMode::kRel : optim::ThresholdMode::kAbs)
                                         .cooldown(cooldown)
                                         .min_lr(min_lr.empty() ? std::vector<double>{0} : min_lr)
                                         .eps(eps)) {}
};

}  // namespace optim
}  // namespace sinter
