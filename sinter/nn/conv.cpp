#include "sinter/nn/conv.h"

#include <cmath>

#include "sinter/base/error.h"
#include "sinter/nn/init.h"

namespace sinter::nn {

ConvBase::ConvBase(const ConvOptions& given, int64_t rank, bool transposed)
    : options(given), rank_(rank), transposed_(transposed) {
  std::string layer = "nn::" + ConvBase::name();
  int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
  check(groups > 0 && in % groups == 0 && out % groups == 0, "{}: {} and {} channels do not fall into {} groups", layer,
        in, out, groups);
  check(!(transposed && options.padding().rule), "{}: a transposed convolution takes its padding as numbers", layer);
  auto expand = [&](const char* what, const SpatialList& list, int64_t standard) {
    return SpatialList(expand_spatial(layer.c_str(), what, list, rank, standard));
  };
  check(!options.kernel_size().empty(), "{}: the kernel has no size", layer);
  options.kernel_size(expand("kernel_size", options.kernel_size(), 1));
  options.stride(expand("stride", options.stride(), 1));
  options.dilation(expand("dilation", options.dilation(), 1));
  options.output_padding(expand("output_padding", options.output_padding(), 0));
  if (!options.padding().rule) options.padding(expand("padding", options.padding().amounts, 0));

  Shape shape = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
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

Tensor ConvBase::forward(const TensorArg& x) {
  auto& o = options;
  // Each function checks the rank of its input, and names itself in the error.
  auto plain = [&](const auto& padding) {
    switch (rank_) {
      case 1:
        return conv1d(x, weight, bias, o.stride(), padding, o.dilation(), o.groups());
      case 2:
        return conv2d(x, weight, bias, o.stride(), padding, o.dilation(), o.groups());
      default:
        return conv3d(x, weight, bias, o.stride(), padding, o.dilation(), o.groups());
    }
  };
  if (!transposed_) return o.padding().rule ? plain(*o.padding().rule) : plain(o.padding().amounts);
  auto transpose = rank_ == 1 ? conv_transpose1d : rank_ == 2 ? conv_transpose2d : conv_transpose3d;
  return transpose(x, weight, bias, o.stride(), o.padding().amounts, o.output_padding(), o.groups(), o.dilation());
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
  return text;
}

}  // namespace sinter::nn
