#include "sinter/nn/normalization.h"

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/rerun.h"

namespace sinter::nn {

// --- LayerNorm, RMSNorm

LayerNormImpl::LayerNormImpl(const LayerNormOptions& options) : options(options) { reset(); }

void LayerNormImpl::reset() {
  if (options.elementwise_affine()) {
    weight = register_parameter("weight", new_parameter(options.normalized_shape()));
    if (options.bias()) bias = register_parameter("bias", new_parameter(options.normalized_shape()));
  }
  if (initialises_parameters()) reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

Tensor LayerNormImpl::forward(const TensorArg& x) {
  return layer_norm(x, options.normalized_shape(), weight, bias, options.eps());
}

std::string LayerNormImpl::extra_repr() const {
  return format("{}, eps={}, elementwise_affine={}", options.normalized_shape(), options.eps(),
                options.elementwise_affine());
}

RMSNormImpl::RMSNormImpl(const RMSNormOptions& options) : options(options) { reset(); }

void RMSNormImpl::reset() {
  if (options.elementwise_affine()) weight = register_parameter("weight", new_parameter(options.normalized_shape()));
  if (initialises_parameters()) reset_parameters();
}

void RMSNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
}

Tensor RMSNormImpl::forward(const TensorArg& x) {
  return rms_norm(x, options.normalized_shape(), weight, options.eps());
}

std::string RMSNormImpl::extra_repr() const {
  return format("{}, eps={}, elementwise_affine={}", options.normalized_shape(),
                options.eps() ? double_to_string(*options.eps()) : "none", options.elementwise_affine());
}

// --- BatchNorm

BatchNormBase::BatchNormBase(const BatchNormOptions& options) : options(options) { reset(); }

void BatchNormBase::reset() {
  Shape shape{options.num_features()};
  if (options.affine()) {
    weight = register_parameter("weight", new_parameter(shape));
    bias = register_parameter("bias", new_parameter(shape));
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", new_parameter(shape));
    running_var = register_buffer("running_var", new_parameter(shape));
    auto counter = TensorOptions(kInt64).device(parameter_options().device_);
    num_batches_tracked = register_buffer("num_batches_tracked", empty({}, counter));
  }
  if (initialises_parameters()) reset_parameters();
}

void BatchNormBase::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

void BatchNormBase::reset_parameters() {
  reset_running_stats();
  if (!weight.defined()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

Tensor BatchNormBase::normalize(const TensorArg& x, int64_t low_rank, int64_t high_rank) {
  UserPosition here(x.where(), "nn::BatchNorm");
  check(x.dim() >= low_rank && x.dim() <= high_rank, "nn::{}: expected an input of {} dimensions, got {}", name(),
        low_rank == high_rank ? format("{}", low_rank) : format("{} or {}", low_rank, high_rank), x.sizes());
  double momentum = options.momentum().value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    NoGradGuard no_grad;
    if (!is_rerun) num_batches_tracked.add_(1);
    if (!options.momentum()) momentum = 1 / num_batches_tracked.item<double>();
  }
  bool by_batch = is_training() || !running_mean.defined();
  return batch_norm(x, running_mean, running_var, weight, bias, by_batch, momentum, options.eps());
}

std::string BatchNormBase::extra_repr() const {
  return format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", options.num_features(), options.eps(),
                options.momentum() ? double_to_string(*options.momentum()) : "none", options.affine(),
                options.track_running_stats());
}

// --- GroupNorm

GroupNormImpl::GroupNormImpl(const GroupNormOptions& options) : options(options) { reset(); }

void GroupNormImpl::reset() {
  int64_t groups = options.num_groups(), channels = options.num_channels();
  check(groups > 0 && channels % groups == 0, "nn::GroupNorm: {} channels do not fall into {} groups", channels,
        groups);
  if (options.affine()) {
    weight = register_parameter("weight", new_parameter({channels}));
    bias = register_parameter("bias", new_parameter({channels}));
  }
  if (initialises_parameters()) reset_parameters();
}

void GroupNormImpl::reset_parameters() {
  if (!weight.defined()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

Tensor GroupNormImpl::forward(const TensorArg& x) {
  return group_norm(x, options.num_groups(), weight, bias, options.eps());
}

std::string GroupNormImpl::extra_repr() const {
  return format("{}, {}, eps={}, affine={}", options.num_groups(), options.num_channels(), options.eps(),
                options.affine());
}

// --- InstanceNorm, LocalResponseNorm

InstanceNormBase::InstanceNormBase(const InstanceNormOptions& options) : options(options) { reset(); }

void InstanceNormBase::reset() {
  Shape shape{options.num_features()};
  if (options.affine()) {
    weight = register_parameter("weight", new_parameter(shape));
    bias = register_parameter("bias", new_parameter(shape));
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", new_parameter(shape));
    running_var = register_buffer("running_var", new_parameter(shape));
    auto counter = TensorOptions(kInt64).device(parameter_options().device_);
    // PyTorch's state has it too, and counts nothing in it.
    num_batches_tracked = register_buffer("num_batches_tracked", empty({}, counter));
  }
  if (initialises_parameters()) reset_parameters();
}

void InstanceNormBase::reset_running_stats() {
  if (!running_mean.defined()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

void InstanceNormBase::reset_parameters() {
  reset_running_stats();
  if (!weight.defined()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

Tensor InstanceNormBase::normalize(const TensorArg& x, int64_t rank) {
  UserPosition here(x.where(), "nn::InstanceNorm");
  bool has_batch = x.dim() == rank;
  check(has_batch || x.dim() == rank - 1, "nn::{}: expected an input of {} or {} dimensions, got {}", name(), rank - 1,
        rank, x.sizes());
  check(x.size(has_batch ? 1 : 0) == options.num_features(), "nn::{}: expected {} channels, got an input {}", name(),
        options.num_features(), x.sizes());
  bool by_input = is_training() || !running_mean.defined();
  Tensor y = instance_norm({has_batch ? x.tensor() : x.tensor().unsqueeze(0), x.where()}, running_mean, running_var,
                           weight, bias, by_input, options.momentum(), options.eps());
  return has_batch ? y : y.squeeze(0);
}

std::string InstanceNormBase::extra_repr() const {
  return format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", options.num_features(), options.eps(),
                options.momentum(), options.affine(), options.track_running_stats());
}

Tensor LocalResponseNormImpl::forward(const TensorArg& x) {
  return local_response_norm(x, options.size(), options.alpha(), options.beta(), options.k());
}
std::string LocalResponseNormImpl::extra_repr() const {
  return format("{}, alpha={}, beta={}, k={}", options.size(), options.alpha(), options.beta(), options.k());
}

// --- dropouts

DropoutBase::DropoutBase(const DropoutOptions& options) : options(options) {
  check(options.p() >= 0 && options.p() <= 1, "nn::Dropout: {} is no probability", options.p());
}
std::string DropoutBase::extra_repr() const {
  return format("p={}", options.p()) + (options.inplace() ? ", inplace=true" : "");
}

namespace functional {

static Tensor dropout_channels(const char* op, const TensorArg& x, double p, bool training, int64_t spatial) {
  UserPosition here(x.where());
  check(x.dim() == spatial + 1 || x.dim() == spatial + 2, "{}: expected an input of {} or {} dimensions, got {}", op,
        spatial + 1, spatial + 2, x.sizes());
  if (x.dim() == spatial + 2) return feature_dropout(x, p, training);
  return feature_dropout({x.tensor().unsqueeze(0), x.where()}, p, training).squeeze(0);
}

Tensor dropout1d(const TensorArg& x, double p, bool training) {
  return dropout_channels("dropout1d", x, p, training, 1);
}
Tensor dropout2d(const TensorArg& x, double p, bool training) {
  return dropout_channels("dropout2d", x, p, training, 2);
}
Tensor dropout3d(const TensorArg& x, double p, bool training) {
  return dropout_channels("dropout3d", x, p, training, 3);
}

#define SINTER_DROPOUT_WITH(function, Options)                               \
  Tensor function(const TensorArg& x, const Options& options) {              \
    UserPosition here(x.where());                                            \
    Tensor dropped = function(x, options.p(), options.training());           \
    return options.inplace() ? x.tensor().copy_(dropped) : dropped;          \
  }
SINTER_DROPOUT_WITH(dropout, DropoutFuncOptions)
SINTER_DROPOUT_WITH(alpha_dropout, AlphaDropoutFuncOptions)
SINTER_DROPOUT_WITH(feature_alpha_dropout, FeatureAlphaDropoutFuncOptions)
SINTER_DROPOUT_WITH(dropout1d, Dropout1dFuncOptions)
SINTER_DROPOUT_WITH(dropout2d, Dropout2dFuncOptions)
SINTER_DROPOUT_WITH(dropout3d, Dropout3dFuncOptions)
#undef SINTER_DROPOUT_WITH

}  // namespace functional

}  // namespace sinter::nn
