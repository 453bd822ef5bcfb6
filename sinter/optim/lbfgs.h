#pragma once
// L-BFGS: steps along a direction that follows from the last gradients, as Newton's method with an estimate of the inverse
// Hessian. A step calls its closure several times: optimizer.step([&] { optimizer.zero_grad(); auto l = loss(); l.backward(); return l; });
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/optim/optimizer.h"

namespace sinter SINTER_API {
namespace optim {

// line_search_fn: none, or "strong_wolfe". Without max_eval the closure is called up to 5/4 max_iter times a step.
struct LBFGSOptions : LearningRate<LBFGSOptions> {
  using MaybeCount = std::optional<int64_t>;
  using MaybeName = std::optional<std::string>;
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(int64_t, max_iter) = 20;
  SINTER_OPTION(MaybeCount, max_eval) = std::nullopt;
  SINTER_OPTION(double, tolerance_grad) = 1e-7;
  SINTER_OPTION(double, tolerance_change) = 1e-9;
  SINTER_OPTION(int64_t, history_size) = 100;
  SINTER_OPTION(MaybeName, line_search_fn) = std::nullopt;
};

// All parameters are one vector: there is one group. What a step does depends on losses as numbers, so that a compiled function
// with a step in it is called every time; compile the closure's loss.
class LBFGS final : public GroupedOptimizer<LBFGSOptions> {
 public:
  explicit LBFGS(const TensorList& params, const LBFGSOptions& options = {});
  explicit LBFGS(std::vector<Group> groups);
  explicit LBFGS(const std::vector<OptimizerParamGroup>& groups, const LBFGSOptions& defaults = {})
      : LBFGS(typed(groups, defaults)) {}
  // Gives the loss before the step.
  Tensor step(const std::function<Tensor()>& closure) override;
  NamedTensors state_dict() const override;
  void load_state_dict(const NamedTensors& state) override;

 private:
  void step() override;
  void begin(State&, const Tensor&, const LBFGSOptions&) const override {}
  std::vector<const char*> state_names() const override { return {}; }
  Tensor gradient() const;
  void move(double length, const Tensor& direction) const;
  void find_direction(const Tensor& gradient);
  void remember(const Tensor& gradient_change, const Tensor& change);

  int64_t iterations_ = 0, evaluations_ = 0;
  Tensor direction_, last_gradient_;
  double length_ = 0, last_loss_ = 0;
  double scale_ = 1;                                 // of the estimate where the history says nothing
  TensorList gradient_changes_, changes_;            // the oldest first
  std::vector<double> curvatures_;                   // of each pair the inverse of its product
};

}  // namespace optim
}  // namespace sinter
