#include "sinter/nn/conv.h"

#include <cmath>

#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

static const char* mode_name(PaddingMode mode) {
  constexpr const char* kNames[] = {"constant", "reflect", "replicate", "circular"};
  return kNames[size_t(mode)];
}

ConvBase::ConvBase(const ConvOptions& given, int64_t rank, bool transposed)
    : options(given), rank_(rank), transposed_(transposed) {
  reset();
}

void ConvBase::reset() {
  std::string layer = "nn::" + ConvBase::name();
  int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  check(groups > 0 && in % groups == 0 && out % groups == 0, "{}: {} and {} channels do not fall into {} groups", layer,
        in, out, groups);
  check(!(transposed_ && options.padding().rule), "{}: a transposed convolution takes its padding as numbers", layer);
  check(!transposed_ || options.padding_mode() == PaddingMode::kConstant, "{}: padding_mode is zeros here", layer);
  auto expand = [&](const char* what, const SpatialList& list, int64_t standard) {
    return SpatialList(expand_spatial(layer.c_str(), what, list, rank_, standard));
  };
  check(!options.kernel_size().empty(), "{}: the kernel has no size", layer);
  options.kernel_size(expand("kernel_size", options.kernel_size(), 1));
  options.stride(expand("stride", options.stride(), 1));
  options.dilation(expand("dilation", options.dilation(), 1));
  options.output_padding(expand("output_padding", options.output_padding(), 0));
  if (!options.padding().rule) options.padding(expand("padding", options.padding().amounts, 0));

  Shape shape = transposed_ ? Shape{in, out / groups} : Shape{out, in / groups};
  for (int64_t k : options.kernel_size()) shape.push_back(k);
  weight = register_parameter("weight", new_parameter(shape));
  if (options.bias()) bias = register_parameter("bias", new_parameter({out}));
  if (initialises_parameters()) reset_parameters();
}

void ConvBase::reset_parameters() {
  int64_t fan_in = init::calculate_fan_in_and_fan_out(weight).first;
  double bound = fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0;
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor ConvBase::padded(const Tensor& x) const {
  Shape pads;
  for (size_t d = size_t(rank_); d-- > 0;) {
    int64_t low = 0, high = 0;
    if (!options.padding().rule) {
      low = high = options.padding().amounts[d];
    } else if (*options.padding().rule == Padding::kSame) {
      int64_t total = options.dilation()[d] * (options.kernel_size()[d] - 1);
      low = total / 2;
      high = total - low;
    }
    pads.push_back(low);
    pads.push_back(high);
  }
  return functional::pad(x, functional::PadFuncOptions(pads).mode(options.padding_mode()));
}

Tensor ConvBase::forward(const TensorArg& arg) {
  functional::ConvFuncOptions o;
  o.bias(bias).stride(options.stride()).padding(options.padding()).output_padding(options.output_padding());
  o.dilation(options.dilation()).groups(options.groups());
  using Function = Tensor (*)(const TensorArg&, const TensorArg&, const functional::ConvFuncOptions&);
  constexpr Function kPlain[] = {functional::conv1d, functional::conv2d, functional::conv3d};
  constexpr Function kTransposed[] = {functional::conv_transpose1d, functional::conv_transpose2d,
                                      functional::conv_transpose3d};
  if (transposed_) return kTransposed[rank_ - 1](arg, weight, o);
  if (options.padding_mode() == PaddingMode::kConstant) return kPlain[rank_ - 1](arg, weight, o);
  return kPlain[rank_ - 1]({padded(arg.tensor()), arg.where()}, weight, o.padding(0));
}

std::string ConvBase::name() const { return format("Conv{}{}d", transposed_ ? "Transpose" : "", rank_); }

std::string ConvBase::extra_repr() const {
  std::string text = format("{}, {}, kernel_size={}, stride={}", options.in_channels(), options.out_channels(),
                            options.kernel_size(), options.stride());
  auto add = [&](const char* name, const auto& value, bool is_default) {
    if (!is_default) text += format(", {}={}", name, value);
  };
  auto all = [](const SpatialList& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == value; });
  };
  if (options.padding().rule)
    add("padding", *options.padding().rule == Padding::kSame ? "same" : "valid", false);
  else
    add("padding", options.padding().amounts, all(options.padding().amounts, 0));
  add("output_padding", options.output_padding(), all(options.output_padding(), 0));
  add("dilation", options.dilation(), all(options.dilation(), 1));
  add("groups", options.groups(), options.groups() == 1);
  add("bias", options.bias(), options.bias());
  add("padding_mode", mode_name(options.padding_mode()), options.padding_mode() == PaddingMode::kConstant);
  return text;
}

// --- pads

PadBase::PadBase(const SpatialList& given, int64_t rank, PaddingMode mode, double value)
    : padding(given), mode(mode), value(value) {
  if (padding.size() == 1) padding = SpatialList(IntList(size_t(2 * rank), given[0]));
  check(int64_t(padding.size()) == 2 * rank, "nn::{}: expected 1 or {} pads, got {}", name(), 2 * rank,
        static_cast<const IntList&>(padding));
}

Tensor PadBase::forward(const TensorArg& x) {
  Shape pads(std::span<const int64_t>{padding});
  return functional::pad(x, functional::PadFuncOptions(pads).mode(mode).value(value));
}

std::string PadBase::extra_repr() const {
  std::string text = format("{}", static_cast<const IntList&>(padding));
  return value == 0 ? text : text + format(", value={}", value);
}

// --- resizing and folding

Tensor UpsampleImpl::forward(const TensorArg& x) { return functional::interpolate(x, options); }

std::string UpsampleImpl::extra_repr() const {
  if (!options.size().empty()) return format("size={}", options.size());
  std::string text = "scale_factor=";
  for (double factor : options.scale_factor()) text += (text.back() == '=' ? "" : ", ") + double_to_string(factor);
  return text;
}

Tensor UnfoldImpl::forward(const TensorArg& x) { return functional::unfold(x, options); }
Tensor FoldImpl::forward(const TensorArg& x) { return functional::fold(x, options); }

namespace functional {

Tensor pad(const TensorArg& x, const PadFuncOptions& options) {
  return sinter::pad(x, options.pad(), mode_name(options.mode()), options.value());
}

Tensor grid_sample(const TensorArg& x, const TensorArg& grid, const GridSampleFuncOptions& options) {
  return sinter::grid_sample(x, grid, options.mode(), options.padding_mode(), options.align_corners());
}

Tensor interpolate(const TensorArg& x, const UpsampleOptions& o) {
  return sinter::interpolate(x, {.size = o.size(),
                                 .scale_factor = o.scale_factor(),
                                 .mode = o.mode(),
                                 .align_corners = o.align_corners(),
                                 .recompute_scale_factor = o.recompute_scale_factor(),
                                 .antialias = o.antialias()});
}

Tensor unfold(const TensorArg& x, const UnfoldOptions& o) {
  return im2col(x, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

Tensor fold(const TensorArg& x, const FoldOptions& o) {
  Shape size(std::span<const int64_t>{o.output_size()});
  return col2im(x, size, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

// Each function checks the rank of its input, and names itself in the error.
#define SINTER_CONV(n)                                                                                            \
  Tensor conv##n##d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& o) {                      \
    if (o.padding().rule)                                                                                         \
      return sinter::conv##n##d(x, weight, o.bias(), o.stride(), *o.padding().rule, o.dilation(), o.groups());    \
    return sinter::conv##n##d(x, weight, o.bias(), o.stride(), o.padding().amounts, o.dilation(), o.groups());    \
  }                                                                                                               \
  Tensor conv_transpose##n##d(const TensorArg& x, const TensorArg& weight, const ConvFuncOptions& o) {            \
    check(!o.padding().rule, "conv_transpose" #n "d: a transposed convolution takes its padding as numbers");     \
    return sinter::conv_transpose##n##d(x, weight, o.bias(), o.stride(), o.padding().amounts, o.output_padding(), \
                                        o.groups(), o.dilation());                                                \
  }
SINTER_CONV(1)
SINTER_CONV(2)
SINTER_CONV(3)
#undef SINTER_CONV

}  // namespace functional

}  // namespace sinter::nn
