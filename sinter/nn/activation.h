#pragma once
// Activation functions as layers, for Sequential, and losses as modules.
#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/norm.h"
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
#undef SINTER_ACTIVATION

// approximate: "none" or "tanh".
struct GELUImpl : Module {
  std::string approximate;
  explicit GELUImpl(const std::string& approximate = "none") : approximate(approximate) {}
  Tensor forward(const TensorArg& x) { return gelu(x, approximate); }
  std::string extra_repr() const override { return "approximate=" + approximate; }
};
SINTER_MODULE(GELU);

struct LeakyReLUImpl : Module {
  double negative_slope;
  explicit LeakyReLUImpl(double negative_slope = 0.01) : negative_slope(negative_slope) {}
  Tensor forward(const TensorArg& x) { return leaky_relu(x, negative_slope); }
  std::string extra_repr() const override { return "negative_slope=" + double_to_string(negative_slope); }
};
SINTER_MODULE(LeakyReLU);

struct ELUImpl : Module {
  double alpha;
  explicit ELUImpl(double alpha = 1) : alpha(alpha) {}
  Tensor forward(const TensorArg& x) { return elu(x, alpha); }
  std::string extra_repr() const override { return "alpha=" + double_to_string(alpha); }
};
SINTER_MODULE(ELU);

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

// --- losses: loss(prediction, target)

struct MSELossImpl : Module {
  Reduction reduction;
  explicit MSELossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) { return mse_loss(x, target, reduction); }
};
SINTER_MODULE(MSELoss);

struct L1LossImpl : Module {
  Reduction reduction;
  explicit L1LossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) { return l1_loss(x, target, reduction); }
};
SINTER_MODULE(L1Loss);

struct BCEWithLogitsLossImpl : Module {
  Reduction reduction;
  explicit BCEWithLogitsLossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) {
    return binary_cross_entropy_with_logits(x, target, {}, {}, reduction);
  }
};
SINTER_MODULE(BCEWithLogitsLoss);

struct CrossEntropyLossOptions {
  CrossEntropyLossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
  SINTER_OPTION(int64_t, ignore_index) = -100;
  SINTER_OPTION(double, label_smoothing) = 0;
};

struct CrossEntropyLossImpl : Module {
  CrossEntropyLossOptions options;
  Tensor weight;
  explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options = {})
      : options(options), weight(register_buffer("weight", options.weight())) {}
  Tensor forward(const TensorArg& logits, const TensorArg& target) {
    return cross_entropy(logits, target, weight, options.reduction(), options.ignore_index(),
                         options.label_smoothing());
  }
};
SINTER_MODULE(CrossEntropyLoss);

}  // namespace nn
}  // namespace sinter
