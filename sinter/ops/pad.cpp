#include "sinter/ops/pad.h"

#include "sinter/ops/complex_call.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct PadAttrs {
  Shape pad;
  SINTER_FIELDS(pad)
};
struct ConstantPadAttrs {
  Shape pad;
  Scalar value = 0;
  SINTER_FIELDS(pad, value)
};

// The pads of dimension d; the list begins with the last dimension.
struct Pads {
  Dim low, high;
};
Pads pads_of(const Shape& pad, int64_t rank, int64_t d) {
  size_t at = size_t(2 * (rank - 1 - d));
  return at + 1 < pad.size() ? Pads{pad[at], pad[at + 1]} : Pads{0, 0};
}
Shape pad_alone(int64_t rank, int64_t d, const Dim& low, const Dim& high) {
  Shape pad(size_t(2 * (rank - d)), Dim(0));
  pad[pad.size() - 2] = low;
  pad[pad.size() - 1] = high;
  return pad;
}

Shape padded_shape(const OpCall& call, const Shape& pad) {
  check(pad.size() % 2 == 0 && pad.rank() <= 2 * call.rank(0), "{}: {} are not pairs of pads for the shape {}",
        call.name(), pad, call.shape(0));
  Shape shape = call.shape(0);
  for (int64_t d = 0; d < call.rank(0); ++d) {
    auto p = pads_of(pad, call.rank(0), d);
    shape[size_t(d)] += p.low + p.high;
    check(possibly_le(0, shape[size_t(d)]), "{}: pads {} crop more than there is of {}", call.name(), pad,
          call.shape(0));
  }
  return shape;
}

struct ConstantPad : Loop {
  static constexpr auto name = "constant_pad_nd";
  using Attributes = ConstantPadAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{call.inputs[0].dtype, padded_shape(call, call.as<ConstantPadAttrs>().pad), call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<ConstantPadAttrs>();
    Index at = b.i;
    Conditions inside;
    for (int64_t d = 0; d < b.call.rank(0); ++d) {
      auto p = pads_of(a.pad, b.call.rank(0), d);
      if (p.low.same_as(0) && p.high.same_as(0)) continue;
      at[size_t(d)] = b.i[size_t(d)] - p.low;
      inside.push_back({at[size_t(d)], b.call.shape(0)[size_t(d)], 1});
    }
    return inside.empty() ? b.load(0, at) : b.load_if(inside, 0, at, a.value);
  }
  static TensorList grad(const GradCall& c) {
    Shape back;
    for (auto& p : c.as<ConstantPadAttrs>().pad) back.push_back(-p);
    return c.each([&] { return constant_pad_nd(c.grad(), back); });
  }
  static TensorList on_complex(const ComplexCall& c) {
    auto re = c.as<ConstantPadAttrs>(), im = re;
    re.value = re.value.real();
    im.value = im.value.imag();
    const Parts x = c.parts(0);
    return {joined(call<ConstantPad>({x.re}, re), call<ConstantPad>({x.im}, im))};
  }
  SINTER_SAMPLES("x[2, 3] | pad=[1, 2]", "x[3, 18] | pad=[2, 1, 0, 3], value=1.5", "x[4, 5] | pad=[-1, 2, 1, -2]",
                 "x[0, 2] | pad=[1, 1, 2, 0]", "x[] |", "x[2, 3, 4] | pad=[0, 0, 0, 0, 1, 1]")
};

enum class Border { kReflect, kReplicate };

// Gradient along one dimension: the middle, plus what the borders took from it.
Tensor unpad(const Tensor& grad, Border border, int64_t d, const Pads& p, const Dim& size) {
  Tensor out = narrow(grad, d, p.low, size);
  for (bool low : {true, false}) {
    const Dim& width = low ? p.low : p.high;
    if (width.same_as(0)) continue;
    Tensor edge = narrow(grad, d, low ? Dim(0) : p.low + size, width);
    Dim before = low ? Dim(0) : size - 1, after = low ? size - 1 : Dim(0);
    if (border == Border::kReflect) {
      edge = flip(edge, {d});
      before = low ? Dim(1) : size - 1 - width;
      after = size - before - width;
    } else {
      edge = edge.sum({d}, true);
    }
    out = out.add(constant_pad_nd(edge, pad_alone(grad.dim(), d, before, after)));
  }
  return out;
}

template <class Self, Border kBorder, int kDims>
struct BorderPad : Loop {
  using Attributes = PadAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& pad = call.as<PadAttrs>().pad;
    check(pad.size() == 2 * kDims, "{}: expects {} pads, not {}", Self::name, 2 * kDims, pad);
    Shape shape = padded_shape(call, pad);
    for (int64_t d = call.rank(0) - kDims; d < call.rank(0); ++d) {
      auto p = pads_of(pad, call.rank(0), d);
      const Dim& size = call.shape(0)[size_t(d)];
      check(possibly_le(0, p.low) && possibly_le(0, p.high), "{}: pads {} are negative", Self::name, pad);
      Dim least = kBorder == Border::kReflect ? max(p.low, p.high) + 1 : Dim(1);
      check(possibly_le(least, size), "{}: pads {} are too wide for the shape {}", Self::name, pad, call.shape(0));
    }
    return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    auto& pad = b.call.template as<PadAttrs>().pad;
    Index at = b.i;
    auto magnitude = [](const Dim& v) { return max(v, -v); };
    for (int64_t d = b.call.rank(0) - kDims; d < b.call.rank(0); ++d) {
      auto p = pads_of(pad, b.call.rank(0), d);
      if (p.low.same_as(0) && p.high.same_as(0)) continue;
      Dim last = b.call.shape(0)[size_t(d)] - 1, j = b.i[size_t(d)] - p.low;
      at[size_t(d)] = kBorder == Border::kReflect ? last - magnitude(last - magnitude(j)) : min(max(j, 0), last);
    }
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto& pad = c.as<PadAttrs>().pad;
    return c.each([&] {
      Tensor out = c.grad();
      for (int64_t d = c[0].dim() - kDims; d < c[0].dim(); ++d)
        out = unpad(out, kBorder, d, pads_of(pad, c[0].dim(), d), c[0].size(d));
      return out;
    });
  }
};

struct ReflectionPad1d : BorderPad<ReflectionPad1d, Border::kReflect, 1> {
  static constexpr auto name = "reflection_pad1d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 5] | pad=[2, 1]", "x[1, 3, 20] | pad=[0, 19]", "x[4] | pad=[3, 0]")
};
struct ReflectionPad2d : BorderPad<ReflectionPad2d, Border::kReflect, 2> {
  static constexpr auto name = "reflection_pad2d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 4, 5] | pad=[2, 1, 3, 0]", "x[1, 2, 3, 18] | pad=[1, 17, 0, 2]")
};
struct ReflectionPad3d : BorderPad<ReflectionPad3d, Border::kReflect, 3> {
  static constexpr auto name = "reflection_pad3d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 2, 3, 4] | pad=[2, 3, 1, 0, 1, 1]")
};
struct ReplicationPad1d : BorderPad<ReplicationPad1d, Border::kReplicate, 1> {
  static constexpr auto name = "replication_pad1d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 5] | pad=[2, 1]", "x[1, 3, 20] | pad=[0, 30]", "x[1] | pad=[3, 4]")
};
struct ReplicationPad2d : BorderPad<ReplicationPad2d, Border::kReplicate, 2> {
  static constexpr auto name = "replication_pad2d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 4, 5] | pad=[2, 1, 3, 0]", "x[1, 2, 3, 18] | pad=[1, 17, 0, 2]")
};
struct ReplicationPad3d : BorderPad<ReplicationPad3d, Border::kReplicate, 3> {
  static constexpr auto name = "replication_pad3d";
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[2, 2, 3, 4] | pad=[2, 3, 1, 0, 1, 1]")
};

// Negative pads crop: these alone, empty where none is, and the others.
std::pair<Shape, Shape> crop_and_rest(const Shape& pad) {
  Shape crop, rest;
  bool crops = false;
  for (auto& p : pad) {
    const bool negative = p.is_number() && p.number() < 0;
    crops = crops || negative;
    crop.push_back(negative ? p : Dim(0));
    rest.push_back(negative ? Dim(0) : p);
  }
  return {crops ? crop : Shape(), rest};
}

// Each dimension in turn: its end, itself, its beginning.
Tensor circular_pad(const Tensor& x, const Shape& pad) {
  Tensor out = x;
  for (int64_t d = x.dim() - int64_t(pad.size() / 2); d < x.dim(); ++d) {
    auto p = pads_of(pad, x.dim(), d);
    Dim size = x.size(d);
    check(p.low >= 0 && p.high >= 0 && p.low <= size && p.high <= size,
          "pad: circular pads {} go round the shape {} more than once", pad, x.sizes());
    out = cat({narrow(out, d, size - p.low, p.low), out, narrow(out, d, 0, p.high)}, d);
  }
  return out;
}

}  // namespace

Tensor constant_pad_nd(const TensorArg& x, const Shape& pad, const Scalar& value) {
  // An attribute is known when the op is recorded: asking for it only then would end the segment that x is a value of.
  const Scalar known = !value.is_lazy() ? value : value.is_floating() ? Scalar(value.to_double()) : Scalar(value.to_int());
  return call<ConstantPad>({x}, ConstantPadAttrs{pad, known});
}
Tensor reflection_pad1d(const TensorArg& x, const Shape& pad) { return call<ReflectionPad1d>({x}, PadAttrs{pad}); }
Tensor reflection_pad2d(const TensorArg& x, const Shape& pad) { return call<ReflectionPad2d>({x}, PadAttrs{pad}); }
Tensor reflection_pad3d(const TensorArg& x, const Shape& pad) { return call<ReflectionPad3d>({x}, PadAttrs{pad}); }
Tensor replication_pad1d(const TensorArg& x, const Shape& pad) { return call<ReplicationPad1d>({x}, PadAttrs{pad}); }
Tensor replication_pad2d(const TensorArg& x, const Shape& pad) { return call<ReplicationPad2d>({x}, PadAttrs{pad}); }
Tensor replication_pad3d(const TensorArg& x, const Shape& pad) { return call<ReplicationPad3d>({x}, PadAttrs{pad}); }

Tensor pad(const TensorArg& x, const Shape& pad, const std::string& mode, const Scalar& value) {
  UserPosition here(x.where());
  if (mode == "constant") return constant_pad_nd(x, pad, value);
  bool reflect = mode == "reflect", replicate = mode == "replicate";
  check(reflect || replicate || mode == "circular",
        "pad: mode '{}' is not known; there are constant, reflect, replicate and circular", mode);
  check(pad.size() == 2 || pad.size() == 4 || pad.size() == 6, "pad: mode '{}' takes 2, 4 or 6 pads, not {}", mode,
        pad);
  check(x.dim() >= pad.rank() / 2, "pad: the shape {} has too few dimensions for the pads {}", x.sizes(), pad);
  auto [crop, wider] = crop_and_rest(pad);
  if (!crop.empty()) {
    // What is cropped is no part of the image that is reflected or goes round; its last element may be replicated.
    if (replicate) return constant_pad_nd(sinter::pad(x, wider, mode), crop);
    return sinter::pad(constant_pad_nd(x, crop), wider, mode);
  }
  if (!reflect && !replicate) return circular_pad(x.tensor(), pad);
  switch (pad.size()) {
    case 2:
      return reflect ? reflection_pad1d(x, pad) : replication_pad1d(x, pad);
    case 4:
      return reflect ? reflection_pad2d(x, pad) : replication_pad2d(x, pad);
    default:
      return reflect ? reflection_pad3d(x, pad) : replication_pad3d(x, pad);
  }
}

OpFamily pad_ops() {
  static constexpr const Op* kOps[] = {&op_of<ConstantPad>,     &op_of<ReflectionPad1d>,  &op_of<ReflectionPad2d>,
                                       &op_of<ReflectionPad3d>, &op_of<ReplicationPad1d>, &op_of<ReplicationPad2d>,
                                       &op_of<ReplicationPad3d>};
  return kOps;
}

}  // namespace sinter
