// Windows of an image side by side, and their sums back in place: the two are each other's gradient.
#include "sinter/ops/complex_call.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/define.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

struct WindowsAttrs {
  Shape size;  // of the image
  IntList kernel, dilation, padding, stride;
  SINTER_FIELDS(size, kernel, dilation, padding, stride)
};

namespace {

// How many windows there are along each dimension; an Error where there is none.
Shape window_counts(const char* op, const WindowsAttrs& a) {
  size_t n = a.kernel.size();
  check(n >= 1 && a.size.size() == n && a.dilation.size() == n && a.padding.size() == n && a.stride.size() == n,
        "{}: size {}, kernel {}, dilation {}, padding {} and stride {} differ in length", op, a.size, a.kernel,
        a.dilation, a.padding, a.stride);
  Shape counts;
  for (size_t d = 0; d < n; ++d) {
    check(a.kernel[d] >= 1 && a.dilation[d] >= 1 && a.stride[d] >= 1 && a.padding[d] >= 0,
          "{}: kernel {}, dilation {} and stride {} must be positive, padding {} not negative", op, a.kernel,
          a.dilation, a.stride, a.padding);
    counts.push_back((a.size[d] + 2 * a.padding[d] - a.dilation[d] * (a.kernel[d] - 1) - 1) / a.stride[d] + 1);
    check(fits(1, counts.back()), "{}: a kernel of {} with dilation {} is larger than the size {} with padding {}", op,
          a.kernel, a.dilation, a.size, a.padding);
  }
  return counts;
}

// An Error unless the first operand's shape ends so.
void check_tail(const OpCall& call, const Shape& tail) {
  const Shape& x = call.shape(0);
  bool same = x.size() >= tail.size();
  for (size_t d = 0; same && d < tail.size(); ++d) same = x[x.size() - tail.size() + d] == tail[d];
  check(same, "{}: the last sizes of {} are not {}", call.name(), x, tail);
}

Shape lengths(const IntList& list) { return Shape(std::span<const int64_t>(list)); }

}  // namespace

// [..., size…] → [..., kernel…, windows…]; zeros outside.
struct Windows : Loop {
  static constexpr auto name = "windows";
  static constexpr auto on_complex = by_parts<>;
  using Attributes = WindowsAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<WindowsAttrs>();
    int64_t n = int64_t(a.kernel.size());
    Shape counts = window_counts("windows", a);
    check_tail(call, a.size);
    Shape out = with_tail(call.shape(0), n, lengths(a.kernel));
    out.append(counts);
    return {Type{call.inputs[0].dtype, out, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<WindowsAttrs>();
    size_t n = a.kernel.size(), lead = size_t(b.call.rank(0)) - n;
    Index at(b.i.begin(), b.i.begin() + ptrdiff_t(lead));
    Conditions inside;
    for (size_t d = 0; d < n; ++d) {
      at.push_back(b.i[lead + n + d] * a.stride[d] + b.i[lead + d] * a.dilation[d] - a.padding[d]);
      if (a.padding[d] != 0) inside.push_back({at.back(), a.size[d]});
    }
    return inside.empty() ? b.load(0, at) : b.load_if(inside, 0, at, 0);
  }
  static TensorList grad(const GradCall& c);
  SINTER_SAMPLES("x[2, 3, 4, 5] | size=[4, 5], kernel=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[1, 1]",
                 "x[2, 19] | size=[19], kernel=[3], dilation=[2], padding=[1], stride=[3]",
                 "x[1, 5, 6] | size=[5, 6], kernel=[3, 2], dilation=[1, 2], padding=[2, 1], stride=[2, 1]",
                 "x[0, 4, 4] | size=[4, 4], kernel=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[2, 2]")
};

// [..., kernel…, windows…] → [..., size…]: each element the sum of all places where `windows` puts it.
struct WindowsBack : Loop {
  static constexpr auto name = "windows_back";
  static constexpr auto on_complex = by_parts<>;
  using Attributes = WindowsAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<WindowsAttrs>();
    int64_t n = int64_t(a.kernel.size());
    Shape tail = lengths(a.kernel);
    tail.append(window_counts("windows_back", a));
    check(call.inputs[0].dtype != kBool, "windows_back: not defined for bool");
    check_tail(call, tail);
    return {Type{call.inputs[0].dtype, with_tail(call.shape(0), 2 * n, a.size), call.inputs[0].device}};
  }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return lengths(call.as<WindowsAttrs>().kernel); }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<WindowsAttrs>();
    const Shape& x = b.call.shape(0);
    size_t n = a.kernel.size(), lead = x.size() - 2 * n;
    Index at(b.i.begin(), b.i.begin() + ptrdiff_t(lead));
    Conditions inside;
    for (size_t d = 0; d < n; ++d) at.push_back(b.k[d]);
    for (size_t d = 0; d < n; ++d) {
      Dim scaled = b.i[lead + d] + a.padding[d] - b.k[d] * a.dilation[d];
      inside.push_back({scaled, x[lead + n + d] * a.stride[d], a.stride[d]});
      at.push_back(scaled / a.stride[d]);
    }
    return b.load_if(inside, 0, at, 0);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return call<Windows>({c.grad()}, c.as<WindowsAttrs>()); });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  SINTER_SAMPLES("x[2, 3, 2, 3, 3, 3] | size=[4, 5], kernel=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[1, 1]",
                 "x[2, 3, 6] | size=[19], kernel=[3], dilation=[2], padding=[1], stride=[3]",
                 "x[1, 3, 2, 4, 6] | size=[5, 6], kernel=[3, 2], dilation=[1, 2], padding=[2, 1], stride=[2, 1]",
                 "x[0, 2, 2, 2, 2] | size=[4, 4], kernel=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[2, 2]")
};

TensorList Windows::grad(const GradCall& c) {
  return c.each([&] { return call<WindowsBack>({c.grad()}, c.as<WindowsAttrs>()); });
}

OpFamily fold_ops() {
  static const Op* const ops[] = {&op_of<Windows>, &op_of<WindowsBack>};
  return ops;
}

namespace {

WindowsAttrs windows_attrs(const char* op, const Shape& size, const SpatialList& kernel, const SpatialList& dilation,
                           const SpatialList& padding, const SpatialList& stride) {
  return {size, expand_spatial(op, "kernel_size", kernel, 2, 1), expand_spatial(op, "dilation", dilation, 2, 1),
          expand_spatial(op, "padding", padding, 2, 0), expand_spatial(op, "stride", stride, 2, 1)};
}

}  // namespace

Tensor im2col(const TensorArg& x_arg, const SpatialList& kernel_size, const SpatialList& dilation,
              const SpatialList& padding, const SpatialList& stride) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("im2col", x_arg);
  check(x.dim() == 3 || x.dim() == 4, "im2col: expected an input [batch, channels, h, w] or [channels, h, w], got {}",
        x.sizes());
  auto attrs = windows_attrs("im2col", {x.size(-2), x.size(-1)}, kernel_size, dilation, padding, stride);
  return call<Windows>({x}, attrs).flatten(-5, -3).flatten(-2);
}

Tensor col2im(const TensorArg& x_arg, const Shape& output_size, const SpatialList& kernel_size,
              const SpatialList& dilation, const SpatialList& padding, const SpatialList& stride) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("col2im", x_arg);
  check(x.dim() == 2 || x.dim() == 3,
        "col2im: expected an input [batch, channels * kernel, windows] or without a batch, got {}", x.sizes());
  check(output_size.rank() == 1 || output_size.rank() == 2, "col2im: expected 1 or 2 output sizes, got {}",
        output_size);
  Shape size{output_size[0], output_size[size_t(output_size.rank() - 1)]};
  auto attrs = windows_attrs("col2im", size, kernel_size, dilation, padding, stride);
  Shape counts = window_counts("col2im", attrs);
  int64_t area = attrs.kernel[0] * attrs.kernel[1];
  check(x.size(-2) % area == 0, "col2im: the second last size of {} is no multiple of the kernel's {} elements",
        x.sizes(), area);
  check(x.size(-1) == counts.numel(), "col2im: an image of {} has {} windows ({}), the input {} has {}", size,
        counts.numel(), counts, x.sizes(), x.size(-1));
  Shape split = with_tail(x.sizes(), 2, {x.size(-2) / area, attrs.kernel[0], attrs.kernel[1], counts[0], counts[1]});
  return call<WindowsBack>({x.reshape(split)}, attrs);
}

}  // namespace sinter
