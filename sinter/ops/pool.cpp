#include "sinter/ops/conv.h"

#include <limits>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

struct AdaptiveAttrs {
  Shape size;
  SINTER_FIELDS(size)
};

namespace {

// Windows along one dimension. With ceil_mode the last may hang over, if it begins in the input or its left padding.
Dim pooled_size(const Dim& in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  Dim room = in + 2 * padding - dilation * (kernel - 1) - 1;
  if (!ceil_mode) return room / stride + 1;
  return min((room + stride - 1) / stride + 1, (in + padding - 1) / stride + 1);
}

// The smallest value of a type: what padding counts as.
Scalar lowest(DType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  return visit_dtype(dtype, [](auto zero) -> Scalar {
    if constexpr (std::is_integral_v<decltype(zero)>)
      return int64_t(std::numeric_limits<decltype(zero)>::lowest());
    else
      return 0;
  });
}

// Coordinates whose first entries are those of the result.
Index leading(const ElementBuilder& b, size_t pooled) { return Index(b.i.begin(), b.i.end() - ptrdiff_t(pooled)); }

Shape infer_max_pool(const OpCall& call) {
  auto& a = call.as<MaxPoolAttrs>();
  const Shape& x = call.shape(0);
  size_t n = a.kernel.size();
  check(x.size() >= n && n >= 1, "{}: the input {} has fewer dimensions than the kernel {}", call.name(), x, a.kernel);
  check(a.stride.size() == n && a.padding.size() == n && a.dilation.size() == n,
        "{}: kernel {}, stride {}, padding {} and dilation {} differ in length", call.name(), a.kernel, a.stride,
        a.padding, a.dilation);
  Shape out(x.begin(), x.end() - ptrdiff_t(n));
  for (size_t d = 0; d < n; ++d) {
    check(a.kernel[d] >= 1 && a.stride[d] >= 1 && a.dilation[d] >= 1,
          "{}: kernel {}, stride {} and dilation {} must be positive", call.name(), a.kernel, a.stride, a.dilation);
    check(a.padding[d] >= 0 && 2 * a.padding[d] <= (a.kernel[d] - 1) * a.dilation[d] + 1,
          "{}: padding {} must be at most half of the window's reach (kernel {}, dilation {})", call.name(), a.padding,
          a.kernel, a.dilation);
    out.push_back(pooled_size(x[out.size()], a.kernel[d], a.stride[d], a.padding[d], a.dilation[d], a.ceil_mode));
    check(fits(1, out.back()), "{}: the input {} is too small for the kernel {} with padding {} and dilation {}",
          call.name(), x, a.kernel, a.padding, a.dilation);
  }
  return out;
}

Elem max_pool_element(ElementBuilder& b) {
  auto& a = b.call.as<MaxPoolAttrs>();
  const Shape& x = b.call.shape(0);
  size_t n = a.kernel.size(), lead = x.size() - n;
  Index at = leading(b, n);
  Conditions inside;
  for (size_t d = 0; d < n; ++d) {
    Dim position = b.i[lead + d] * a.stride[d] + b.k[d] * a.dilation[d] - a.padding[d];
    if (a.padding[d] != 0 || a.ceil_mode) inside.push_back({position, x[lead + d]});
    at.push_back(position);
  }
  return inside.empty() ? b.load(0, at) : b.load_if(inside, 0, at, lowest(b.call.inputs[0].dtype));
}

Tensor max_pool_indices(const TensorArg& x, const MaxPoolAttrs& a);
Tensor max_pool_grad(const Tensor& grad, const Shape& sizes, const Tensor& indices, const MaxPoolAttrs& a);

// The elements of x at row-major positions among its last `pooled` dimensions.
Tensor take_pooled(const Tensor& x, const Tensor& indices, int64_t pooled) {
  return gather(x.flatten(-pooled), -1, indices.flatten(-pooled)).view(indices.sizes());
}
// The reverse: grad added up at those positions of a tensor shaped like x.
Tensor put_pooled(const Tensor& grad, const Shape& sizes, const Tensor& indices, int64_t pooled) {
  Tensor zero = zeros(sizes, grad.options()).flatten(-pooled);
  return scatter_add(zero, -1, indices.flatten(-pooled), grad.flatten(-pooled)).view(sizes);
}

constexpr std::string_view kMaxPoolSamples[] = {
    "x[2, 3, 6, 7] | kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]",
    "x[1, 2, 19] | kernel=[3], stride=[1], padding=[1], dilation=[1]",
    "x[2, 9, 8] | kernel=[3, 2], stride=[2, 3], padding=[1, 1], dilation=[2, 1], ceil_mode=true",
    "x[1, 2, 4, 5, 6] | kernel=[2, 2, 3], stride=[2, 1, 2], padding=[0, 1, 0], dilation=[1, 1, 1]",
    "x[0, 2, 4, 4] | kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1]"};

}  // namespace

struct MaxPool : Loop {
  static constexpr auto name = "max_pool";
  using Attributes = MaxPoolAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{call.inputs[0].dtype, infer_max_pool(call), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kMax;
  static Shape reduction(const OpCall& call) { return Shape(std::span<const int64_t>(call.as<MaxPoolAttrs>().kernel)); }
  static Elem element(ElementBuilder& b) { return max_pool_element(b); }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<MaxPoolAttrs>();
    return c.each([&] { return max_pool_grad(c.grad(), c[0].sizes(), max_pool_indices(c[0], a), a); });
  }
  static constexpr std::span<const std::string_view> samples = kMaxPoolSamples;
};

// Where the largest element of each window is, row-major among the pooled dimensions.
struct MaxPoolIndices : Loop {
  static constexpr auto name = "max_pool_indices";
  using Attributes = MaxPoolAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{kInt64, infer_max_pool(call), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kArgMax;
  static Shape reduction(const OpCall& call) { return MaxPool::reduction(call); }
  static Elem element(ElementBuilder& b) { return max_pool_element(b); }
  static Dim payload(const ElementBuilder& b) {
    auto& a = b.call.as<MaxPoolAttrs>();
    const Shape& x = b.call.shape(0);
    size_t n = a.kernel.size(), lead = x.size() - n;
    Dim flat = 0;
    for (size_t d = 0; d < n; ++d) {
      // In a window of nothing but -inf the first tap wins, which may be padding: the first real one stands for it.
      Dim begin = b.i[lead + d] * a.stride[d] - a.padding[d], tap = b.k[d];
      if (a.padding[d] != 0) tap = max(tap, (a.dilation[d] - 1 - begin) / a.dilation[d]);
      flat = flat * x[lead + d] + begin + tap * a.dilation[d];
    }
    return flat;
  }
  static constexpr NotDifferentiable grad{"positions are integers"};
  static constexpr std::span<const std::string_view> samples = kMaxPoolSamples;
};

// What put_pooled gives where the windows are known: each element adds up the windows that hold it and chose it, so that
// nothing is scattered. Operands: the gradient of the maxima, and their indices.
struct MaxPoolGrad : Loop {
  static constexpr auto name = "max_pool_grad";
  static constexpr int inputs = 2;
  using Attributes = MaxPoolGradAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<MaxPoolGradAttrs>();
    const Shape& grad = call.shape(0);
    size_t n = a.reach.size();
    check(n >= 1 && grad.size() >= n && a.stride.size() == n && a.padding.size() == n && a.size.size() == n,
          "max_pool_grad: gradient {}, reach {}, stride {}, padding {} and size {} do not fit each other", grad, a.reach,
          a.stride, a.padding, a.size);
    check(grad == call.shape(1) && call.inputs[1].dtype == kInt64,
          "max_pool_grad: expected an i64 index for each gradient {}, got {} {}", grad, call.inputs[1].dtype,
          call.shape(1));
    check(is_floating(call.inputs[0].dtype), "max_pool_grad: expected a floating gradient, got {}", call.inputs[0].dtype);
    return {Type{call.inputs[0].dtype, with_tail(grad, int64_t(n), a.size), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) {
    return Shape(std::span<const int64_t>(call.as<MaxPoolGradAttrs>().windows()));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<MaxPoolGradAttrs>();
    const Shape& grad = b.call.shape(0);
    size_t n = a.reach.size(), lead = grad.size() - n;
    Index at = leading(b, n);
    Conditions inside;
    Dim here = 0;
    for (size_t d = 0; d < n; ++d) {
      Dim window = (b.i[lead + d] + a.padding[d]) / a.stride[d] - b.k[d];
      inside.push_back({window, grad[lead + d]});
      at.push_back(window);
      here = here * a.size[d] + b.i[lead + d];
    }
    const KnownOps& ops = known_ops();
    const DType dtype = b.call.inputs[0].dtype;
    Elem chosen = b.apply(ops.eq, kInt64, {b.load_if(inside, 1, at, -1), b.number(here)});
    return b.apply(ops.where, dtype, {chosen, b.load_if(inside, 0, at, 0), b.constant(0)});
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return take_pooled(c.grad(), c[1].tensor(), int64_t(c.as<MaxPoolGradAttrs>().reach.size())); });
  }
  static constexpr Tolerance tolerance{.ulp = 8, .absolute = 1e-6};
  // Any index may come in a sample, so every window holds every element.
  SINTER_SAMPLES("x[2, 3], i64[2, 3]<4 | reach=[6], stride=[1], padding=[2], size=[4]",
                 "x[2, 2, 2], i64[2, 2, 2]<6 | reach=[4, 5], stride=[1, 2], padding=[1, 2], size=[2, 3]",
                 "x[3, 5], i64[3, 5]<20 | reach=[28], stride=[2], padding=[8], size=[20]",
                 "x[2, 1, 1, 1], i64[2, 1, 1, 1]<8 | reach=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0], size=[2, 2, 2]",
                 "x[0, 3], i64[0, 3]<4 | reach=[6], stride=[1], padding=[2], size=[4]")
};

// The sum of each window (zeros outside), or, transposed, of all windows that hold an element: its own gradient.
struct WindowSum : Loop {
  static constexpr auto name = "window_sum";
  using Attributes = WindowSumAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<WindowSumAttrs>();
    const Shape& x = call.shape(0);
    size_t n = a.kernel.size();
    check(n >= 1 && x.size() >= n && a.stride.size() == n && a.padding.size() == n && a.size.size() == n,
          "window_sum: input {}, kernel {}, stride {}, padding {} and size {} do not fit each other", x, a.kernel,
          a.stride, a.padding, a.size);
    check(call.inputs[0].dtype != kBool, "window_sum: not defined for bool");
    return {Type{call.inputs[0].dtype, with_tail(x, int64_t(n), a.size), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) {
    return Shape(std::span<const int64_t>(call.as<WindowSumAttrs>().kernel));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<WindowSumAttrs>();
    const Shape& x = b.call.shape(0);
    size_t n = a.kernel.size(), lead = x.size() - n;
    Index at = leading(b, n);
    Conditions inside;
    for (size_t d = 0; d < n; ++d) {
      const Dim& o = b.i[lead + d];
      if (a.transposed) {
        Dim scaled = o + a.padding[d] - b.k[d];
        inside.push_back({scaled, x[lead + d] * a.stride[d], a.stride[d]});
        at.push_back(scaled / a.stride[d]);
      } else {
        Dim position = o * a.stride[d] + b.k[d] - a.padding[d];
        inside.push_back({position, x[lead + d]});
        at.push_back(position);
      }
    }
    return b.load_if(inside, 0, at, 0);
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<WindowSumAttrs>();
    return c.each([&] {
      Shape x = c[0].sizes(), size(x.end() - ptrdiff_t(a.kernel.size()), x.end());
      return call<WindowSum>({c.grad()}, WindowSumAttrs{a.kernel, a.stride, a.padding, size, !a.transposed});
    });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  SINTER_SAMPLES("x[2, 3, 6, 7] | kernel=[2, 2], stride=[2, 2], padding=[0, 0], size=[3, 3]",
                 "x[1, 2, 19] | kernel=[3], stride=[1], padding=[1], size=[19]",
                 "x[1, 2, 4, 5, 6] | kernel=[2, 2, 3], stride=[2, 1, 2], padding=[0, 1, 0], size=[2, 6, 3]",
                 "x[3, 20] | kernel=[3], stride=[2], padding=[1], size=[40], transposed=true",
                 "x[2, 3, 3] | kernel=[3, 2], stride=[2, 3], padding=[1, 0], size=[6, 9], transposed=true",
                 "x[0, 2, 4] | kernel=[2], stride=[2], padding=[0], size=[2]")
};

namespace {

// The window [floor(o * in / out), ceil((o + 1) * in / out)) of a result coordinate.
struct AdaptiveWindow {
  Dim begin, length;
};
AdaptiveWindow adaptive_window(const Dim& o, const Dim& in, const Dim& out) {
  Dim begin = o * in / out;
  return {begin, ((o + 1) * in + out - 1) / out - begin};
}

Shape infer_adaptive(const OpCall& call) {
  const Shape &x = call.shape(0), &size = call.as<AdaptiveAttrs>().size;
  check(size.rank() >= 1 && x.rank() >= size.rank(), "{}: the input {} has fewer dimensions than the output size {}",
        call.name(), x, size);
  for (size_t d = 0; d < size.size(); ++d)
    check(fits(1, size[d]) && fits(1, x[x.size() - size.size() + d]),
          "{}: sizes must be positive (input {}, output size {})", call.name(), x, size);
  return with_tail(x, size.rank(), size);
}
Shape adaptive_reduction(const OpCall& call) {
  const Shape &x = call.shape(0), &size = call.as<AdaptiveAttrs>().size;
  Shape extents;
  for (size_t d = 0; d < size.size(); ++d)
    extents.push_back((x[x.size() - size.size() + d] + size[d] - 1) / size[d] + 1);
  return extents;
}
Elem adaptive_element(ElementBuilder& b, const Scalar& otherwise) {
  const Shape &x = b.call.shape(0), &size = b.call.as<AdaptiveAttrs>().size;
  size_t n = size.size(), lead = x.size() - n;
  Index at = leading(b, n);
  Conditions inside;
  for (size_t d = 0; d < n; ++d) {
    auto window = adaptive_window(b.i[lead + d], x[lead + d], size[d]);
    inside.push_back({b.k[d], window.length});
    at.push_back(window.begin + b.k[d]);
  }
  return b.load_if(inside, 0, at, otherwise);
}

constexpr std::string_view kAdaptiveSamples[] = {"x[2, 3, 7, 5] | size=[3, 2]", "x[2, 19] | size=[5]",
                                                 "x[1, 5, 4, 6] | size=[2, 3, 4]", "x[2, 3, 3] | size=[5, 7]",
                                                 "x[0, 7] | size=[3]"};

}  // namespace

// Sums over adaptive windows. An element lies in just the windows that the same rule gives with the sizes exchanged, so
// the op is its own gradient.
struct AdaptiveSum : Loop {
  static constexpr auto name = "adaptive_sum";
  using Attributes = AdaptiveAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs[0].dtype != kBool, "adaptive_sum: not defined for bool");
    return {Type{call.inputs[0].dtype, infer_adaptive(call), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return adaptive_reduction(call); }
  static Elem element(ElementBuilder& b) { return adaptive_element(b, 0); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      Shape x = c[0].sizes();
      return call<AdaptiveSum>({c.grad()}, AdaptiveAttrs{Shape(x.end() - c.as<AdaptiveAttrs>().size.rank(), x.end())});
    });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  static constexpr std::span<const std::string_view> samples = kAdaptiveSamples;
};

struct AdaptiveMaxIndices : Loop {
  static constexpr auto name = "adaptive_max_indices";
  using Attributes = AdaptiveAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{kInt64, infer_adaptive(call), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kArgMax;
  static Shape reduction(const OpCall& call) { return adaptive_reduction(call); }
  static Elem element(ElementBuilder& b) { return adaptive_element(b, lowest(b.call.inputs[0].dtype)); }
  static Dim payload(const ElementBuilder& b) {
    const Shape &x = b.call.shape(0), &size = b.call.as<AdaptiveAttrs>().size;
    size_t lead = x.size() - size.size();
    Dim flat = 0;
    for (size_t d = 0; d < size.size(); ++d)
      flat = flat * x[lead + d] + adaptive_window(b.i[lead + d], x[lead + d], size[d]).begin + b.k[d];
    return flat;
  }
  static constexpr NotDifferentiable grad{"positions are integers"};
  static constexpr std::span<const std::string_view> samples = kAdaptiveSamples;
};

OpFamily pool_ops() {
  static const Op* const ops[] = {&op_of<MaxPool>, &op_of<MaxPoolIndices>, &op_of<MaxPoolGrad>,
                                  &op_of<WindowSum>, &op_of<AdaptiveSum>, &op_of<AdaptiveMaxIndices>};
  return ops;
}

namespace {

Tensor max_pool_indices(const TensorArg& x, const MaxPoolAttrs& a) { return call<MaxPoolIndices>({x}, a); }

Tensor max_pool_grad(const Tensor& grad, const Shape& sizes, const Tensor& indices, const MaxPoolAttrs& a) {
  MaxPoolGradAttrs back{{}, a.stride, a.padding, Shape(sizes.end() - ptrdiff_t(a.kernel.size()), sizes.end())};
  for (size_t d = 0; d < a.kernel.size(); ++d) back.reach.push_back(a.dilation[d] * (a.kernel[d] - 1) + 1);
  return call<MaxPoolGrad>({grad, indices}, back);
}

void check_rank(const char* op, const Tensor& x, int64_t pooled) {
  check(x.dim() == pooled + 1 || x.dim() == pooled + 2, "{}: expected an input of {} or {} dimensions, got {}", op,
        pooled + 2, pooled + 1, x.sizes());
}

MaxPoolAttrs max_pool_attrs(const char* op, const TensorArg& x, int64_t pooled, const SpatialList& kernel,
                            const SpatialList& stride, const SpatialList& padding, const SpatialList& dilation,
                            bool ceil_mode) {
  check_rank(op, tensor_operand(op, x), pooled);
  return {expand_spatial(op, "kernel", kernel, pooled, 1),
          expand_spatial(op, "stride", stride.empty() ? kernel : stride, pooled, 1),
          expand_spatial(op, "padding", padding, pooled, 0), expand_spatial(op, "dilation", dilation, pooled, 1),
          ceil_mode};
}

// An average pool with everything but its operand settled: a window sum and what to divide it by.
struct AveragePool {
  WindowSumAttrs attrs;
  bool ceil_mode, count_include_pad;
  std::optional<int64_t> divisor;
  Shape in;  // pooled sizes of the input

  AveragePool(const char* op, const TensorArg& x_arg, int64_t pooled, const SpatialList& kernel,
              const SpatialList& stride, const SpatialList& padding, bool ceil, bool include_pad,
              std::optional<int64_t> override)
      : ceil_mode(ceil), count_include_pad(include_pad), divisor(override) {
    const Tensor& x = tensor_operand(op, x_arg);
    check_rank(op, x, pooled);
    check(x.is_floating_point() || x.dtype() == kInt64, "{}: expected a floating dtype or i64, got {}", op, x.dtype());
    check(!override || *override != 0, "{}: divisor_override must not be 0", op);
    attrs.kernel = expand_spatial(op, "kernel", kernel, pooled, 1);
    attrs.stride = expand_spatial(op, "stride", stride.empty() ? kernel : stride, pooled, 1);
    attrs.padding = expand_spatial(op, "padding", padding, pooled, 0);
    bool padded = false;
    int64_t count = 1;
    for (size_t d = 0; d < size_t(pooled); ++d) {
      int64_t k = attrs.kernel[d], s = attrs.stride[d], p = attrs.padding[d];
      check(k >= 1 && s >= 1, "{}: kernel {} and stride {} must be positive", op, attrs.kernel, attrs.stride);
      check(p >= 0 && 2 * p <= k, "{}: padding {} must be at most half of the kernel {}", op, attrs.padding,
            attrs.kernel);
      in.push_back(x.size(int64_t(d) - pooled));
      attrs.size.push_back(pooled_size(in[d], k, s, p, 1, ceil));
      check(attrs.size[d] >= 1, "{}: the input {} is too small for the kernel {} with padding {}", op, x.sizes(),
            attrs.kernel, attrs.padding);
      padded = padded || p != 0;
      count *= k;
    }
    // Every window counts the same unless one hangs over the input, or padding does not count.
    if (!divisor && !ceil_mode && (count_include_pad || !padded)) divisor = count;
  }

  Tensor divide(const Tensor& sums) const {
    // Whole numbers stay such: what is left over is cut off.
    auto over = [&](const TensorArg& count) {
      return is_integral(sums.dtype()) ? div(sums, count, "trunc") : sums / count;
    };
    if (divisor) return over(*divisor);
    WindowSumAttrs counting = attrs;
    Shape extent = in;
    if (count_include_pad) {
      for (size_t d = 0; d < in.size(); ++d) extent[d] = in[d] + 2 * attrs.padding[d];
      counting.padding = IntList(in.size(), 0);
    }
    return over(call<WindowSum>({ones(extent, sums.options())}, counting));
  }
  Tensor forward(const Tensor& x) const { return narrowed(divide(call<WindowSum>({widened(x)}, attrs)), x.dtype()); }
  Tensor backward(const Tensor& grad) const {
    WindowSumAttrs back = attrs;
    back.size = in;
    back.transposed = true;
    return narrowed(call<WindowSum>({divide(widened(grad))}, back), grad.dtype());
  }
};

// One size for each pooled dimension; a single one stands for all.
Shape adaptive_sizes(const char* op, const Shape& given, int64_t pooled) {
  check(given.rank() == 1 || given.rank() == pooled, "{}: expected {} output sizes, got {}", op, pooled, given);
  Shape out = given;
  while (out.rank() < pooled) out.push_back(given[0]);
  return out;
}

Tensor adaptive_average(const char* op, const TensorArg& x_arg, int64_t pooled, const Shape& given) {
  UserPosition here(x_arg.where(), op);
  const Tensor& x = tensor_operand(op, x_arg);
  check_rank(op, x, pooled);
  Shape size = adaptive_sizes(op, given, pooled);
  check(x.is_floating_point(), "{}: expected a floating dtype, got {}", op, x.dtype());
  bool even = true;
  for (int64_t d = 0; d < pooled; ++d) {
    check(size[size_t(d)] >= 1, "{}: output sizes must be positive, got {}", op, size);
    even = even && x.size(d - pooled) % size[size_t(d)] == 0;
  }
  if (even) {
    // Equal windows: a mean over dimensions of their own.
    Shape split = with_tail(x.sizes(), pooled, {});
    IntList windows;
    for (int64_t d = 0; d < pooled; ++d) {
      split.push_back(size[size_t(d)]);
      windows.push_back(split.rank());
      split.push_back(x.size(d - pooled) / size[size_t(d)]);
    }
    return x.reshape(split).mean(windows);
  }
  Tensor wide = widened(x);
  Shape all = x.sizes(), in(all.end() - pooled, all.end());
  Tensor counts = call<AdaptiveSum>({ones(in, wide.options())}, AdaptiveAttrs{size});
  return narrowed(call<AdaptiveSum>({wide}, AdaptiveAttrs{size}) / counts, x.dtype());
}

Tensor adaptive_average_backward(const char* op, const TensorArg& grad_arg, const TensorArg& x_arg, int64_t pooled) {
  UserPosition here(grad_arg.where(), op);
  const Tensor &grad = tensor_operand(op, grad_arg), &x = tensor_operand(op, x_arg);
  check_rank(op, x, pooled);
  check(grad.dim() == x.dim(), "{}: gradient {} and input {} differ in rank", op, grad.sizes(), x.sizes());
  Tensor wide = widened(grad);
  Shape all = x.sizes(), in(all.end() - pooled, all.end()), out_all = grad.sizes(),
        out(out_all.end() - pooled, out_all.end());
  Tensor counts = call<AdaptiveSum>({ones(in, wide.options())}, AdaptiveAttrs{out});
  return narrowed(call<AdaptiveSum>({wide / counts}, AdaptiveAttrs{in}), grad.dtype());
}

}  // namespace

#define SINTER_POOL(n)                                                                                                \
  Tensor max_pool##n##d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride,                     \
                        const SpatialList& padding, const SpatialList& dilation, bool ceil_mode) {                    \
    UserPosition here(x.where());                                                                                     \
    return call<MaxPool>({x}, max_pool_attrs("max_pool" #n "d", x, n, kernel, stride, padding, dilation, ceil_mode)); \
  }                                                                                                                   \
  std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(const TensorArg& x, const SpatialList& kernel,               \
                                                         const SpatialList& stride, const SpatialList& padding,       \
                                                         const SpatialList& dilation, bool ceil_mode) {               \
    UserPosition here(x.where());                                                                                     \
    Tensor indices =                                                                                                  \
        max_pool_indices(x, max_pool_attrs("max_pool" #n "d", x, n, kernel, stride, padding, dilation, ceil_mode));   \
    return {take_pooled(x.tensor(), indices, n), indices};                                                            \
  }                                                                                                                   \
  Tensor adaptive_avg_pool##n##d(const TensorArg& x, const Shape& output_size) {                                      \
    return adaptive_average("adaptive_avg_pool" #n "d", x, n, output_size);                                           \
  }                                                                                                                   \
  std::tuple<Tensor, Tensor> adaptive_max_pool##n##d(const TensorArg& x, const Shape& output_size) {                  \
    UserPosition here(x.where());                                                                                     \
    check_rank("adaptive_max_pool" #n "d", tensor_operand("adaptive_max_pool" #n "d", x), n);                         \
    Shape size = adaptive_sizes("adaptive_max_pool" #n "d", output_size, n);                                          \
    Tensor indices = call<AdaptiveMaxIndices>({x}, AdaptiveAttrs{size});                                              \
    return {take_pooled(x.tensor(), indices, n), indices};                                                            \
  }
SINTER_POOL(1)
SINTER_POOL(2)
SINTER_POOL(3)
#undef SINTER_POOL

#define SINTER_POOL_BACKWARD(n)                                                                                       \
  Tensor max_pool##n##d_with_indices_backward(const TensorArg& grad, const TensorArg& x, const TensorArg& indices) {  \
    UserPosition here(grad.where());                                                                                  \
    return put_pooled(tensor_operand("max_pool" #n "d_with_indices_backward", grad), x.sizes(), indices.tensor(), n); \
  }                                                                                                                   \
  Tensor avg_pool##n##d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride,                     \
                        const SpatialList& padding, bool ceil_mode, bool count_include_pad,                           \
                        std::optional<int64_t> divisor_override) {                                                    \
    UserPosition here(x.where());                                                                                     \
    AveragePool pool("avg_pool" #n "d", x, n, kernel, stride, padding, ceil_mode, count_include_pad,                  \
                     divisor_override);                                                                               \
    return pool.forward(x.tensor());                                                                                  \
  }                                                                                                                   \
  Tensor avg_pool##n##d_backward(const TensorArg& grad, const TensorArg& x, const SpatialList& kernel,                \
                                 const SpatialList& stride, const SpatialList& padding, bool ceil_mode,               \
                                 bool count_include_pad, std::optional<int64_t> divisor_override) {                   \
    UserPosition here(grad.where());                                                                                  \
    AveragePool pool("avg_pool" #n "d_backward", x, n, kernel, stride, padding, ceil_mode, count_include_pad,         \
                     divisor_override);                                                                               \
    return pool.backward(tensor_operand("avg_pool" #n "d_backward", grad));                                           \
  }                                                                                                                   \
  Tensor _adaptive_avg_pool##n##d_backward(const TensorArg& grad, const TensorArg& x) {                               \
    return adaptive_average_backward("_adaptive_avg_pool" #n "d_backward", grad, x, n);                               \
  }
SINTER_POOL_BACKWARD(2)
SINTER_POOL_BACKWARD(3)
#undef SINTER_POOL_BACKWARD

Tensor avg_pool1d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride, const SpatialList& padding,
                  bool ceil_mode, bool count_include_pad) {
  UserPosition here(x.where());
  return AveragePool("avg_pool1d", x, 1, kernel, stride, padding, ceil_mode, count_include_pad, {}).forward(x.tensor());
}

}  // namespace sinter
