#pragma once
// Activation functions as layers, for Sequential, and in nn::functional.
#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter SINTER_API {
namespace nn {

// --- activation functions

// A layer without parameters around a function of one tensor.
#define SINTER_ACTIVATION(Name, function)                              \
  struct Name##Impl : Module {                                         \
    Tensor forward(const TensorArg& x) { return sinter::function(x); } \
  };                                                                   \
  SINTER_MODULE(Name)

SINTER_ACTIVATION(ReLU, relu);
SINTER_ACTIVATION(ReLU6, relu6);
SINTER_ACTIVATION(SiLU, silu);
SINTER_ACTIVATION(Mish, mish);
SINTER_ACTIVATION(Hardswish, hardswish);
SINTER_ACTIVATION(Hardsigmoid, hardsigmoid);
SINTER_ACTIVATION(SELU, selu);
SINTER_ACTIVATION(Sigmoid, sigmoid);
SINTER_ACTIVATION(LogSigmoid, logsigmoid);
SINTER_ACTIVATION(Tanh, tanh);
SINTER_ACTIVATION(Softsign, softsign);
SINTER_ACTIVATION(Tanhshrink, tanhshrink);
#undef SINTER_ACTIVATION

// approximate: "none" or "tanh".
struct GELUImpl : Module {
  std::string approximate;
  explicit GELUImpl(const std::string& approximate = "none") : approximate(approximate) {}
  Tensor forward(const TensorArg& x) { return gelu(x, approximate); }
  std::string extra_repr() const override { return "approximate=" + approximate; }
};
SINTER_MODULE(GELU);

struct SoftplusImpl : Module {
  double beta, threshold;
  explicit SoftplusImpl(double beta = 1, double threshold = 20) : beta(beta), threshold(threshold) {}
  Tensor forward(const TensorArg& x) { return softplus(x, beta, threshold); }
  std::string extra_repr() const override {
    return "beta=" + double_to_string(beta) + ", threshold=" + double_to_string(threshold);
  }
};
SINTER_MODULE(Softplus);

// Layers that work along one dimension.
struct DimLayer : Module {
  int64_t dim;
  explicit DimLayer(int64_t dim) : dim(dim) {}
  std::string extra_repr() const override { return "dim=" + std::to_string(dim); }
};

struct SoftmaxImpl : DimLayer {
  using DimLayer::DimLayer;
  Tensor forward(const TensorArg& x) { return softmax(x, dim); }
};
SINTER_MODULE(Softmax);

struct LogSoftmaxImpl : DimLayer {
  using DimLayer::DimLayer;
  Tensor forward(const TensorArg& x) { return log_softmax(x, dim); }
};
SINTER_MODULE(LogSoftmax);

struct GLUImpl : DimLayer {
  explicit GLUImpl(int64_t dim = -1) : DimLayer(dim) {}
  Tensor forward(const TensorArg& x) { return glu(x, dim); }
};
SINTER_MODULE(GLU);

struct SoftminImpl : DimLayer {
  using DimLayer::DimLayer;
  Tensor forward(const TensorArg& x) { return softmin(x, dim); }
};
SINTER_MODULE(Softmin);

// Over the channels of [n, c, h, w] or [c, h, w].
struct Softmax2dImpl : Module {
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(Softmax2d);

// Layers around a function of a tensor and one number.
#define SINTER_ACTIVATION_WITH(Name, function, number, standard)                                        \
  struct Name##Impl : Module {                                                                          \
    double number;                                                                                      \
    explicit Name##Impl(double number = standard) : number(number) {}                                   \
    Tensor forward(const TensorArg& x) { return sinter::function(x, number); }                          \
    std::string extra_repr() const override { return #number "=" + double_to_string(number); }          \
  };                                                                                                    \
  SINTER_MODULE(Name)
SINTER_ACTIVATION_WITH(LeakyReLU, leaky_relu, negative_slope, 0.01);
SINTER_ACTIVATION_WITH(ELU, elu, alpha, 1);
SINTER_ACTIVATION_WITH(CELU, celu, alpha, 1);
SINTER_ACTIVATION_WITH(Hardshrink, hardshrink, lambda, 0.5);
SINTER_ACTIVATION_WITH(Softshrink, softshrink, lambda, 0.5);
#undef SINTER_ACTIVATION_WITH

struct HardtanhImpl : Module {
  double min_val, max_val;
  explicit HardtanhImpl(double min_val = -1, double max_val = 1) : min_val(min_val), max_val(max_val) {}
  Tensor forward(const TensorArg& x) { return hardtanh(x, min_val, max_val); }
  std::string extra_repr() const override {
    return "min_val=" + double_to_string(min_val) + ", max_val=" + double_to_string(max_val);
  }
};
SINTER_MODULE(Hardtanh);

struct ThresholdImpl : Module {
  double threshold, value;
  ThresholdImpl(double threshold, double value) : threshold(threshold), value(value) {}
  Tensor forward(const TensorArg& x) { return sinter::threshold(x, threshold, value); }
  std::string extra_repr() const override {
    return "threshold=" + double_to_string(threshold) + ", value=" + double_to_string(value);
  }
};
SINTER_MODULE(Threshold);

// Slopes drawn from [lower, upper) while training.
struct RReLUImpl : Module {
  double lower, upper;
  explicit RReLUImpl(double lower = 1.0 / 8, double upper = 1.0 / 3) : lower(lower), upper(upper) {}
  Tensor forward(const TensorArg& x) { return rrelu(x, lower, upper, is_training()); }
  std::string extra_repr() const override {
    return "lower=" + double_to_string(lower) + ", upper=" + double_to_string(upper);
  }
};
SINTER_MODULE(RReLU);

struct PReLUOptions {
  PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}
  SINTER_OPTION(int64_t, num_parameters);  // 1, or the number of channels
  SINTER_OPTION(double, init) = 0.25;
};
// A slope that is learned.
struct PReLUImpl : Module {
  PReLUOptions options;
  Tensor weight;
  explicit PReLUImpl(const PReLUOptions& options = {});
  void reset_parameters();
  Tensor forward(const TensorArg& x) { return prelu(x, weight); }
  std::string extra_repr() const override { return "num_parameters=" + std::to_string(options.num_parameters()); }
};
SINTER_MODULE(PReLU);

namespace functional {

// Functions of elements, whose parameters are plain arguments.
using sinter::celu, sinter::elu, sinter::gelu, sinter::glu, sinter::gumbel_softmax, sinter::hardshrink,
    sinter::hardsigmoid, sinter::hardswish, sinter::hardtanh, sinter::leaky_relu, sinter::log_softmax,
    sinter::logsigmoid, sinter::mish, sinter::prelu, sinter::relu, sinter::relu6, sinter::rrelu, sinter::selu,
    sinter::sigmoid, sinter::silu, sinter::softmax, sinter::softmin, sinter::softplus, sinter::softshrink,
    sinter::softsign, sinter::tanh, sinter::tanhshrink, sinter::threshold;

}  // namespace functional

}  // namespace nn
}  // namespace sinter
