#pragma once
// Optimizer: groups of parameters, each with its own options, and one step over all of them.
//
//   optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3).weight_decay(0.1));
//   for (…) { optimizer.zero_grad(); loss().backward(); optimizer.step(); }
//
// Steps are unrecorded and write the parameters in place; the arithmetic is PyTorch's, operation by operation.
// Parameters without a gradient are passed over. A step may be taken inside a compiled function: what changes from step to
// step, rates, momenta and counts, is read in each call and is no part of the program; the other options are, and are watched.
#include <any>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/base/fields.h"
#include "sinter/capture/function.h"
#include "sinter/io/safetensors.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace optim {

// What all options have: LibTorch's words for their rate.
template <class Self>
struct LearningRate {
  double get_lr() const { return static_cast<const Self&>(*this).lr(); }
  void set_lr(double lr) { static_cast<Self&>(*this).lr(lr); }
};

template <class Options>
class ParamGroup {
 public:
  ParamGroup(TensorList params = {}, Options options = {}) : params_(std::move(params)), options_(std::move(options)) {}
  const TensorList& params() const { return params_; }
  TensorList& params() { return params_; }
  const Options& options() const { return options_; }
  Options& options() { return options_; }
  bool has_options() const { return true; }

 private:
  TensorList params_;
  Options options_;
};

// Parameters, and their options if they are to be others than the optimiser's:
//   std::vector<optim::OptimizerParamGroup> groups;
//   groups.emplace_back(biases, std::make_unique<optim::SGDOptions>(optim::SGDOptions(0.1)));
//   optim::SGD sgd(groups, optim::SGDOptions(0.01));
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(TensorList params) : params_(std::move(params)) {}
  template <class Options>
  OptimizerParamGroup(TensorList params, const std::unique_ptr<Options>& options)
      : params_(std::move(params)), options_(*options) {}
  const TensorList& params() const { return params_; }
  bool has_options() const { return options_.has_value(); }
  // An Error unless they are of this kind.
  template <class Options>
  const Options& options() const {
    auto* options = std::any_cast<Options>(&options_);
    check(options, "OptimizerParamGroup: its options are those of another optimiser");
    return *options;
  }

 private:
  TensorList params_;
  std::any options_;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;

  virtual void step() = 0;
  // Calls what zeroes gradients, computes a loss and lets its gradients flow, then takes the step; gives the loss.
  virtual Tensor step(const std::function<Tensor()>& closure);
  // Makes what the optimiser remembers of each parameter that requires a gradient, as it is before the first step. A step
  // makes what is missing by itself: this is to have the memory, or its lack, at once. What is there stays.
  virtual void init_state() = 0;
  void zero_grad(bool set_to_none = true);

  // Of all groups, one after the other; and how many there are.
  TensorList parameters() const;
  size_t size() const { return parameters().size(); }
  virtual size_t num_groups() const = 0;
  virtual const TensorList& params(size_t group) const = 0;
  virtual double lr(size_t group = 0) const = 0;
  virtual void set_lr(size_t group, double lr) = 0;
  // The same for all groups.
  void set_lr(double lr);
  // The momentum, or the first of the betas; nothing where there is neither, and then setting it is an Error. Compiled
  // functions rest on whether there is any.
  virtual std::optional<double> momentum(size_t group = 0) const = 0;
  virtual void set_momentum(size_t group, double momentum) = 0;

  // What the optimiser remembers of each parameter, "0.exp_avg" for the first one: a safetensors file's worth. The
  // options are the program's own and not part of it. Loading is into an optimiser of the same parameters.
  virtual NamedTensors state_dict() const;
  virtual void load_state_dict(const NamedTensors& state);
  // Into an archive of sinter/serialize.h, and from one.
  template <class Archive>
    requires requires(Archive& archive, const Optimizer& optimizer) { archive.write(optimizer); }
  void save(Archive& archive) const {
    archive.write(*this);
  }
  template <class Archive>
    requires requires(Archive& archive, Optimizer& optimizer) { archive.read(optimizer); }
  void load(Archive& archive) {
    archive.read(*this);
  }

 protected:
  Optimizer() = default;
  // A program that is being captured rests on the groups and their options (those beside rates and momenta) as they are; or
  // on rates and momenta, because the host has read one.
  void watch() const;
  void watch_rates() const;
  // Of the groups' options, or of their rates and momenta.
  virtual uint64_t fingerprint(bool of_rates) const = 0;
  // What is done to the groups while a function is captured: it is called every time from then on; what is captured serves
  // this call alone; the change is made in every call.
  static void call_every_time(const char* what);
  static void serve_once(const char* what);
  static void perform(const char* what, const std::function<void()>& apply, const std::function<void()>& undo);
  [[noreturn]] static void refuse_momentum();
  // Bytes of options, for fingerprints.
  static uint64_t hash_options(const char* begin, const char* end, uint64_t seed);
  // The groups or the tensors kept for parameters are other ones from now on.
  void touch() { ++version_; }
  // A number of a step that may be another one in the next. `read` may refer to options and states.
  static Scalar number(const std::function<double()>& read);
  // The tensors kept for one parameter; undefined until the first step that needs them.
  struct State {
    int64_t steps = 0;
    int64_t first = 0;  // the step for which its tensors were made
    std::vector<std::pair<const char*, Tensor>> tensors;
    Tensor& operator[](const char* name);
  };
  // Of parameter i, counted over all groups; it stays where it is until the groups or states change.
  State& state(size_t i) { return states_[i]; }
  // Makes those of so many parameters, where they are missing.
  void make_states(size_t count);
  // Counts a step of these parameters.
  void count_steps(const std::vector<size_t>& which);
  // Makes a tensor of a state where it is missing: zeros like the parameter; or of these sizes with every element this
  // number, of the parameter's dtype and device.
  static void begin_zero(State& state, const char* name, const Tensor& param);
  static void begin_full(State& state, const char* name, const Tensor& param, const Shape& sizes, double value);
  // An Error unless every one is a floating-point leaf, and none comes twice.
  void check_params() const;

 private:
  // Names of the tensors this optimiser keeps.
  virtual std::vector<const char*> state_names() const = 0;
  // The sizes of such a tensor: the parameter's, unless told otherwise.
  virtual Shape state_sizes(std::string_view name, const Tensor& param) const;
  friend class LRScheduler;
  class Watched;
  const IntrusivePtr<capture::HostState>& rates_state() const;
  std::vector<State> states_;
  std::vector<double> initial_lrs_;  // by group, before any schedule moved them
  uint64_t version_ = 0;
  mutable IntrusivePtr<capture::HostState> options_state_, rates_state_;  // null until a capture needs them
};

// The groups of one kind of optimiser, and the walk over them.
template <class Options>
class GroupedOptimizer : public Optimizer {
 public:
  using Group = ParamGroup<Options>;
  // Inside a compiled function: which is then called every time, since what is read or set here is not seen.
  std::vector<Group>& param_groups() {
    call_every_time("param_groups()");
    return groups_;
  }
  void add_param_group(Group group) {
    serve_once("add_param_group()");
    touch();
    groups_.push_back(std::move(group));
    check_params();
  }
  // Without options of its own it has those of the first group.
  template <std::same_as<OptimizerParamGroup> G>
  void add_param_group(const G& group) {
    add_param_group(typed({group}, groups_.at(0).options())[0]);
  }
  void init_state() override {
    watch();
    size_t count = 0, i = 0;
    for (auto& group : groups_) count += group.params().size();
    make_states(count);
    for (auto& group : groups_)
      for (auto& param : group.params())
        if (State& its = state(i++); param.requires_grad()) begin(its, param, group.options());
  }
  using Optimizer::set_lr;
  size_t num_groups() const override { return groups_.size(); }
  const TensorList& params(size_t group) const override { return groups_.at(group).params(); }
  double lr(size_t group = 0) const override {
    watch_rates();
    return groups_.at(group).options().lr();
  }
  void set_lr(size_t group, double lr) override {
    watch();
    double before = groups_.at(group).options().lr();
    auto set = [this, group](double rate) { groups_.at(group).options().lr(rate); };
    perform("set_lr()", [=] { set(lr); }, [=] { set(before); });
  }
  std::optional<double> momentum(size_t group = 0) const override {
    watch_rates();
    const double* momentum = momentum_in(groups_.at(group).options());
    return momentum ? std::optional(*momentum) : std::nullopt;
  }
  void set_momentum(size_t group, double momentum) override {
    watch();
    const double* now = momentum_in(groups_.at(group).options());
    if (!now) refuse_momentum();
    auto set = [this, group](double value) {
      [[maybe_unused]] auto& options = groups_.at(group).options();
      if constexpr (kHasBetas)
        options.betas({value, options.betas().second});
      else if constexpr (kHasMomentum)
        options.momentum(value);
    };
    perform("set_momentum()", [=] { set(momentum); }, [=, before = *now] { set(before); });
  }

 protected:
  GroupedOptimizer(const TensorList& params, const Options& options) : groups_{{params, options}} { check_params(); }
  explicit GroupedOptimizer(std::vector<Group> groups) : groups_(std::move(groups)) { check_params(); }

  static std::vector<Group> typed(const std::vector<OptimizerParamGroup>& groups, const Options& defaults) {
    std::vector<Group> typed;
    for (auto& group : groups)
      typed.push_back({group.params(), group.has_options() ? group.options<Options>() : defaults});
    return typed;
  }

  // f(parameter, its gradient, its state, the group's options) for every parameter that has a gradient.
  template <class F>
  void for_each_gradient(F f) {
    watch();
    struct Due {
      const Tensor& param;
      Tensor grad;
      const Options& options;
    };
    std::vector<Due> due;
    std::vector<size_t> which;
    size_t i = 0;
    for (auto& group : groups_)
      for (auto& param : group.params()) {
        if (Tensor grad = param.grad(); grad.defined()) {
          due.push_back({param, grad, group.options()});
          which.push_back(i);
        }
        ++i;
      }
    make_states(i);
    for (size_t d = 0; d < due.size(); ++d) begin(state(which[d]), due[d].param, due[d].options);
    count_steps(which);
    for (size_t d = 0; d < due.size(); ++d) f(due[d].param, due[d].grad, state(which[d]), due[d].options);
  }

  uint64_t fingerprint(bool of_rates) const override {
    uint64_t h = groups_.size();
    for (auto& group : groups_) {
      const double* momentum = momentum_in(group.options());
      const double moving[] = {group.options().lr(), momentum ? *momentum : 0};
      if (of_rates) {
        h = hash_options(reinterpret_cast<const char*>(moving), reinterpret_cast<const char*>(moving + 2), h);
        continue;
      }
      // All bytes but those that move; of a momentum only whether there is any.
      std::array<char, sizeof(Options)> bytes;
      std::memcpy(bytes.data(), &group.options(), sizeof(Options));
      auto replace = [&](const double* field, double by) {
        auto at = reinterpret_cast<const char*>(field) - reinterpret_cast<const char*>(&group.options());
        if (field) std::memcpy(bytes.data() + at, &by, sizeof by);
      };
      replace(&group.options().lr(), 0);
      replace(momentum, moving[1] != 0);
      h = hash_options(bytes.data(), bytes.data() + sizeof(Options), h);
    }
    return h;
  }

  std::vector<Group> groups_;

 private:
  // Makes the tensors of a state that are missing, as they are before the first step.
  virtual void begin(State& state, const Tensor& param, const Options& options) const = 0;
  static constexpr bool kHasBetas = requires(Options o) { o.betas().second; };
  static constexpr bool kHasMomentum = requires(Options o) { o.momentum(0.5); };
  // Null where there is none.
  static const double* momentum_in([[maybe_unused]] const Options& options) {
    if constexpr (kHasBetas)
      return &options.betas().first;
    else if constexpr (kHasMomentum)
      return &options.momentum();
    else
      return nullptr;
  }
};

}  // namespace optim
}  // namespace sinter
