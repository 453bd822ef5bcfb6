#pragma once
// Stochastic gradient descent.
#include "sinter/optim/optimizer.h"

namespace sinter::optim {

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

}  // namespace sinter::optim
