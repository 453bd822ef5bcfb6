#pragma once
// Schedules of the learning rate. Each is made for an optimiser, which must outlive it, and steps once an epoch (or a
// batch) after the optimiser: the rate is a function of the steps taken and of the rate each group had at first.
#include <functional>

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
  // To go on from a checkpoint.
  void set_last_epoch(int64_t epoch);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  virtual double lr_at(int64_t epoch, double base_lr) const = 0;

 private:
  // To so many steps from those taken then, or to the very number.
  void move(bool relative, int64_t steps);
  void set_epoch(int64_t epoch);

  class Watched;
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
  double lr_at(int64_t epoch, double base_lr) const override;
  int64_t step_size_;
  double gamma_;
};

// Half a cosine from the first rate to eta_min in T_max steps, and back in the next T_max.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  double lr_at(int64_t epoch, double base_lr) const override;
  int64_t t_max_;
  double eta_min_;
};

// The first rate times factor(steps); factor(0) applies at once.
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor);

 private:
  double lr_at(int64_t epoch, double base_lr) const override;
  std::function<double(int64_t)> factor_;
};

}  // namespace optim
}  // namespace sinter
