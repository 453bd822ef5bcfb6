#pragma once
// Everything of optim: the optimisers, and schedules of the learning rate.
#include <utility>

#include "sinter/base/api.h"
#include "sinter/optim/lr_scheduler.h"
#include "sinter/optim/optimizer.h"

namespace sinter SINTER_API {
namespace optim {

// Stochastic gradient descent.
struct SGDOptions {
  SGDOptions(double lr) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, momentum) = 0;
  SINTER_OPTION(double, dampening) = 0;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, nesterov) = false;
  SINTER_OPTION(bool, maximize) = false;
};

class SGD final : public GroupedOptimizer<SGDOptions> {
 public:
  SGD(const TensorList& params, const SGDOptions& options);
  explicit SGD(std::vector<Group> groups);
  void step() override;

 private:
  void check_options();
  std::vector<const char*> state_names() const override { return {"momentum_buffer"}; }
};

// --- Adam, and AdamW, which differ in their weight decay: Adam adds it to the gradient, AdamW shrinks the parameters

using Betas = std::pair<double, double>;

struct AdamOptions {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.999};
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, amsgrad) = false;
  SINTER_OPTION(bool, maximize) = false;
};

struct AdamWOptions {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.999};
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 1e-2;
  SINTER_OPTION(bool, amsgrad) = false;
  SINTER_OPTION(bool, maximize) = false;
};

template <class Options>
class AdamBase : public GroupedOptimizer<Options> {
 public:
  using typename GroupedOptimizer<Options>::Group;
  AdamBase(const TensorList& params, const Options& options = {});
  explicit AdamBase(std::vector<Group> groups);
  void step() override;

 private:
  void check_options();
  std::vector<const char*> state_names() const override { return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }
};

extern template class AdamBase<AdamOptions>;
extern template class AdamBase<AdamWOptions>;
using Adam = AdamBase<AdamOptions>;
using AdamW = AdamBase<AdamWOptions>;

}  // namespace optim
}  // namespace sinter
