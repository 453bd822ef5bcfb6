#pragma once
// Everything of optim: the optimisers, averages of parameters, and schedules of the learning rate. Names, defaults and arithmetic are PyTorch's, but
// for Lion, which it does not have.
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "sinter/base/api.h"
#include "sinter/optim/lbfgs.h"
#include "sinter/optim/lr_scheduler.h"
#include "sinter/optim/optimizer.h"

namespace sinter SINTER_API {
namespace optim {

// Stochastic gradient descent.
struct SGDOptions : LearningRate<SGDOptions> {
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
  SGD(const std::vector<OptimizerParamGroup>& groups, const SGDOptions& defaults) : SGD(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const SGDOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"momentum_buffer"}; }
};

// --- Adam, and AdamW, which differ in their weight decay: Adam adds it to the gradient, AdamW shrinks the parameters

struct Betas {
  double first, second;
  Betas(double first, double second) : first(first), second(second) {}
  Betas(const std::tuple<double, double>& betas) : Betas(std::get<0>(betas), std::get<1>(betas)) {}
  operator std::tuple<double, double>() const { return {first, second}; }
};

struct AdamOptions : LearningRate<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.999};
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, amsgrad) = false;
  SINTER_OPTION(bool, maximize) = false;
};

struct AdamWOptions : LearningRate<AdamWOptions> {
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
  AdamBase(const std::vector<OptimizerParamGroup>& groups, const Options& defaults = {})
      : AdamBase(GroupedOptimizer<Options>::typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(Optimizer::State& state, const Tensor& param, const Options& options) const override;
  std::vector<const char*> state_names() const override { return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }
};

extern template class AdamBase<AdamOptions>;
extern template class AdamBase<AdamWOptions>;
using Adam = AdamBase<AdamOptions>;
using AdamW = AdamBase<AdamWOptions>;

// Adam that looks ahead along its momentum, which grows from step to step.
struct NAdamOptions : LearningRate<NAdamOptions> {
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.999};
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(double, momentum_decay) = 4e-3;
  SINTER_OPTION(bool, decoupled_weight_decay) = false;
  SINTER_OPTION(bool, maximize) = false;
};

class NAdam final : public GroupedOptimizer<NAdamOptions> {
 public:
  NAdam(const TensorList& params, const NAdamOptions& options = {});
  explicit NAdam(std::vector<Group> groups);
  NAdam(const std::vector<OptimizerParamGroup>& groups, const NAdamOptions& defaults) : NAdam(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const NAdamOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"exp_avg", "exp_avg_sq", "mu_product"}; }
  Shape state_sizes(std::string_view name, const Tensor& param) const override;
};

// Adam without its denominator until the variance of that is small enough.
struct RAdamOptions : LearningRate<RAdamOptions> {
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.999};
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, decoupled_weight_decay) = false;
  SINTER_OPTION(bool, maximize) = false;
};

class RAdam final : public GroupedOptimizer<RAdamOptions> {
 public:
  RAdam(const TensorList& params, const RAdamOptions& options = {});
  explicit RAdam(std::vector<Group> groups);
  RAdam(const std::vector<OptimizerParamGroup>& groups, const RAdamOptions& defaults) : RAdam(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const RAdamOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }
};

// --- rates of their own for every element

// The gradient over the root of a running mean of its squares; less the square of its mean where `centered`.
struct RMSpropOptions : LearningRate<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, alpha) = 0.99;
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(double, momentum) = 0;
  SINTER_OPTION(bool, centered) = false;
  SINTER_OPTION(bool, maximize) = false;
};

class RMSprop final : public GroupedOptimizer<RMSpropOptions> {
 public:
  RMSprop(const TensorList& params, const RMSpropOptions& options = {});
  explicit RMSprop(std::vector<Group> groups);
  RMSprop(const std::vector<OptimizerParamGroup>& groups, const RMSpropOptions& defaults) : RMSprop(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const RMSpropOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"square_avg", "grad_avg", "momentum_buffer"}; }
};

// The gradient over the root of the sum of all its squares.
struct AdagradOptions : LearningRate<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, lr_decay) = 0;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(double, initial_accumulator_value) = 0;
  SINTER_OPTION(double, eps) = 1e-10;
  SINTER_OPTION(bool, maximize) = false;
};

class Adagrad final : public GroupedOptimizer<AdagradOptions> {
 public:
  Adagrad(const TensorList& params, const AdagradOptions& options = {});
  explicit Adagrad(std::vector<Group> groups);
  Adagrad(const std::vector<OptimizerParamGroup>& groups, const AdagradOptions& defaults) : Adagrad(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const AdagradOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"sum"}; }
};

// Running means of squares of gradients and of steps set the rate.
struct AdadeltaOptions : LearningRate<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, rho) = 0.9;
  SINTER_OPTION(double, eps) = 1e-6;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, maximize) = false;
};

class Adadelta final : public GroupedOptimizer<AdadeltaOptions> {
 public:
  Adadelta(const TensorList& params, const AdadeltaOptions& options = {});
  explicit Adadelta(std::vector<Group> groups);
  Adadelta(const std::vector<OptimizerParamGroup>& groups, const AdadeltaOptions& defaults) : Adadelta(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const AdadeltaOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"square_avg", "acc_delta"}; }
};

// Of a matrix it keeps the mean squares of rows and columns alone, and has no momentum. Without a first eps, that of the dtype.
using AdafactorEps = std::pair<std::optional<double>, double>;

struct AdafactorOptions : LearningRate<AdafactorOptions> {
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, beta2_decay) = -0.8;
  SINTER_OPTION(AdafactorEps, eps) = {std::nullopt, 1e-3};
  SINTER_OPTION(double, d) = 1;
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, maximize) = false;
};

class Adafactor final : public GroupedOptimizer<AdafactorOptions> {
 public:
  Adafactor(const TensorList& params, const AdafactorOptions& options = {});
  explicit Adafactor(std::vector<Group> groups);
  Adafactor(const std::vector<OptimizerParamGroup>& groups, const AdafactorOptions& defaults) : Adafactor(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const AdafactorOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"row_var", "col_var", "variance"}; }
  Shape state_sizes(std::string_view name, const Tensor& param) const override;
};

// --- steps of one size

// The sign of a mix of gradient and momentum (Chen et al., "Symbolic discovery of optimization algorithms").
struct LionOptions : LearningRate<LionOptions> {
  LionOptions(double lr = 1e-4) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(Betas, betas) = {0.9, 0.99};
  SINTER_OPTION(double, weight_decay) = 0;
  SINTER_OPTION(bool, maximize) = false;
};

class Lion final : public GroupedOptimizer<LionOptions> {
 public:
  Lion(const TensorList& params, const LionOptions& options = {});
  explicit Lion(std::vector<Group> groups);
  Lion(const std::vector<OptimizerParamGroup>& groups, const LionOptions& defaults) : Lion(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const LionOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"exp_avg"}; }
};

// How Muon's rate follows from the sizes of a matrix: times sqrt(max(1, rows / columns)); 0.2 sqrt(max(rows, columns)), so
// that rates of AdamW fit; sqrt(rows / columns).
enum class MuonRate : uint8_t { kOriginal, kMatchRmsAdamw, kSpectralUnclamped };

// The momentum of a matrix made nearly orthogonal by a few steps of Newton and Schulz. For matrices only: give biases,
// norms and tables to another optimiser. ns_dtype is no option of PyTorch's, which computes those steps in bf16.
struct MuonOptions : LearningRate<MuonOptions> {
  using Coefficients = std::array<double, 3>;
  MuonOptions(double lr = 1e-3) : lr_(lr) {}
  SINTER_OPTION(double, lr);
  SINTER_OPTION(double, weight_decay) = 0.1;
  SINTER_OPTION(double, momentum) = 0.95;
  SINTER_OPTION(bool, nesterov) = true;
  SINTER_OPTION(Coefficients, ns_coefficients) = {3.4445, -4.775, 2.0315};
  SINTER_OPTION(double, eps) = 1e-7;
  SINTER_OPTION(int64_t, ns_steps) = 5;
  SINTER_OPTION(MuonRate, adjust_lr_fn) = MuonRate::kOriginal;
  SINTER_OPTION(DType, ns_dtype) = kBFloat16;
};

class Muon final : public GroupedOptimizer<MuonOptions> {
 public:
  Muon(const TensorList& params, const MuonOptions& options = {});
  explicit Muon(std::vector<Group> groups);
  Muon(const std::vector<OptimizerParamGroup>& groups, const MuonOptions& defaults) : Muon(typed(groups, defaults)) {}
  void step() override;
  using Optimizer::step;

 private:
  void check_options();
  void begin(State& state, const Tensor& param, const MuonOptions& options) const override;
  std::vector<const char*> state_names() const override { return {"momentum_buffer"}; }
};

// --- averages

// A running average of parameters, average += (1 - decay) * (parameter - average), for evaluation: PyTorch's AveragedModel
// with get_ema_multi_avg_fn. It averages what it is given, in this order: net->parameters(), or these and net->buffers(),
// of which those that are no floating-point numbers are taken as they are. All but averages(), num_averaged() and the state
// may be called inside a compiled function.
class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(const TensorList& params, double decay = 0.999);
  ~ExponentialMovingAverage();
  ExponentialMovingAverage(const ExponentialMovingAverage&) = delete;

  // Call it after each step of the optimiser. The first time the parameters are taken as they are.
  void update();
  const TensorList& averages() const { return averages_; }
  int64_t num_averaged() const;

  // The averages into the parameters, or into tensors of the same sizes.
  void copy_to() const { copy_to(params_); }
  void copy_to(const TensorList& params) const;
  // Remembers the parameters as they are; gives them back.
  void store();
  void restore() const;
  // The averages into the parameters, and these into the averages; a second time undoes it.
  void swap() const;

  // "n_averaged", and "0", "1", … of each parameter.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 private:
  TensorList params_, averages_, stored_;
  const double decay_;
  int64_t count_ = 0;
  IntrusivePtr<capture::HostState> state_;  // null until a capture needs it
};

// For training in f16, whose gradients vanish where they are small: the loss is scaled up before it flows back, and the
// gradients down before they are used. A step whose gradients are not finite is left out, and the scale falls; after some
// steps without, it grows. As in PyTorch:
//
//   scaler.scale(loss).backward();
//   scaler.unscale_(adam);                         // only where the gradients are looked at, to clip them, say
//   nn::utils::clip_grad_norm_(net->parameters(), 1.0);
//   scaler.step(adam);
//   scaler.update();
struct GradScalerOptions {
  SINTER_OPTION(double, init_scale) = 65536;
  SINTER_OPTION(double, growth_factor) = 2;
  SINTER_OPTION(double, backoff_factor) = 0.5;
  SINTER_OPTION(int64_t, growth_interval) = 2000;
  SINTER_OPTION(bool, enabled) = true;
};

class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  Tensor scale(const Tensor& loss) const;
  void unscale_(Optimizer& optimizer);
  // Whether it was taken.
  bool step(Optimizer& optimizer);
  void update();

  double get_scale() const { return options_.enabled() ? scale_ : 1; }
  bool is_enabled() const { return options_.enabled(); }
  // Nothing where it is not enabled.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 private:
  struct Unscaled {
    const Optimizer* optimizer;
    bool finite;
  };
  Unscaled* find(const Optimizer& optimizer);

  GradScalerOptions options_;
  double scale_;
  int64_t good_steps_ = 0;  // since the scale changed
  std::vector<Unscaled> unscaled_;  // since the last update()
};

}  // namespace optim
}  // namespace sinter
