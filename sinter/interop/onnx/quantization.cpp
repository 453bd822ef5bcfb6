// Small integers for floating numbers: steps of `scale` around a zero point, of the whole tensor, of each position of a dimension, or
// of blocks of it.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// A scale or zero point as it broadcasts with x.
Tensor spread(const Tensor& of, const Tensor& x, Int axis, Int block) {
  if (of.dim() == 0) return of;
  const int64_t dim = wrap_dim("QuantizeLinear", axis, std::max<int64_t>(x.dim(), 1));
  if (block > 0) return narrow(repeat_interleave(of, Dim(block), dim), dim, 0, x.size(dim));
  if (of.dim() > 1) return of;
  if (of.size(0) == 1) return of.reshape(Shape());
  Shape along(std::vector<int64_t>(size_t(x.dim()), 1));
  along[size_t(dim)] = of.size(0);
  return of.reshape(along);
}

Tensor saturated(const Tensor& x, DType dtype) {
  check(is_integral(dtype), "a quantised tensor of {} is not supported", dtype);
  return clamp(x, Scalar(iinfo(dtype).min), Scalar(iinfo(dtype).max)).to(dtype);
}

Tensor quantized(In operand, In scale, Maybe zero, Int axis, Int block, MaybeType output_dtype, MaybeType precision, Ignored) {
  const Tensor x = operand.tensor();
  const DType dtype = zero.defined() ? zero.dtype() : output_dtype.value_or(kUInt8);
  // A quotient in a half type would round to the wrong side; an integer of 32 bits fits into none of them.
  const DType wide = precision.value_or(x.dtype() == kInt32 ? kFloat64 : promote_types(x.dtype(), kFloat32));
  const Tensor steps = round(div(x.to(wide), spread(scale.tensor().to(wide), x, axis, block)));
  if (!zero.defined()) return saturated(steps, dtype);
  return saturated(add(steps, spread(zero, x, axis, block).to(wide)), dtype);
}

Tensor dequantized(In operand, In scale, Maybe zero, Int axis, Int block, MaybeType output_dtype) {
  const Tensor x = operand.tensor();
  Tensor steps = x.to(x.dtype() == kInt32 ? kFloat64 : kFloat32);
  if (zero.defined()) steps = sub(steps, spread(zero, x, axis, block).to(steps.dtype()));
  return mul(steps, spread(scale.tensor(), x, axis, block).to(steps.dtype())).to(output_dtype.value_or(scale.dtype()));
}

std::tuple<Tensor, Tensor, Tensor> dynamically_quantized(In x) {
  const Tensor nothing = zeros({}, x.tensor().options());
  const Tensor low = minimum(amin(x), nothing), high = maximum(amax(x), nothing);
  const Tensor scale = div(sub(high, low), 255);
  const Tensor zero = saturated(round(div(neg(low), scale)), kUInt8);
  return {saturated(add(round(div(x, scale)), zero.to(kFloat32)), kUInt8), scale, zero};
}

// Integers around their zero points, as f64 that holds sums of them exactly.
Tensor centered(In x, Maybe zero, Int axis) {
  const Tensor wide = x.tensor().to(kFloat64);
  return zero.defined() ? sub(wide, spread(zero, wide, axis, 0).to(kFloat64)) : wide;
}

// Zero points of the left matrix are of its rows, those of the right one of its columns.
Tensor integer_product(In a, In b, Maybe a_zero, Maybe b_zero) {
  const Tensor rows = a_zero.defined() && a_zero.dim() == 1 ? a_zero.unsqueeze(-1) : a_zero;
  return matmul(centered(a, rows, 0), centered(b, b_zero, -1));
}

Tensor quantized_product(In a, In a_scale, Maybe a_zero, In b, In b_scale, Maybe b_zero, In y_scale, Maybe y_zero) {
  const Tensor product = integer_product(a, b, a_zero, b_zero);
  const Tensor step = div(mul(a_scale.tensor().to(kFloat64), b_scale.tensor().to(kFloat64)), y_scale.tensor().to(kFloat64));
  return saturated(add(round(mul(product, step)), y_zero.to(kFloat64)), y_zero.dtype());
}

Tensor integer_convolution(In x, In weight, Maybe x_zero, Maybe w_zero, Text auto_pad, MaybeInts dilations, Int group,
                           MaybeInts pads, MaybeInts strides) {
  const Windows w = windows_of("ConvInteger", x.sizes(), IntList(weight.sizes().slice(2)), strides, dilations, pads, auto_pad);
  const IntList none(w.kernel.size(), 0);
  // Padding is the zero point, which is 0 here.
  const Tensor from = constant_pad_nd(centered(x, x_zero, 1), w.pairs());
  return convolution(from, centered(weight, w_zero, 0), {}, w.stride, none, w.dilation, false, none, group);
}

Tensor quantized_convolution(In x, In x_scale, Maybe x_zero, In weight, In w_scale, Maybe w_zero, In y_scale, Maybe y_zero,
                             Maybe bias, Text auto_pad, MaybeInts dilations, Int group, Ignored, MaybeInts pads, MaybeInts strides) {
  Tensor sums = integer_convolution(x, weight, x_zero, w_zero, auto_pad, dilations, group, pads, strides);
  auto by_channel = [&](const Tensor& t) {
    Shape along(std::vector<int64_t>(size_t(x.dim()), 1));
    along[1] = t.numel();
    return t.reshape(along).to(kFloat64);
  };
  if (bias.defined()) sums = add(sums, by_channel(bias));
  const Tensor step = div(mul(x_scale.tensor().to(kFloat64), by_channel(w_scale.tensor())), y_scale.tensor().to(kFloat64));
  return saturated(add(round(mul(sums, step)), y_zero.to(kFloat64)), y_zero.dtype());
}

}  // namespace

std::span<const Function> quantization_operators() {
  static const Function kList[] = {
      {"onnx::QuantizeLinear.10(Tensor x, Tensor y_scale, Tensor? y_zero_point=None, *, int axis=1, int block_size=0, ScalarType? "
       "output_dtype=None, ScalarType? precision=None, int saturate=1) -> Tensor",
       quantized},
      {"onnx::DequantizeLinear.10(Tensor x, Tensor x_scale, Tensor? x_zero_point=None, *, int axis=1, int block_size=0, ScalarType? "
       "output_dtype=None) -> Tensor",
       dequantized},
      {"onnx::DynamicQuantizeLinear.11(Tensor x) -> (Tensor, Tensor, Tensor)", dynamically_quantized},
      {"onnx::MatMulInteger.10(Tensor A, Tensor B, Tensor? a_zero_point=None, Tensor? b_zero_point=None) -> Tensor",
       [](In a, In b, Maybe a_zero, Maybe b_zero) { return integer_product(a, b, a_zero, b_zero).to(kInt32); }},
      {"onnx::QLinearMatMul.10(Tensor a, Tensor a_scale, Tensor a_zero_point, Tensor b, Tensor b_scale, Tensor b_zero_point, Tensor "
       "y_scale, Tensor y_zero_point) -> Tensor",
       quantized_product},
      {"onnx::ConvInteger.10(Tensor x, Tensor w, Tensor? x_zero_point=None, Tensor? w_zero_point=None, *, str auto_pad=\"NOTSET\", "
       "int[]? dilations=None, int group=1, int[]? kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
       [](In x, In w, Maybe x_zero, Maybe w_zero, Text auto_pad, MaybeInts dilations, Int group, Ignored, MaybeInts pads,
          MaybeInts strides) {
         return integer_convolution(x, w, x_zero, w_zero, auto_pad, dilations, group, pads, strides).to(kInt32);
       }},
      {"onnx::QLinearConv.10(Tensor x, Tensor x_scale, Tensor x_zero_point, Tensor w, Tensor w_scale, Tensor w_zero_point, Tensor "
       "y_scale, Tensor y_zero_point, Tensor? B=None, *, str auto_pad=\"NOTSET\", int[]? dilations=None, int group=1, int[]? "
       "kernel_shape=None, int[]? pads=None, int[]? strides=None) -> Tensor",
       quantized_convolution},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
