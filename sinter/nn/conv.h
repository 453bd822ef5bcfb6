#pragma once
// Convolutions, pools, pads, resizing and folding, as layers and in nn::functional.
#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/init.h"
#include "sinter/nn/module.h"
#include "sinter/ops/conv.h"

namespace sinter SINTER_API {

// What a pad or a convolution takes outside its input: a constant, or the input mirrored, repeated or gone round.
enum class PaddingMode : uint8_t { kConstant, kReflect, kReplicate, kCircular };

// --- LibTorch's words: .mode(kBilinear), .padding_mode(kReflect)
inline constexpr nn::Word<PaddingMode::kConstant, GridSamplePaddingMode::kZeros> kZeros;
inline constexpr nn::Word<PaddingMode::kConstant> kConstant;
inline constexpr nn::Word<PaddingMode::kReflect> kReflect;
inline constexpr nn::Word<PaddingMode::kReplicate> kReplicate;
inline constexpr nn::Word<PaddingMode::kCircular> kCircular;
inline constexpr nn::Word<GridSamplePaddingMode::kBorder> kBorder;
inline constexpr nn::Word<GridSamplePaddingMode::kReflection> kReflection;
inline constexpr nn::Word<InterpolateMode::kNearest, GridSampleMode::kNearest> kNearest;
inline constexpr nn::Word<InterpolateMode::kNearestExact> kNearestExact;
inline constexpr nn::Word<InterpolateMode::kBilinear, GridSampleMode::kBilinear> kBilinear;
inline constexpr nn::Word<InterpolateMode::kBicubic, GridSampleMode::kBicubic> kBicubic;
inline constexpr nn::Word<InterpolateMode::kTrilinear> kTrilinear;
inline constexpr nn::Word<InterpolateMode::kLinear, nn::init::Nonlinearity::kLinear> kLinear;
inline constexpr nn::Word<InterpolateMode::kArea> kArea;
inline constexpr nn::Word<Padding::kSame> kSame;
inline constexpr nn::Word<Padding::kValid> kValid;

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
  template <Padding kRule>
  ConvPadding(Word<kRule>) : rule(kRule) {}
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
  SINTER_OPTION(PaddingMode, padding_mode) = PaddingMode::kConstant;  // of zeros; transposed ones take no other
};
using Conv1dOptions = ConvOptions;
using Conv2dOptions = ConvOptions;
using Conv3dOptions = ConvOptions;
using ConvTranspose1dOptions = ConvOptions;
using ConvTranspose2dOptions = ConvOptions;
using ConvTranspose3dOptions = ConvOptions;

// What the layers share. The weight is [out, in / groups, kernel…], or [in, out / groups, kernel…] when transposed.
struct ConvBase : CloneableBase {
  ConvOptions options;
  Tensor weight, bias;

  ConvBase(const ConvOptions& options, int64_t rank, bool transposed);
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& x);
  std::string name() const override;
  std::string extra_repr() const override;

 private:
  // The input with what the layer's padding takes from itself.
  Tensor padded(const Tensor& x) const;

  int64_t rank_;
  bool transposed_;
};

template <int64_t kRank, bool kTransposed>
struct ConvLayer : Cloneable<ConvLayer<kRank, kTransposed>, ConvBase> {
  ConvLayer(int64_t in_channels, int64_t out_channels, const SpatialList& kernel_size)
      : ConvLayer(ConvOptions(in_channels, out_channels, kernel_size)) {}
  explicit ConvLayer(const ConvOptions& options) : Cloneable<ConvLayer, ConvBase>(options, kRank, kTransposed) {}
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

// --- pools over 1, 2 and 3 spatial dimensions

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
  SINTER_OPTION(bool, count_include_pad) = true;            // of average pools
  SINTER_OPTION(std::optional<int64_t>, divisor_override);  // of average pools over 2 and 3 dimensions
};
struct LPPoolOptions {
  LPPoolOptions(double norm_type, const SpatialList& kernel_size) : norm_type_(norm_type), kernel_size_(kernel_size) {}
  SINTER_OPTION(double, norm_type);
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, stride);
  SINTER_OPTION(bool, ceil_mode) = false;
};
struct AdaptivePoolOptions {
  AdaptivePoolOptions(const SpatialList& output_size) : output_size_(output_size) {}
  template <std::integral T>
  AdaptivePoolOptions(T output_size) : output_size_(output_size) {}
  SINTER_OPTION(SpatialList, output_size);
};

// Either a size or a ratio of the pooled sizes; places are drawn where no samples are given.
struct FractionalMaxPoolOptions {
  FractionalMaxPoolOptions(const SpatialList& kernel_size) : kernel_size_(kernel_size) {}
  template <std::integral T>
  FractionalMaxPoolOptions(T kernel_size) : kernel_size_(kernel_size) {}
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, output_size);
  SINTER_OPTION(std::vector<double>, output_ratio);
  SINTER_OPTION(Tensor, _random_samples);
};

// Layers around functions of one tensor, F::name(x, options), or of several.
template <class Options>
struct OptionsLayer : CloneableBase {
  Options options;
  explicit OptionsLayer(const Options& options) : options(options) {}
};
struct PoolBase : OptionsLayer<PoolOptions> {
  using OptionsLayer::OptionsLayer;
  std::string extra_repr() const override;
};
struct LPPoolBase : OptionsLayer<LPPoolOptions> {
  using OptionsLayer::OptionsLayer;
  LPPoolBase(double norm_type, const SpatialList& kernel_size) : LPPoolBase(LPPoolOptions(norm_type, kernel_size)) {}
  std::string extra_repr() const override;
};
struct AdaptivePoolBase : OptionsLayer<AdaptivePoolOptions> {
  using OptionsLayer::OptionsLayer;
  std::string extra_repr() const override;
};
struct FractionalMaxPoolBase : OptionsLayer<FractionalMaxPoolOptions> {
  // A buffer where samples are given.
  Tensor _random_samples;
  explicit FractionalMaxPoolBase(const FractionalMaxPoolOptions& options);
  void reset() override;
  std::string extra_repr() const override;
};

namespace functional {

// By the number of dimensions that are pooled.
using TensorPair = std::tuple<Tensor, Tensor>;
Tensor max_pool(int64_t rank, const TensorArg& x, const PoolOptions& options);
TensorPair max_pool_with_indices(int64_t rank, const TensorArg& x, const PoolOptions& options);
Tensor max_unpool(int64_t rank, const TensorArg& x, const Tensor& indices, const PoolOptions& options,
                  const Shape& output_size);
Tensor avg_pool(int64_t rank, const TensorArg& x, const PoolOptions& options);
Tensor lp_pool(int64_t rank, const TensorArg& x, const LPPoolOptions& options);
Tensor adaptive_avg_pool(int64_t rank, const TensorArg& x, const AdaptivePoolOptions& options);
TensorPair adaptive_max_pool(int64_t rank, const TensorArg& x, const AdaptivePoolOptions& options);
TensorPair fractional_max_pool_with_indices(int64_t rank, const TensorArg& x, const FractionalMaxPoolOptions& options);

}  // namespace functional

// A layer, and the function with its options: MaxPool2d and F::max_pool2d.
#define SINTER_POOL_LAYER(Name, function, n, Base, Options)                                        \
  using Name##n##dOptions = Options;                                                               \
  namespace functional {                                                                           \
  using Name##n##dFuncOptions = Options;                                                           \
  inline Tensor function##n##d(const TensorArg& x, const Options& o) { return function(n, x, o); } \
  }                                                                                                \
  struct Name##n##dImpl : Cloneable<Name##n##dImpl, Base> {                                        \
    using Cloneable::Cloneable;                                                                    \
    Tensor forward(const TensorArg& x) { return functional::function(n, x, options); }             \
  };                                                                                               \
  SINTER_MODULE(Name##n##d)
// In LibTorch's spelling the result alone; forward_with_indices tells also where each element came from.
#define SINTER_MAX_POOL_LAYER(Name, function, call, n, Base, Options)                     \
  using Name##n##dOptions = Options;                                                      \
  namespace functional {                                                                  \
  using Name##n##dFuncOptions = Options;                                                  \
  inline Tensor function##n##d(const TensorArg& x, const Options& o) { return call; }     \
  inline TensorPair function##n##d_with_indices(const TensorArg& x, const Options& o) {   \
    return function##_with_indices(n, x, o);                                              \
  }                                                                                       \
  }                                                                                       \
  struct Name##n##dImpl : Cloneable<Name##n##dImpl, Base> {                               \
    using Cloneable::Cloneable;                                                           \
    Tensor forward(const TensorArg& x) { return functional::function##n##d(x, options); } \
    std::tuple<Tensor, Tensor> forward_with_indices(const TensorArg& x) {                 \
      return functional::function##n##d_with_indices(x, options);                         \
    }                                                                                     \
  };                                                                                      \
  SINTER_MODULE(Name##n##d)
#define SINTER_POOL_LAYERS(n)                                                                           \
  SINTER_MAX_POOL_LAYER(MaxPool, max_pool, max_pool(n, x, o), n, PoolBase, PoolOptions);                \
  SINTER_MAX_POOL_LAYER(AdaptiveMaxPool, adaptive_max_pool, std::get<0>(adaptive_max_pool(n, x, o)), n, \
                        AdaptivePoolBase, AdaptivePoolOptions);                                         \
  SINTER_POOL_LAYER(AvgPool, avg_pool, n, PoolBase, PoolOptions);                                       \
  SINTER_POOL_LAYER(LPPool, lp_pool, n, LPPoolBase, LPPoolOptions);                                     \
  SINTER_POOL_LAYER(AdaptiveAvgPool, adaptive_avg_pool, n, AdaptivePoolBase, AdaptivePoolOptions);      \
  using MaxUnpool##n##dOptions = PoolOptions;                                                           \
  namespace functional {                                                                                \
  using MaxUnpool##n##dFuncOptions = PoolOptions;                                                       \
  inline Tensor max_unpool##n##d(const TensorArg& x, const Tensor& indices, const PoolOptions& o,       \
                                 const Shape& output_size = {}) {                                       \
    return max_unpool(n, x, indices, o, output_size);                                                   \
  }                                                                                                     \
  }                                                                                                     \
  struct MaxUnpool##n##dImpl : Cloneable<MaxUnpool##n##dImpl, PoolBase> {                               \
    using Cloneable::Cloneable;                                                                         \
    Tensor forward(const TensorArg& x, const Tensor& indices, const Shape& output_size = {}) {          \
      return functional::max_unpool(n, x, indices, options, output_size);                               \
    }                                                                                                   \
  };                                                                                                    \
  SINTER_MODULE(MaxUnpool##n##d)

namespace functional {
inline TensorPair adaptive_max_pool_with_indices(int64_t rank, const TensorArg& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(rank, x, options);
}
}  // namespace functional
SINTER_POOL_LAYERS(1);
SINTER_POOL_LAYERS(2);
SINTER_POOL_LAYERS(3);
#define SINTER_FRACTIONAL_POOL_LAYER(n)                                                    \
  SINTER_MAX_POOL_LAYER(FractionalMaxPool, fractional_max_pool,                            \
                        std::get<0>(fractional_max_pool_with_indices(n, x, o)), n,         \
                        FractionalMaxPoolBase, FractionalMaxPoolOptions)
SINTER_FRACTIONAL_POOL_LAYER(2);
SINTER_FRACTIONAL_POOL_LAYER(3);
#undef SINTER_FRACTIONAL_POOL_LAYER
#undef SINTER_POOL_LAYERS
#undef SINTER_MAX_POOL_LAYER
#undef SINTER_POOL_LAYER

// --- pads of the last 1, 2 or 3 dimensions: {low, high} of the last one, then of the one before; a single one for all

struct ConstantPadOptions {
  ConstantPadOptions(const SpatialList& padding, double value) : padding_(padding), value_(value) {}
  SINTER_OPTION(SpatialList, padding);
  SINTER_OPTION(double, value);
};

struct PadBase : CloneableBase {
  SpatialList padding;
  PaddingMode mode;
  double value;

  PadBase(const SpatialList& padding, int64_t rank, PaddingMode mode, double value = 0);
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};

#define SINTER_PAD_LAYER(Name, n, mode)                                                     \
  using Name##Pad##n##dOptions = SpatialList;                                               \
  struct Name##Pad##n##dImpl : Cloneable<Name##Pad##n##dImpl, PadBase> {                    \
    explicit Name##Pad##n##dImpl(const SpatialList& padding) : Cloneable(padding, n, mode) {} \
  };                                                                                        \
  SINTER_MODULE(Name##Pad##n##d)
#define SINTER_PAD_LAYERS(n)                                           \
  SINTER_PAD_LAYER(Zero, n, PaddingMode::kConstant);                   \
  SINTER_PAD_LAYER(Reflection, n, PaddingMode::kReflect);              \
  SINTER_PAD_LAYER(Replication, n, PaddingMode::kReplicate);           \
  SINTER_PAD_LAYER(Circular, n, PaddingMode::kCircular);               \
  using ConstantPad##n##dOptions = ConstantPadOptions;                 \
  struct ConstantPad##n##dImpl : Cloneable<ConstantPad##n##dImpl, PadBase> { \
    ConstantPad##n##dImpl(const SpatialList& padding, double value)    \
        : Cloneable(padding, n, PaddingMode::kConstant, value) {}      \
    explicit ConstantPad##n##dImpl(const ConstantPadOptions& options)  \
        : ConstantPad##n##dImpl(options.padding(), options.value()) {} \
  };                                                                   \
  SINTER_MODULE(ConstantPad##n##d)
SINTER_PAD_LAYERS(1);
SINTER_PAD_LAYERS(2);
SINTER_PAD_LAYERS(3);
#undef SINTER_PAD_LAYERS
#undef SINTER_PAD_LAYER

// --- resizing, shuffling and folding

struct UpsampleOptions {
  UpsampleOptions() = default;
  SINTER_OPTION(Shape, size);                        // of the spatial dimensions; or
  SINTER_OPTION(std::vector<double>, scale_factor);  // one, or one per spatial dimension
  SINTER_OPTION(InterpolateMode, mode) = InterpolateMode::kNearest;
  SINTER_OPTION(std::optional<bool>, align_corners);
  SINTER_OPTION(bool, recompute_scale_factor) = false;
  SINTER_OPTION(bool, antialias) = false;  // not available
};
// Resizes the spatial dimensions.
struct UpsampleImpl : Cloneable<UpsampleImpl, OptionsLayer<UpsampleOptions>> {
  explicit UpsampleImpl(const UpsampleOptions& options = {}) : Cloneable(options) {}
  Tensor forward(const TensorArg& x);
  std::string extra_repr() const override;
};
SINTER_MODULE(Upsample);

// A layer around a function of a tensor and one number.
#define SINTER_SHUFFLE(Name, function, number)                                               \
  using Name##Options = int64_t;                                                             \
  namespace functional {                                                                     \
  using Name##FuncOptions = int64_t;                                                         \
  }                                                                                          \
  struct Name##Impl : Cloneable<Name##Impl> {                                                               \
    int64_t number;                                                                          \
    explicit Name##Impl(int64_t number) : number(number) {}                                  \
    Tensor forward(const TensorArg& x) { return function(x, number); }                       \
    std::string extra_repr() const override { return #number "=" + std::to_string(number); } \
  };                                                                                         \
  SINTER_MODULE(Name)
SINTER_SHUFFLE(PixelShuffle, pixel_shuffle, upscale_factor);
SINTER_SHUFFLE(PixelUnshuffle, pixel_unshuffle, downscale_factor);
SINTER_SHUFFLE(ChannelShuffle, channel_shuffle, groups);
#undef SINTER_SHUFFLE

struct UnfoldOptions {
  UnfoldOptions(const SpatialList& kernel_size) : kernel_size_(kernel_size) {}
  template <std::integral T>
  UnfoldOptions(T kernel_size) : kernel_size_(kernel_size) {}
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, dilation) = 1;
  SINTER_OPTION(SpatialList, padding) = 0;
  SINTER_OPTION(SpatialList, stride) = 1;
};
struct FoldOptions {
  FoldOptions(const SpatialList& output_size, const SpatialList& kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  SINTER_OPTION(SpatialList, output_size);
  SINTER_OPTION(SpatialList, kernel_size);
  SINTER_OPTION(SpatialList, dilation) = 1;
  SINTER_OPTION(SpatialList, padding) = 0;
  SINTER_OPTION(SpatialList, stride) = 1;
};
// im2col: every window as a column.
struct UnfoldImpl : Cloneable<UnfoldImpl, OptionsLayer<UnfoldOptions>> {
  using Cloneable::Cloneable;
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(Unfold);
// col2im: columns added up where their windows lie.
struct FoldImpl : Cloneable<FoldImpl, OptionsLayer<FoldOptions>> {
  using Cloneable::Cloneable;
  FoldImpl(const SpatialList& output_size, const SpatialList& kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  Tensor forward(const TensorArg& x);
};
SINTER_MODULE(Fold);

namespace functional {

struct PadFuncOptions {
  PadFuncOptions(const Shape& pad) : pad_(pad) {}
  SINTER_OPTION(Shape, pad);
  SINTER_OPTION(PaddingMode, mode) = PaddingMode::kConstant;
  SINTER_OPTION(double, value) = 0;
};
Tensor pad(const TensorArg& x, const PadFuncOptions& options);

struct GridSampleFuncOptions {
  GridSampleFuncOptions() = default;
  SINTER_OPTION(GridSampleMode, mode) = GridSampleMode::kBilinear;
  SINTER_OPTION(GridSamplePaddingMode, padding_mode) = GridSamplePaddingMode::kZeros;
  SINTER_OPTION(bool, align_corners) = false;
};
Tensor grid_sample(const TensorArg& x, const TensorArg& grid, const GridSampleFuncOptions& options = {});
using sinter::affine_grid, sinter::channel_shuffle, sinter::pixel_shuffle, sinter::pixel_unshuffle;

using InterpolateFuncOptions = UpsampleOptions;
Tensor interpolate(const TensorArg& x, const UpsampleOptions& options = {});
using UnfoldFuncOptions = UnfoldOptions;
Tensor unfold(const TensorArg& x, const UnfoldOptions& options);
using FoldFuncOptions = FoldOptions;
Tensor fold(const TensorArg& x, const FoldOptions& options);

// How a convolution goes over its input.
struct ConvFuncOptions {
  ConvFuncOptions() = default;
  SINTER_OPTION(Tensor, bias);
  SINTER_OPTION(SpatialList, stride) = 1;
  SINTER_OPTION(ConvPadding, padding);
  SINTER_OPTION(SpatialList, output_padding) = 0;  // of transposed convolutions
  SINTER_OPTION(SpatialList, dilation) = 1;
  SINTER_OPTION(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions;
using Conv2dFuncOptions = ConvFuncOptions;
using Conv3dFuncOptions = ConvFuncOptions;
using ConvTranspose1dFuncOptions = ConvFuncOptions;
using ConvTranspose2dFuncOptions = ConvFuncOptions;
using ConvTranspose3dFuncOptions = ConvFuncOptions;
Tensor conv1d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});
Tensor conv2d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});
Tensor conv3d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});
Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});
Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});
Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& options = {});

}  // namespace functional

}  // namespace nn
}  // namespace SINTER_API
