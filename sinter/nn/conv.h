#pragma once
// Convolutions and pools.
#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/conv.h"

namespace sinter SINTER_API {
namespace nn {

// --- convolutions

// How much a convolution pads: numbers, or a rule.
struct ConvPadding {
  SpatialList amounts = 0;
  std::optional<Padding> rule;

  ConvPadding() = default;
  template <std::integral T>
  ConvPadding(T amount) : amounts(amount) {}
  ConvPadding(std::initializer_list<int64_t> amounts) : amounts(amounts) {}
  ConvPadding(const SpatialList& amounts) : amounts(amounts) {}
  ConvPadding(Padding rule) : rule(rule) {}
};

// One number stands for all spatial dimensions.
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, const SpatialList& kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  SINTER_OPTION(int64_t, in_channels);
  SINTER_OPTION(int64_t, out_channels);
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, stride) = 1;
  SINTER_OPTION(ConvPadding, padding);
  SINTER_OPTION(SpatialList, output_padding) = 0;  // of transposed convolutions
  SINTER_OPTION(SpatialList, dilation) = 1;
  SINTER_OPTION(int64_t, groups) = 1;
  SINTER_OPTION(bool, bias) = true;
};
using Conv1dOptions = ConvOptions;
using Conv2dOptions = ConvOptions;
using Conv3dOptions = ConvOptions;
using ConvTranspose1dOptions = ConvOptions;
using ConvTranspose2dOptions = ConvOptions;
using ConvTranspose3dOptions = ConvOptions;

// What the layers share. The weight is [out, in / groups, kernel…], or [in, out / groups, kernel…] when transposed.
struct ConvBase : Module {
  ConvOptions options;
  Tensor weight, bias;

  ConvBase(const ConvOptions& options, int64_t rank, bool transposed);
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string name() const override;
  std::string extra_repr() const override;

 private:
  int64_t rank_;
  bool transposed_;
};

template <int64_t kRank, bool kTransposed>
struct ConvLayer : ConvBase {
  ConvLayer(int64_t in_channels, int64_t out_channels, const SpatialList& kernel_size)
      : ConvLayer(ConvOptions(in_channels, out_channels, kernel_size)) {}
  explicit ConvLayer(const ConvOptions& options) : ConvBase(options, kRank, kTransposed) {}
};

using Conv1dImpl = ConvLayer<1, false>;
using Conv2dImpl = ConvLayer<2, false>;
using Conv3dImpl = ConvLayer<3, false>;
using ConvTranspose1dImpl = ConvLayer<1, true>;
using ConvTranspose2dImpl = ConvLayer<2, true>;
using ConvTranspose3dImpl = ConvLayer<3, true>;
SINTER_MODULE(Conv1d);
SINTER_MODULE(Conv2d);
SINTER_MODULE(Conv3d);
SINTER_MODULE(ConvTranspose1d);
SINTER_MODULE(ConvTranspose2d);
SINTER_MODULE(ConvTranspose3d);

// --- pools over 1 and 2 spatial dimensions

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

}  // namespace nn
}  // namespace sinter
