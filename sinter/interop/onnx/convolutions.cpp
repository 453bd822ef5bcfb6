// Convolutions.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

IntList spatial(const Shape& weight) { return IntList(weight.slice(2)); }

Tensor conv(In x, In weight, Maybe bias, Text auto_pad, MaybeInts dilations, Int group, MaybeInts kernel, MaybeInts pads,
            MaybeInts strides) {
  const Windows w = windows_of("Conv", x.sizes(), kernel.value_or(spatial(weight.sizes())), strides, dilations, pads, auto_pad);
  const IntList none(w.kernel.size(), 0);
  if (w.is_symmetric()) return convolution(x, weight, bias, w.stride, w.low, w.dilation, false, none, group);
  return convolution(constant_pad_nd(x, w.pairs()), weight, bias, w.stride, none, w.dilation, false, none, group);
}

Tensor conv_transpose(In x, In weight, Maybe bias, Text auto_pad, MaybeInts dilations, Int group, MaybeInts kernel,
                      MaybeInts output_padding, MaybeInts output_shape, MaybeInts pads, MaybeInts strides) {
  const IntList window = kernel.value_or(spatial(weight.sizes()));
  const IntList ones(window.size(), 1), none(window.size(), 0);
  Windows w = windows_of("ConvTranspose", x.sizes(), window, strides, dilations, pads, auto_pad == "VALID" ? auto_pad : "NOTSET");
  const IntList extra = output_padding.value_or(none);
  check(extra.size() == window.size(), "ConvTranspose: the output padding is {}", extra);
  if (output_shape || auto_pad.starts_with("SAME")) {
    // The pads that give these sizes.
    for (size_t d = 0; d < window.size(); ++d) {
      const int64_t size = x.size(int64_t(d) + 2), full = w.stride[d] * (size - 1) + extra[d] + w.reach(d);
      // Some tell the batch and the channels as well.
      const int64_t wanted = output_shape ? (*output_shape)[output_shape->size() - window.size() + d] : size * w.stride[d];
      const int64_t all = full - wanted;
      // What is wanted beyond the windows is behind them.
      const bool upper = auto_pad == "SAME_UPPER" || all < 0;
      (upper ? w.low : w.high)[d] = std::max<int64_t>(all, 0) / 2;
      (upper ? w.high : w.low)[d] = all - std::max<int64_t>(all, 0) / 2;
    }
  }
  // Everything, and then without the pads; what is asked for beyond the windows are zeros.
  Tensor out = convolution(x, weight, {}, w.stride, none, w.dilation, true, none, group);
  Windows crop = w;
  for (size_t d = 0; d < window.size(); ++d) {
    crop.low[d] = -w.low[d];
    crop.high[d] = extra[d] - w.high[d];
  }
  if (crop.low != none || crop.high != none) out = constant_pad_nd(out, crop.pairs());
  if (!bias.defined()) return out;
  Shape along(std::vector<int64_t>(window.size() + 2, 1));
  along[1] = bias.size(0);
  return add(out, bias.view(along));
}

}  // namespace

std::span<const Function> convolution_operators() {
  static const Function kList[] = {
      {"onnx::Conv.1(Tensor X, Tensor W, Tensor? B=None, *, str auto_pad=\"NOTSET\", int[]? dilations=None, int group=1, int[]? "
       "kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
       conv},
      {"onnx::ConvTranspose.1(Tensor X, Tensor W, Tensor? B=None, *, str auto_pad=\"NOTSET\", int[]? dilations=None, int group=1, "
       "int[]? kernel_shape=None, int[]? output_padding=None, int[]? output_shape=None, int[]? pads=None, int[]? strides=None) -> "
       "Tensor",
       conv_transpose},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
