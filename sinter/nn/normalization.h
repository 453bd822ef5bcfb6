#pragma once
// Normalisation layers, and Dropout.
#include <optional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"

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
struct LayerNormImpl : Module {
  LayerNormOptions options;
  Tensor weight, bias;

  explicit LayerNormImpl(const LayerNormOptions& options);
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
struct RMSNormImpl : Module {
  RMSNormOptions options;
  Tensor weight;

  explicit RMSNormImpl(const RMSNormOptions& options);
  explicit RMSNormImpl(int64_t size, std::optional<double> eps = {}) : RMSNormImpl(RMSNormOptions(size).eps(eps)) {}
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
struct BatchNormBase : Module {
  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

  explicit BatchNormBase(const BatchNormOptions& options);
  void reset_parameters();
  void reset_running_stats();
  std::string extra_repr() const override;

 protected:
  Tensor normalize(const TensorArg& x, int64_t low_rank, int64_t high_rank);
};

// Of [n, c] or [n, c, l].
struct BatchNorm1dImpl : BatchNormBase {
  using BatchNormBase::BatchNormBase;
  Tensor forward(const TensorArg& x) { return normalize(x, 2, 3); }
};
SINTER_MODULE(BatchNorm1d);
// Of [n, c, h, w].
struct BatchNorm2dImpl : BatchNormBase {
  using BatchNormBase::BatchNormBase;
  Tensor forward(const TensorArg& x) { return normalize(x, 4, 4); }
};
SINTER_MODULE(BatchNorm2d);
// Of [n, c, d, h, w].
struct BatchNorm3dImpl : BatchNormBase {
  using BatchNormBase::BatchNormBase;
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
struct GroupNormImpl : Module {
  GroupNormOptions options;
  Tensor weight, bias;

  GroupNormImpl(int64_t num_groups, int64_t num_channels) : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(GroupNorm);

// While training: zero with probability p, the rest scaled by 1 / (1 - p).
struct DropoutImpl : Module {
  double p;

  explicit DropoutImpl(double p = 0.5);
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Dropout);

}  // namespace nn
}  // namespace sinter
