#pragma once
// Convolution layers over 1, 2 and 3 spatial dimensions. Padding is with zeros.
#include "sinter/nn/module.h"
#include "sinter/base/fields.h"
#include "sinter/ops/conv.h"

namespace sinter::nn {

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

}  // namespace sinter::nn
