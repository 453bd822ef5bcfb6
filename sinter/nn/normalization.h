#pragma once
// Normalisation layers and dropouts.
#include <optional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"

namespace sinter SINTER_API {
namespace nn {

struct LayerNormOptions {
  LayerNormOptions(const Shape& normalized_shape) : normalized_shape_(normalized_shape) {}
  LayerNormOptions(int64_t normalized_size) : normalized_shape_(normalized_size) {}
  SINTER_OPTION(Shape, normalized_shape);
  SINTER_OPTION(double, eps) = 1e-5;
  SINTER_OPTION(bool, elementwise_affine) = true;
  SINTER_OPTION(bool, bias) = true;
};

// Zero mean and unit variance over the last dimensions, then weight and bias.
struct LayerNormImpl : Cloneable<LayerNormImpl> {
  LayerNormOptions options;
  Tensor weight, bias;

  explicit LayerNormImpl(const LayerNormOptions& options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(LayerNorm);

struct RMSNormOptions {
  RMSNormOptions(const Shape& normalized_shape) : normalized_shape_(normalized_shape) {}
  RMSNormOptions(int64_t normalized_size) : normalized_shape_(normalized_size) {}
  SINTER_OPTION(Shape, normalized_shape);
  SINTER_OPTION(std::optional<double>, eps);  // the dtype's own when not given
  SINTER_OPTION(bool, elementwise_affine) = true;
};

// Unit mean square over the last dimensions, then weight.
struct RMSNormImpl : Cloneable<RMSNormImpl> {
  RMSNormOptions options;
  Tensor weight;

  explicit RMSNormImpl(const RMSNormOptions& options);
  explicit RMSNormImpl(int64_t size, std::optional<double> eps = {}) : RMSNormImpl(RMSNormOptions(size).eps(eps)) {}
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(RMSNorm);

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  SINTER_OPTION(int64_t, num_features);
  SINTER_OPTION(double, eps) = 1e-5;
  SINTER_OPTION(std::optional<double>, momentum) = 0.1;  // none: the plain average over all batches
  SINTER_OPTION(bool, affine) = true;
  SINTER_OPTION(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

// Per channel over the batch; by the running statistics when not training (unless they are not tracked).
struct BatchNormBase : CloneableBase {
  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

  explicit BatchNormBase(const BatchNormOptions& options);
  void reset() override;
  void reset_parameters();
  void reset_running_stats();
  std::string extra_repr() const override;

 protected:
  Tensor normalize(const TensorArg& x, int64_t low_rank, int64_t high_rank);
};

// Of [n, c] or [n, c, l].
struct BatchNorm1dImpl : Cloneable<BatchNorm1dImpl, BatchNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 2, 3); }
};
SINTER_MODULE(BatchNorm1d);
// Of [n, c, h, w].
struct BatchNorm2dImpl : Cloneable<BatchNorm2dImpl, BatchNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 4, 4); }
};
SINTER_MODULE(BatchNorm2d);
// Of [n, c, d, h, w].
struct BatchNorm3dImpl : Cloneable<BatchNorm3dImpl, BatchNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 5, 5); }
};
SINTER_MODULE(BatchNorm3d);

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  SINTER_OPTION(int64_t, num_groups);
  SINTER_OPTION(int64_t, num_channels);
  SINTER_OPTION(double, eps) = 1e-5;
  SINTER_OPTION(bool, affine) = true;
};

// Over groups of channels of each sample.
struct GroupNormImpl : Cloneable<GroupNormImpl> {
  GroupNormOptions options;
  Tensor weight, bias;

  GroupNormImpl(int64_t num_groups, int64_t num_channels) : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(GroupNorm);

struct InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  SINTER_OPTION(int64_t, num_features);
  SINTER_OPTION(double, eps) = 1e-5;
  SINTER_OPTION(double, momentum) = 0.1;
  SINTER_OPTION(bool, affine) = false;
  SINTER_OPTION(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

// Over each channel of each sample; by the running statistics, where they are tracked, when not training.
struct InstanceNormBase : CloneableBase {
  InstanceNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

  explicit InstanceNormBase(const InstanceNormOptions& options);
  void reset() override;
  void reset_parameters();
  void reset_running_stats();
  std::string extra_repr() const override;

 protected:
  // The batch may be left out.
  Tensor normalize(const TensorArg& x, int64_t rank);
};
struct InstanceNorm1dImpl : Cloneable<InstanceNorm1dImpl, InstanceNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 3); }
};
SINTER_MODULE(InstanceNorm1d);
struct InstanceNorm2dImpl : Cloneable<InstanceNorm2dImpl, InstanceNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 4); }
};
SINTER_MODULE(InstanceNorm2d);
struct InstanceNorm3dImpl : Cloneable<InstanceNorm3dImpl, InstanceNormBase> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x) { return normalize(x, 5); }
};
SINTER_MODULE(InstanceNorm3d);

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  SINTER_OPTION(int64_t, size);
  SINTER_OPTION(double, alpha) = 1e-4;
  SINTER_OPTION(double, beta) = 0.75;
  SINTER_OPTION(double, k) = 1;
};
// By the squares of neighbouring channels.
struct LocalResponseNormImpl : Cloneable<LocalResponseNormImpl> {
  LocalResponseNormOptions options;
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& options) : options(options) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(LocalResponseNorm);

// --- dropouts: layers that do something while training only

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  SINTER_OPTION(double, p);
  SINTER_OPTION(bool, inplace) = false;  // the result is stored in the input
};
using Dropout1dOptions = DropoutOptions;
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

namespace functional {

struct DropoutFuncOptions {
  DropoutFuncOptions() = default;
  SINTER_OPTION(double, p) = 0.5;
  SINTER_OPTION(bool, training) = true;
  SINTER_OPTION(bool, inplace) = false;
};
using Dropout1dFuncOptions = DropoutFuncOptions;
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
struct AlphaDropoutFuncOptions {
  AlphaDropoutFuncOptions() = default;
  SINTER_OPTION(double, p) = 0.5;
  SINTER_OPTION(bool, training) = false;
  SINTER_OPTION(bool, inplace) = false;
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;

using sinter::alpha_dropout, sinter::dropout, sinter::feature_alpha_dropout;
Tensor dropout(const TensorArg& x, const DropoutFuncOptions& options);
Tensor alpha_dropout(const TensorArg& x, const AlphaDropoutFuncOptions& options);
Tensor feature_alpha_dropout(const TensorArg& x, const FeatureAlphaDropoutFuncOptions& options);
// Whole channels of an input with 1, 2 or 3 spatial dimensions; the batch may be left out.
Tensor dropout1d(const TensorArg& x, double p = 0.5, bool training = true);
Tensor dropout2d(const TensorArg& x, double p = 0.5, bool training = true);
Tensor dropout3d(const TensorArg& x, double p = 0.5, bool training = true);
Tensor dropout1d(const TensorArg& x, const Dropout1dFuncOptions& options);
Tensor dropout2d(const TensorArg& x, const Dropout2dFuncOptions& options);
Tensor dropout3d(const TensorArg& x, const Dropout3dFuncOptions& options);

}  // namespace functional

struct DropoutBase : CloneableBase {
  DropoutOptions options;
  explicit DropoutBase(const DropoutOptions& options = {});
  std::string extra_repr() const override;

 protected:
  // For the function of the layer, as it is called now.
  template <class FuncOptions>
  FuncOptions now() const {
    return FuncOptions().p(options.p()).training(is_training()).inplace(options.inplace());
  }
};

#define SINTER_DROPOUT(Name, function)                                           \
  struct Name##Impl : Cloneable<Name##Impl, DropoutBase> {                       \
    using Cloneable::Cloneable;                                                  \
    Tensor forward(const TensorArg& x) {                                         \
      return functional::function(x, now<functional::Name##FuncOptions>());      \
    }                                                                            \
  };                                                                             \
  SINTER_MODULE(Name)
// Zero with probability p, the rest scaled by 1 / (1 - p).
SINTER_DROPOUT(Dropout, dropout);
// The same for whole channels, of [n, c, l], [n, c, h, w] or [n, c, d, h, w]; n may be left out.
SINTER_DROPOUT(Dropout1d, dropout1d);
SINTER_DROPOUT(Dropout2d, dropout2d);
SINTER_DROPOUT(Dropout3d, dropout3d);
// For selu: mean and variance stay.
SINTER_DROPOUT(AlphaDropout, alpha_dropout);
SINTER_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout);
#undef SINTER_DROPOUT

// --- the functions of normalisation with options; x and what the options do not hold stand before them

namespace functional {

using sinter::batch_norm, sinter::group_norm, sinter::instance_norm, sinter::layer_norm, sinter::local_response_norm,
    sinter::normalize, sinter::rms_norm;

struct BatchNormFuncOptions {
  BatchNormFuncOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Tensor, bias);
  SINTER_OPTION(bool, training) = false;
  SINTER_OPTION(double, momentum) = 0.1;
  SINTER_OPTION(double, eps) = 1e-5;
};
inline Tensor batch_norm(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& o) {
  return batch_norm(x, running_mean, running_var, o.weight(), o.bias(), o.training(), o.momentum(), o.eps());
}
struct InstanceNormFuncOptions {
  InstanceNormFuncOptions() = default;
  SINTER_OPTION(Tensor, running_mean);
  SINTER_OPTION(Tensor, running_var);
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Tensor, bias);
  SINTER_OPTION(bool, use_input_stats) = true;
  SINTER_OPTION(double, momentum) = 0.1;
  SINTER_OPTION(double, eps) = 1e-5;
};
inline Tensor instance_norm(const TensorArg& x, const InstanceNormFuncOptions& o) {
  return instance_norm(x, o.running_mean(), o.running_var(), o.weight(), o.bias(), o.use_input_stats(), o.momentum(), o.eps());
}
struct LayerNormFuncOptions {
  LayerNormFuncOptions(const Shape& normalized_shape) : normalized_shape_(normalized_shape) {}
  LayerNormFuncOptions(int64_t normalized_size) : normalized_shape_(normalized_size) {}
  SINTER_OPTION(Shape, normalized_shape);
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Tensor, bias);
  SINTER_OPTION(double, eps) = 1e-5;
};
inline Tensor layer_norm(const TensorArg& x, const LayerNormFuncOptions& o) {
  return layer_norm(x, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  SINTER_OPTION(int64_t, num_groups);
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Tensor, bias);
  SINTER_OPTION(double, eps) = 1e-5;
};
inline Tensor group_norm(const TensorArg& x, const GroupNormFuncOptions& o) {
  return group_norm(x, o.num_groups(), o.weight(), o.bias(), o.eps());
}
using LocalResponseNormFuncOptions = LocalResponseNormOptions;
inline Tensor local_response_norm(const TensorArg& x, const LocalResponseNormFuncOptions& o) {
  return local_response_norm(x, o.size(), o.alpha(), o.beta(), o.k());
}
struct NormalizeFuncOptions {
  NormalizeFuncOptions() = default;
  SINTER_OPTION(double, p) = 2;
  SINTER_OPTION(int64_t, dim) = 1;
  SINTER_OPTION(double, eps) = 1e-12;
};
inline Tensor normalize(const TensorArg& x, const NormalizeFuncOptions& o) { return normalize(x, o.p(), o.dim(), o.eps()); }

}  // namespace functional

}  // namespace nn
}  // namespace sinter
