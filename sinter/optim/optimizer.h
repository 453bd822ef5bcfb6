#pragma once
// Optimizer: groups of parameters, each with its own options, and one step over all of them.
//
//   optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3).weight_decay(0.1));
//   for (…) { optimizer.zero_grad(); loss().backward(); optimizer.step(); }
//
// Steps are unrecorded and write the parameters in place; the arithmetic is PyTorch's, operation by operation.
// Parameters without a gradient are passed over.
#include <memory>
#include <set>

#include "sinter/base/error.h"
#include "sinter/capture/host_state.h"
#include "sinter/io/safetensors.h"
#include "sinter/nn/options.h"
#include "sinter/tensor/tensor.h"

namespace sinter::optim {

template <class Options>
struct ParamGroup {
  TensorList params;
  Options options;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;

  virtual void step() = 0;
  void zero_grad(bool set_to_none = true);

  virtual size_t num_groups() const = 0;
  virtual const TensorList& params(size_t group) const = 0;
  virtual double lr(size_t group = 0) const = 0;
  virtual void set_lr(size_t group, double lr) = 0;
  // The same for all groups.
  void set_lr(double lr);

  // What the optimiser remembers of each parameter, "0.exp_avg" for the first one: a safetensors file's worth. The
  // options are the program's own and not part of it. Loading is into an optimiser of the same parameters.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 protected:
  Optimizer() = default;
  // A program that is being captured is captured anew when a learning rate changes.
  void watch();
  // The tensors kept for one parameter; undefined until the first step that needs them.
  struct State {
    int64_t steps = 0;
    std::vector<std::pair<const char*, Tensor>> tensors;
    Tensor& operator[](const char* name);
  };
  // Of parameter i, counted over all groups. Made when first asked for.
  State& state(size_t i);
  // An Error inside a compiled function, for steps that change numbers of the host, which a captured program would not
  // see change: `what` names them.
  static void check_not_captured(const char* what);
  // An Error unless every one is a floating-point leaf, and none comes twice.
  void check_params() const;

 private:
  // Names of the tensors this optimiser keeps.
  virtual std::vector<const char*> state_names() const = 0;
  std::vector<State> states_;
  IntrusivePtr<capture::HostState> watched_;
};

// The groups of one kind of optimiser, and the walk over them.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParamGroup<Options>;
  std::vector<Group>& param_groups() { return groups_; }
  void add_param_group(Group group) {
    groups_.push_back(std::move(group));
    check_params();
  }
  using Optimizer::set_lr;
  size_t num_groups() const override { return groups_.size(); }
  const TensorList& params(size_t group) const override { return groups_.at(group).params; }
  double lr(size_t group = 0) const override { return groups_.at(group).options.lr(); }
  void set_lr(size_t group, double lr) override { groups_.at(group).options.lr(lr); }

 protected:
  GroupedOptimizer(const TensorList& params, const Options& options) : groups_{{params, options}} { check_params(); }
  explicit GroupedOptimizer(std::vector<Group> groups) : groups_(std::move(groups)) { check_params(); }

  // f(parameter, its gradient, its state, the group's options) for every parameter that has a gradient.
  template <class F>
  void for_each_gradient(F f) {
    watch();
    size_t i = 0;
    for (auto& group : groups_)
      for (auto& param : group.params) {
        Tensor grad = param.grad();
        if (grad.defined()) f(param, grad, state(i), group.options);
        ++i;
      }
  }

 private:
  std::vector<Group> groups_;
};

}  // namespace sinter::optim
