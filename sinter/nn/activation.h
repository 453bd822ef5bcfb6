#pragma once
// Activation functions as layers, for Sequential, and in nn::functional.
#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter SINTER_API {
namespace nn {

// --- options. With inplace(true) the result is stored in the input, as by relu_() and its like

struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}
  SINTER_OPTION(bool, inplace);
};
using ReLU6Options = ReLUOptions;
using SELUOptions = ReLUOptions;

struct LeakyReLUOptions {
  LeakyReLUOptions(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  SINTER_OPTION(double, negative_slope);
  SINTER_OPTION(bool, inplace) = false;
};
struct ELUOptions {
  ELUOptions(double alpha = 1) : alpha_(alpha) {}
  SINTER_OPTION(double, alpha);
  SINTER_OPTION(bool, inplace) = false;
};
using CELUOptions = ELUOptions;
struct HardtanhOptions {
  HardtanhOptions() = default;
  SINTER_OPTION(double, min_val) = -1;
  SINTER_OPTION(double, max_val) = 1;
  SINTER_OPTION(bool, inplace) = false;
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  SINTER_OPTION(double, threshold);
  SINTER_OPTION(double, value);
  SINTER_OPTION(bool, inplace) = false;
};
struct RReLUOptions {
  RReLUOptions() = default;
  SINTER_OPTION(double, lower) = 1.0 / 8;
  SINTER_OPTION(double, upper) = 1.0 / 3;
  SINTER_OPTION(bool, inplace) = false;
};
// approximate: "none" or "tanh".
struct GELUOptions {
  GELUOptions(const std::string& approximate = "none") : approximate_(approximate) {}
  GELUOptions(const char* approximate) : approximate_(approximate) {}
  SINTER_OPTION(std::string, approximate);
};
struct SoftplusOptions {
  SoftplusOptions() = default;
  SINTER_OPTION(double, beta) = 1;
  SINTER_OPTION(double, threshold) = 20;
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  SINTER_OPTION(double, lambda);
};
using SoftshrinkOptions = HardshrinkOptions;
// Of layers that work along one dimension.
struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}
  SINTER_OPTION(int64_t, dim);
};
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;
struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  SINTER_OPTION(int64_t, dim);
};
struct PReLUOptions {
  PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}
  SINTER_OPTION(int64_t, num_parameters);  // 1, or the number of channels
  SINTER_OPTION(double, init) = 0.25;
};

// --- the functions with options; those of numbers alone are the plain ones

namespace functional {

using sinter::celu, sinter::elu, sinter::gelu, sinter::glu, sinter::gumbel_softmax, sinter::hardshrink,
    sinter::hardsigmoid, sinter::hardswish, sinter::hardtanh, sinter::leaky_relu, sinter::log_softmax,
    sinter::logsigmoid, sinter::mish, sinter::prelu, sinter::relu, sinter::relu6, sinter::rrelu, sinter::selu,
    sinter::sigmoid, sinter::silu, sinter::softmax, sinter::softmin, sinter::softplus, sinter::softshrink,
    sinter::softsign, sinter::tanh, sinter::tanhshrink, sinter::threshold;

using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using SELUFuncOptions = SELUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ELUFuncOptions = ELUOptions;
using CELUFuncOptions = CELUOptions;
using HardtanhFuncOptions = HardtanhOptions;
using ThresholdFuncOptions = ThresholdOptions;
using GELUFuncOptions = GELUOptions;
using GLUFuncOptions = GLUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;

struct RReLUFuncOptions {
  RReLUFuncOptions() = default;
  SINTER_OPTION(double, lower) = 1.0 / 8;
  SINTER_OPTION(double, upper) = 1.0 / 3;
  SINTER_OPTION(bool, training) = false;
  SINTER_OPTION(bool, inplace) = false;
};
// With a dtype the operand is converted to it first.
struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}
  SINTER_OPTION(int64_t, dim);
  SINTER_OPTION(std::optional<DType>, dtype);
};
using SoftminFuncOptions = SoftmaxFuncOptions;
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;
struct GumbelSoftmaxFuncOptions {
  GumbelSoftmaxFuncOptions() = default;
  SINTER_OPTION(double, tau) = 1;
  SINTER_OPTION(bool, hard) = false;
  SINTER_OPTION(int64_t, dim) = -1;
};

Tensor relu(const TensorArg& x, const ReLUFuncOptions& options);
Tensor relu6(const TensorArg& x, const ReLU6FuncOptions& options);
Tensor selu(const TensorArg& x, const SELUFuncOptions& options);
Tensor leaky_relu(const TensorArg& x, const LeakyReLUFuncOptions& options);
Tensor elu(const TensorArg& x, const ELUFuncOptions& options);
Tensor celu(const TensorArg& x, const CELUFuncOptions& options);
Tensor hardtanh(const TensorArg& x, const HardtanhFuncOptions& options);
Tensor threshold(const TensorArg& x, const ThresholdFuncOptions& options);
Tensor rrelu(const TensorArg& x, const RReLUFuncOptions& options);
Tensor gelu(const TensorArg& x, const GELUFuncOptions& options);
Tensor glu(const TensorArg& x, const GLUFuncOptions& options);
Tensor softplus(const TensorArg& x, const SoftplusFuncOptions& options);
Tensor hardshrink(const TensorArg& x, const HardshrinkFuncOptions& options);
Tensor softshrink(const TensorArg& x, const SoftshrinkFuncOptions& options);
Tensor softmax(const TensorArg& x, const SoftmaxFuncOptions& options);
Tensor softmin(const TensorArg& x, const SoftminFuncOptions& options);
Tensor log_softmax(const TensorArg& x, const LogSoftmaxFuncOptions& options);
Tensor gumbel_softmax(const TensorArg& logits, const GumbelSoftmaxFuncOptions& options);

}  // namespace functional

// --- the layers

// Without parameters, around a function of one tensor.
#define SINTER_ACTIVATION(Name, function)                              \
  struct Name##Impl : Cloneable<Name##Impl> {                                         \
    Tensor forward(const TensorArg& x) { return sinter::function(x); } \
  };                                                                   \
  SINTER_MODULE(Name)

SINTER_ACTIVATION(SiLU, silu);
SINTER_ACTIVATION(Mish, mish);
SINTER_ACTIVATION(Hardswish, hardswish);
SINTER_ACTIVATION(Hardsigmoid, hardsigmoid);
SINTER_ACTIVATION(Sigmoid, sigmoid);
SINTER_ACTIVATION(LogSigmoid, logsigmoid);
SINTER_ACTIVATION(Tanh, tanh);
SINTER_ACTIVATION(Softsign, softsign);
SINTER_ACTIVATION(Tanhshrink, tanhshrink);
#undef SINTER_ACTIVATION

// The same with options, made from what they are made from: ReLU(), ReLU(true), ReLU(ReLUOptions().inplace(true)).
#define SINTER_ACTIVATION_WITH(Name, function)                                            \
  struct Name##Impl : Cloneable<Name##Impl> {                                                            \
    Name##Options options;                                                                \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) {}          \
    Tensor forward(const TensorArg& x) { return functional::function(x, options); }       \
    std::string extra_repr() const override;                                              \
  };                                                                                      \
  SINTER_MODULE(Name)

SINTER_ACTIVATION_WITH(ReLU, relu);
SINTER_ACTIVATION_WITH(ReLU6, relu6);
SINTER_ACTIVATION_WITH(SELU, selu);
SINTER_ACTIVATION_WITH(LeakyReLU, leaky_relu);
SINTER_ACTIVATION_WITH(ELU, elu);
SINTER_ACTIVATION_WITH(CELU, celu);
SINTER_ACTIVATION_WITH(GELU, gelu);
SINTER_ACTIVATION_WITH(GLU, glu);
SINTER_ACTIVATION_WITH(Hardshrink, hardshrink);
SINTER_ACTIVATION_WITH(Softshrink, softshrink);
#undef SINTER_ACTIVATION_WITH

// Along one dimension, which must be told.
#define SINTER_ACTIVATION_ALONG(Name, function)                                           \
  struct Name##Impl : Cloneable<Name##Impl> {                                                            \
    Name##Options options;                                                                \
    explicit Name##Impl(const Name##Options& options) : options(options) {}               \
    Tensor forward(const TensorArg& x) { return sinter::function(x, options.dim()); }     \
    std::string extra_repr() const override;                                              \
  };                                                                                      \
  SINTER_MODULE(Name)

SINTER_ACTIVATION_ALONG(Softmax, softmax);
SINTER_ACTIVATION_ALONG(Softmin, softmin);
SINTER_ACTIVATION_ALONG(LogSoftmax, log_softmax);
#undef SINTER_ACTIVATION_ALONG

struct SoftplusImpl : Cloneable<SoftplusImpl> {
  SoftplusOptions options;
  explicit SoftplusImpl(double beta = 1, double threshold = 20) : options(SoftplusOptions().beta(beta).threshold(threshold)) {}
  explicit SoftplusImpl(const SoftplusOptions& options) : options(options) {}
  Tensor forward(const TensorArg& x) { return functional::softplus(x, options); }
  std::string extra_repr() const override;
};
SINTER_MODULE(Softplus);

struct HardtanhImpl : Cloneable<HardtanhImpl> {
  HardtanhOptions options;
  explicit HardtanhImpl(double min_val = -1, double max_val = 1) : options(HardtanhOptions().min_val(min_val).max_val(max_val)) {}
  explicit HardtanhImpl(const HardtanhOptions& options) : options(options) {}
  Tensor forward(const TensorArg& x) { return functional::hardtanh(x, options); }
  std::string extra_repr() const override;
};
SINTER_MODULE(Hardtanh);

struct ThresholdImpl : Cloneable<ThresholdImpl> {
  ThresholdOptions options;
  ThresholdImpl(double threshold, double value) : ThresholdImpl(ThresholdOptions(threshold, value)) {}
  explicit ThresholdImpl(const ThresholdOptions& options) : options(options) {}
  Tensor forward(const TensorArg& x) { return functional::threshold(x, options); }
  std::string extra_repr() const override;
};
SINTER_MODULE(Threshold);

// Slopes drawn from [lower, upper) while training.
struct RReLUImpl : Cloneable<RReLUImpl> {
  RReLUOptions options;
  explicit RReLUImpl(double lower = 1.0 / 8, double upper = 1.0 / 3) : options(RReLUOptions().lower(lower).upper(upper)) {}
  explicit RReLUImpl(const RReLUOptions& options) : options(options) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(RReLU);

// Over the channels of [n, c, h, w] or [c, h, w].
struct Softmax2dImpl : Cloneable<Softmax2dImpl> {
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(Softmax2d);

// A slope that is learned.
struct PReLUImpl : Cloneable<PReLUImpl> {
  PReLUOptions options;
  Tensor weight;
  explicit PReLUImpl(const PReLUOptions& options = {});
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x) { return prelu(x, weight); }
  std::string extra_repr() const override { return "num_parameters=" + std::to_string(options.num_parameters()); }
};
SINTER_MODULE(PReLU);

}  // namespace nn
}  // namespace sinter
