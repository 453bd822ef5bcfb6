#include "sinter/ops/conv.h"

#include "sinter/ops/autocast.h"
#include "sinter/ops/complex_math.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

Tensor run_convolution(const TensorArg& x, const TensorArg& weight, const ConvolutionAttrs& a);
// The gradient of a convolution's weight: input is what it read, grad the gradient of what it gave.
Tensor run_weight_grad(const TensorArg& input, const TensorArg& grad, const ConvolutionWeightGradAttrs& a);

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

// The output padding with which the transposed convolution of a result gives back `in`.
Shape restoring_padding(const Shape& in, const Shape& out, const Shape& kernel, const IntList& stride,
                        const IntList& padding, const IntList& dilation) {
  Shape result;
  for (size_t d = 0; d < in.size(); ++d)
    result.push_back(in[d] - ((out[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1));
  return result;
}

// The input channel of a group's channel `c`, for the result channel `out` of groups of `per_group` channels.
Dim channel_of(const Dim& out, const Dim& per_group, const Dim& inputs_per_group, const Dim& c, int64_t groups) {
  return groups == 1 ? c : out / per_group * inputs_per_group + c;
}

void check_parameters(const OpCall& call, const IntList& stride, const IntList& padding, const IntList& dilation,
                      int64_t groups, int64_t spatial) {
  auto fits = [&](const IntList& list, int64_t least) {
    return int64_t(list.size()) == spatial &&
           std::all_of(list.begin(), list.end(), [&](int64_t v) { return v >= least; });
  };
  check(fits(stride, 1), "{}: stride {} must be {} positive numbers", call.name(), stride, spatial);
  check(fits(padding, 0), "{}: padding {} must be {} numbers, none negative", call.name(), padding, spatial);
  check(fits(dilation, 1), "{}: dilation {} must be {} positive numbers", call.name(), dilation, spatial);
  check(groups >= 1, "{}: groups {} must be positive", call.name(), groups);
}

void check_same_types(const OpCall& call) {
  check(call.inputs[0].dtype == call.inputs[1].dtype,
        "{}: input and weight have different dtypes {} and {}; convert one with .to()", call.name(),
        call.inputs[0].dtype, call.inputs[1].dtype);
  check(call.inputs[0].dtype != kBool, "{}: not defined for bool; convert with .to()", call.name());
}

}  // namespace

struct Convolution : Loop {
  static constexpr auto name = "convolution";
  static constexpr auto on_complex = complex_math::of_products;
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = 2;
  using Attributes = ConvolutionAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<ConvolutionAttrs>();
    const Shape &x = call.shape(0), &w = call.shape(1);
    check(x.rank() >= 3 && x.rank() <= 5 && w.rank() == x.rank(),
          "convolution: input {} and weight {} must both have 1 to 3 spatial dimensions after the first two", x, w);
    check_same_types(call);
    check_parameters(call, a.stride, a.padding, a.dilation, a.groups, x.rank() - 2);
    check(a.output_padding.empty() || (a.transposed && a.output_padding.rank() == x.rank() - 2),
          "convolution: output_padding {} is for transposed convolutions, one number per spatial dimension",
          a.output_padding);
    check(w[0] % a.groups == 0, "convolution: the first size of the weight {} is not divisible by groups = {}", w,
          a.groups);
    if (a.transposed)
      check(x[1] == w[0], "convolution: input {} has {} channels, the transposed weight {} (groups = {}) expects {}", x,
            x[1], w, a.groups, w[0]);
    else
      check(x[1] == w[1] * a.groups, "convolution: input {} has {} channels, the weight {} with groups = {} expects {}",
            x, x[1], w, a.groups, w[1] * a.groups);
    Shape out{x[0], a.transposed ? w[1] * a.groups : w[0]};
    for (size_t d = 0; d + 2 < x.size(); ++d) {
      Dim reach = a.dilation[d] * (w[d + 2] - 1) + 1, size;
      if (a.transposed) {
        size = (x[d + 2] - 1) * a.stride[d] - 2 * a.padding[d] + reach +
               (a.output_padding.empty() ? Dim(0) : a.output_padding[d]);
        check(fits(0, size), "convolution: the result of the transposed input {} with weight {} would have size {}", x,
              w, size);
      } else {
        Dim padded = x[d + 2] + 2 * a.padding[d];
        check(fits(reach, padded),
              "convolution: the padded size {} of input {} is smaller than the reach {} of the weight {}", padded, x,
              reach, w);
        size = (padded - reach) / a.stride[d] + 1;
      }
      out.push_back(size);
    }
    return {Type{call.inputs[0].dtype, out, call.inputs[0].device}};
  }

  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) {
    auto& a = call.as<ConvolutionAttrs>();
    const Shape& w = call.shape(1);
    Shape extents = spatial_of(w);
    extents.insert(extents.begin(), a.transposed ? w[0] / a.groups : w[1]);
    return extents;
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<ConvolutionAttrs>();
    const Shape &x = b.call.shape(0), &w = b.call.shape(1);
    Dim inputs_per_group = a.transposed ? w[0] / a.groups : w[1],
        outputs_per_group = a.transposed ? w[1] : w[0] / a.groups;
    Dim channel = channel_of(b.i[1], outputs_per_group, inputs_per_group, b.k[0], a.groups);
    Index at{b.i[0], channel}, at_weight{b.i[1], b.k[0]};
    if (a.transposed) at_weight = {channel, a.groups == 1 ? b.i[1] : b.i[1] % outputs_per_group};
    Conditions inside;
    for (size_t d = 0; d + 2 < x.size(); ++d) {
      const Dim &o = b.i[d + 2], &tap = b.k[d + 1];
      if (a.transposed) {
        Dim scaled = o + a.padding[d] - tap * a.dilation[d];
        inside.push_back({scaled, x[d + 2] * a.stride[d], a.stride[d]});
        at.push_back(scaled / a.stride[d]);
      } else {
        Dim position = o * a.stride[d] + tap * a.dilation[d] - a.padding[d];
        if (a.padding[d] != 0) inside.push_back({position, x[d + 2]});
        at.push_back(position);
      }
      at_weight.push_back(tap);
    }
    Elem value = inside.empty() ? b.load(0, at) : b.load_if(inside, 0, at, 0);
    return multiply(b, b.call.inputs[0].dtype, value, b.load(1, at_weight));
  }

  static TensorList grad(const GradCall& c) {
    auto& a = c.as<ConvolutionAttrs>();
    Shape in = spatial_of(c[0].sizes()), out = spatial_of(c.grad().sizes()), kernel = spatial_of(c[1].sizes());
    return c.each(
        [&] {
          ConvolutionAttrs back{a.stride, a.padding, a.dilation, !a.transposed, {}, a.groups};
          if (!a.transposed) back.output_padding = restoring_padding(in, out, kernel, a.stride, a.padding, a.dilation);
          Tensor g = run_convolution(c.grad(), c[1], back);
          // An output padding of a whole stride leaves positions that no input reached.
          for (size_t d = 0; d < a.output_padding.size(); ++d)
            if (a.output_padding[d] >= a.stride[d]) g = g.narrow(int64_t(d) + 2, 0, in[d]);
          return g;
        },
        [&] {
          ConvolutionWeightGradAttrs back{a.stride, a.padding, a.dilation, kernel, a.groups};
          return a.transposed ? run_weight_grad(c.grad(), c[0], back) : run_weight_grad(c[0], c.grad(), back);
        });
  }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 6e-5};
  SINTER_SAMPLES(
      "x[2, 3, 5, 6], x[4, 3, 3, 3] | stride=[1, 1], padding=[1, 1], dilation=[1, 1]",
      "x[1, 2, 7], x[3, 2, 3] | stride=[1], padding=[0], dilation=[1]",
      "x[1, 4, 19, 18], x[6, 2, 3, 2] | stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2",
      "x[2, 4, 9], x[4, 1, 5] | stride=[1], padding=[4], dilation=[1], groups=4",
      "x[1, 2, 4, 4, 5], x[2, 2, 2, 2, 2] | stride=[1, 2, 1], padding=[0, 1, 0], dilation=[1, 1, 1]",
      "x[2, 3, 1, 1], x[17, 3, 1, 1] | stride=[1, 1], padding=[0, 0], dilation=[1, 1]",
      "x[0, 2, 5], x[3, 2, 3] | stride=[1], padding=[0], dilation=[1]",
      "x[1, 3, 4, 5], x[3, 2, 3, 3] | stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=true",
      "x[2, 4, 6], x[4, 3, 3] | stride=[3], padding=[1], dilation=[2], transposed=true, output_padding=[2], groups=2",
      "x[1, 2, 3, 2, 3], x[2, 1, 2, 2, 2] | stride=[2, 1, 1], padding=[0, 0, 1], dilation=[1, 1, 1], transposed=true")
};

struct ConvolutionWeightGrad : Loop {
  static constexpr auto name = "convolution_weight_grad";
  static constexpr auto on_complex = complex_math::of_products;
  static constexpr int inputs = 2;
  using Attributes = ConvolutionWeightGradAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<ConvolutionWeightGradAttrs>();
    const Shape &x = call.shape(0), &g = call.shape(1);
    check(x.rank() >= 3 && x.rank() <= 5 && g.rank() == x.rank() && a.kernel.rank() == x.rank() - 2,
          "convolution_weight_grad: input {}, gradient {} and kernel {} must have the same 1 to 3 spatial dimensions",
          x, g, a.kernel);
    check_same_types(call);
    check_parameters(call, a.stride, a.padding, a.dilation, a.groups, x.rank() - 2);
    check(x[0] == g[0], "convolution_weight_grad: batch sizes of {} and {} differ", x, g);
    check(x[1] % a.groups == 0 && g[1] % a.groups == 0,
          "convolution_weight_grad: channels of {} and {} are not divisible by groups = {}", x, g, a.groups);
    return {Type{call.inputs[0].dtype, with_tail({g[1], x[1] / a.groups}, 0, a.kernel), call.inputs[0].device}};
  }

  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) {
    Shape extents = spatial_of(call.shape(1));
    extents.insert(extents.begin(), call.shape(1)[0]);
    return extents;
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<ConvolutionWeightGradAttrs>();
    const Shape &x = b.call.shape(0), &g = b.call.shape(1);
    Index at{b.k[0], channel_of(b.i[0], g[1] / a.groups, x[1] / a.groups, b.i[1], a.groups)}, at_grad{b.k[0], b.i[0]};
    Conditions inside;
    for (size_t d = 0; d + 2 < x.size(); ++d) {
      Dim position = b.k[d + 1] * a.stride[d] + b.i[d + 2] * a.dilation[d] - a.padding[d];
      inside.push_back({position, x[d + 2]});
      at.push_back(position);
      at_grad.push_back(b.k[d + 1]);
    }
    return multiply(b, b.call.inputs[0].dtype, b.load_if(inside, 0, at, 0), b.load(1, at_grad));
  }

  static TensorList grad(const GradCall& c) {
    auto& a = c.as<ConvolutionWeightGradAttrs>();
    Shape in = spatial_of(c[0].sizes()), out = spatial_of(c[1].sizes());
    return c.each(
        [&] {
          return run_convolution(c[1], c.grad(),
                                 {a.stride, a.padding, a.dilation, true,
                                  restoring_padding(in, out, a.kernel, a.stride, a.padding, a.dilation), a.groups});
        },
        [&] {
          Tensor g = run_convolution(c[0], c.grad(), {a.stride, a.padding, a.dilation, false, {}, a.groups});
          for (size_t d = 0; d < out.size(); ++d) g = g.narrow(int64_t(d) + 2, 0, out[d]);
          return g;
        });
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 3e-4};
  SINTER_SAMPLES(
      "x[2, 3, 5, 6], x[2, 4, 5, 6] | stride=[1, 1], padding=[1, 1], dilation=[1, 1], kernel=[3, 3]",
      "x[1, 2, 7], x[1, 3, 5] | stride=[1], padding=[0], dilation=[1], kernel=[3]",
      "x[1, 4, 19, 18], x[1, 6, 10, 16] | stride=[2, 1], padding=[1, 0], dilation=[1, 2], kernel=[3, 2], groups=2",
      "x[2, 4, 20], x[2, 4, 20] | stride=[1], padding=[1], dilation=[1], kernel=[3], groups=4",
      "x[1, 2, 4, 4, 5], x[1, 2, 3, 3, 4] | stride=[1, 1, 1], padding=[0, 0, 0], dilation=[1, 1, 1], kernel=[2, 2, 2]",
      "x[0, 2, 5], x[0, 3, 3] | stride=[1], padding=[0], dilation=[1], kernel=[3]")
};

const Op& convolution_op() { return op_of<Convolution>; }
const Op& convolution_weight_grad_op() { return op_of<ConvolutionWeightGrad>; }

namespace {

Tensor run_convolution(const TensorArg& x, const TensorArg& weight, const ConvolutionAttrs& a) {
  return call<Convolution>({x, weight}, a);
}
Tensor run_weight_grad(const TensorArg& input, const TensorArg& grad, const ConvolutionWeightGradAttrs& a) {
  return call<ConvolutionWeightGrad>({input, grad}, a);
}

// What the numbered forms share: checks the rank and adds the batch dimension where it is missing.
Tensor convolve(const char* op, const TensorArg& x_arg, const TensorArg& w_arg, const Tensor& bias, int64_t spatial,
                const SpatialList& stride, const SpatialList& padding, const SpatialList& dilation, bool transposed,
                const SpatialList& output_padding, int64_t groups) {
  UserPosition here(x_arg.where(), op);
  const Tensor &x = tensor_operand(op, x_arg), &w = tensor_operand(op, w_arg);
  check(w.dim() == spatial + 2, "{}: expected a {}-d weight, got {} (input {})", op, spatial + 2, w.sizes(), x.sizes());
  check(x.dim() == spatial + 2 || x.dim() == spatial + 1, "{}: expected a {}-d input (or {}-d without a batch), got {}",
        op, spatial + 2, spatial + 1, x.sizes());
  bool batched = x.dim() == spatial + 2;
  Tensor y =
      convolution(batched ? x : x.unsqueeze(0), w, bias, stride, padding, dilation, transposed, output_padding, groups);
  return batched ? y : y.squeeze(0);
}

// Zeros before and after so that a stride of 1 keeps the size; an odd total has one more after.
Tensor convolve_named(const char* op, const TensorArg& x_arg, const TensorArg& w_arg, const Tensor& bias,
                      int64_t spatial, const SpatialList& stride, Padding padding, const SpatialList& dilation,
                      int64_t groups) {
  UserPosition here(x_arg.where(), op);
  if (padding == Padding::kValid)
    return convolve(op, x_arg, w_arg, bias, spatial, stride, 0, dilation, false, 0, groups);
  Tensor x = tensor_operand(op, x_arg);
  const Tensor& w = tensor_operand(op, w_arg);
  check(w.dim() == spatial + 2, "{}: expected a {}-d weight, got {} (input {})", op, spatial + 2, w.sizes(), x.sizes());
  IntList steps = expand_spatial(op, "stride", stride, spatial, 1),
          spread = expand_spatial(op, "dilation", dilation, spatial, 1);
  IntList before;
  Shape extra;
  bool uneven = false;
  for (int64_t d = 0; d < spatial; ++d) {
    check(steps[size_t(d)] == 1, "{}: padding kSame needs a stride of 1, got {}", op, steps);
    int64_t total = spread[size_t(d)] * (w.size(d + 2).to_int() - 1);
    before.push_back(total / 2);
    // constant_pad_nd lists the last dimension first.
    extra.insert(extra.begin(), total % 2);
    extra.insert(extra.begin(), 0);
    uneven = uneven || total % 2;
  }
  if (uneven) x = constant_pad_nd(x, extra, 0);
  return convolve(op, x, w_arg, bias, spatial, stride, before, dilation, false, 0, groups);
}

}  // namespace

IntList expand_spatial(const char* op, const char* what, const SpatialList& list, int64_t rank, int64_t standard) {
  if (list.size() <= 1) return IntList(size_t(rank), list.empty() ? standard : list[0]);
  check(int64_t(list.size()) == rank, "{}: {} must be one number or {}, got {}", op, what, rank,
        static_cast<const IntList&>(list));
  return list;
}

Tensor convolution(const TensorArg& x_arg, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,
                   const SpatialList& padding, const SpatialList& dilation, bool transposed,
                   const SpatialList& output_padding, int64_t groups) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("convolution", x_arg);
  const Tensor shift = low(bias);
  check(x.dim() >= 3 && x.dim() <= 5,
        "convolution: expected an input [batch, channels, …] with 1 to 3 spatial dimensions, got {}", x.sizes());
  int64_t rank = x.dim() - 2;
  ConvolutionAttrs a{expand_spatial("convolution", "stride", stride, rank, 1),
                     expand_spatial("convolution", "padding", padding, rank, 0),
                     expand_spatial("convolution", "dilation", dilation, rank, 1),
                     transposed,
                     {},
                     groups};
  IntList extra = expand_spatial("convolution", "output_padding", output_padding, rank, 0);
  if (transposed && std::any_of(extra.begin(), extra.end(), [](int64_t v) { return v != 0; })) {
    for (size_t d = 0; d < extra.size(); ++d)
      check(extra[d] >= 0 && extra[d] < std::max(a.stride[d], a.dilation[d]),
            "convolution: output_padding {} must be smaller than stride {} or dilation {}", extra, a.stride,
            a.dilation);
    a.output_padding = Shape(std::span<const int64_t>(extra));
  }
  Tensor y = run_convolution(x_arg, weight, a);
  if (!shift.defined()) return y;
  check(shift.dim() == 1 && shift.size(0) == y.size(1), "convolution: expected a bias of shape [{}], got {}", y.size(1),
        shift.sizes());
  Shape column(size_t(rank) + 1, 1);
  column[0] = shift.size(0);
  return y + shift.view(column);
}

#define SINTER_CONV(n)                                                                                            \
  Tensor conv##n##d(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,   \
                    const SpatialList& padding, const SpatialList& dilation, int64_t groups) {                    \
    return convolve("conv" #n "d", x, weight, bias, n, stride, padding, dilation, false, 0, groups);              \
  }                                                                                                               \
  Tensor conv##n##d(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,   \
                    Padding padding, const SpatialList& dilation, int64_t groups) {                               \
    return convolve_named("conv" #n "d", x, weight, bias, n, stride, padding, dilation, groups);                  \
  }                                                                                                               \
  Tensor conv_transpose##n##d(const TensorArg& x, const TensorArg& weight, const Tensor& bias,                    \
                              const SpatialList& stride, const SpatialList& padding,                              \
                              const SpatialList& output_padding, int64_t groups, const SpatialList& dilation) {   \
    return convolve("conv_transpose" #n "d", x, weight, bias, n, stride, padding, dilation, true, output_padding, \
                    groups);                                                                                      \
  }
SINTER_CONV(1)
SINTER_CONV(2)
SINTER_CONV(3)
#undef SINTER_CONV

Tensor conv_tbc(const TensorArg& x, const TensorArg& weight, const Tensor& bias, int64_t pad) {
  UserPosition here(x.where());
  check(x.dim() == 3 && weight.dim() == 3, "conv_tbc: expected [l, n, c] and a weight [k, c, out], got {} and {}", x.sizes(),
        weight.sizes());
  return conv1d(permute(x, {1, 2, 0}), permute(weight, {2, 1, 0}), bias, 1, pad).permute({2, 0, 1});
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const TensorArg& grad_output, const TensorArg& input,
                                                        const TensorArg& weight, const SpatialList& stride,
                                                        const SpatialList& padding, const SpatialList& dilation,
                                                        bool transposed, const SpatialList& output_padding,
                                                        int64_t groups, const std::array<bool, 3>& output_mask) {
  UserPosition here(grad_output.where());
  const Tensor& g = tensor_operand("convolution_backward", grad_output);
  int64_t rank = g.dim() - 2;
  auto list = [&](const char* what, const SpatialList& l, int64_t standard) {
    return expand_spatial("convolution_backward", what, l, rank, standard);
  };
  IntList extra = list("output_padding", output_padding, 0);
  ConvolutionAttrs a{
      list("stride", stride, 1), list("padding", padding, 0), list("dilation", dilation, 1), transposed, {}, groups};
  if (transposed) a.output_padding = Shape(std::span<const int64_t>(extra));
  TensorArg inputs[] = {input, weight};
  std::vector<bool> needed{output_mask[0], output_mask[1]};
  Attrs attrs(a);
  TensorList grads = Convolution::grad({op_of<Convolution>, inputs, {}, {&g, 1}, attrs, needed});
  Tensor bias;
  if (output_mask[2]) {
    IntList dims{0};
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d + 2);
    bias = g.sum(dims);
  }
  return {grads[0], grads[1], bias};
}

}  // namespace sinter
