#pragma once
// Pools over 1 and 2 spatial dimensions.
#include "sinter/nn/module.h"
#include "sinter/base/fields.h"
#include "sinter/ops/conv.h"

namespace sinter::nn {

// An empty stride is the kernel's size.
struct PoolOptions {
  PoolOptions(const SpatialList& kernel_size) : kernel_size_(kernel_size) {}
  template <std::integral T>
  PoolOptions(T kernel_size) : kernel_size_(kernel_size) {}
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, stride);
  SINTER_OPTION(SpatialList, padding) = 0;
  SINTER_OPTION(SpatialList, dilation) = 1;  // of max pools
  SINTER_OPTION(bool, ceil_mode) = false;
  SINTER_OPTION(bool, count_include_pad) = true;  // of average pools
};
using MaxPool1dOptions = PoolOptions;
using MaxPool2dOptions = PoolOptions;
using AvgPool1dOptions = PoolOptions;
using AvgPool2dOptions = PoolOptions;

struct PoolBase : Module {
  PoolOptions options;
  explicit PoolBase(const PoolOptions& options) : options(options) {}
  std::string extra_repr() const override;
};

// The largest element of each window.
struct MaxPool1dImpl : PoolBase {
  using PoolBase::PoolBase;
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(MaxPool1d);
struct MaxPool2dImpl : PoolBase {
  using PoolBase::PoolBase;
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(MaxPool2d);

// The mean of each window.
struct AvgPool1dImpl : PoolBase {
  using PoolBase::PoolBase;
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(AvgPool1d);
struct AvgPool2dImpl : PoolBase {
  using PoolBase::PoolBase;
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(AvgPool2d);

// Means over windows chosen so that the result has the given size; one number stands for all dimensions.
struct AdaptiveAvgPool1dImpl : Module {
  SpatialList output_size;
  explicit AdaptiveAvgPool1dImpl(const SpatialList& output_size) : output_size(output_size) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(AdaptiveAvgPool1d);
struct AdaptiveAvgPool2dImpl : Module {
  SpatialList output_size;
  explicit AdaptiveAvgPool2dImpl(const SpatialList& output_size) : output_size(output_size) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(AdaptiveAvgPool2d);

}  // namespace sinter::nn
