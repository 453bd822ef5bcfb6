// Views of a part of a tensor: select, slice, diagonal, windows, arbitrary strides, and what is made of them.
#include <algorithm>

#include "sinter/ops/attributes.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/reshape.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

std::vector<Type> like_input(const OpCall& call, const Shape& shape) {
  return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
}

struct Select : View {
  static constexpr auto name = "select";
  using Attributes = SelectAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<SelectAttrs>();
    check(call.rank(0) > 0, "select: a 0-d tensor has no dimension to select from");
    int64_t dim = wrap_dim("select", a.dim, call.rank(0));
    const Dim& size = call.shape(0)[size_t(dim)];
    check(possibly_le(-size, a.index) && possibly_le(a.index + 1, size),
          "select: index {} is out of range for dimension {} of {}", a.index, dim, call.shape(0));
    return like_input(call, removed(call.shape(0), dim));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<SelectAttrs>();
    int64_t dim = wrap_dim("select", a.dim, b.call.rank(0));
    Dim index = a.index.is_number() && a.index.number() < 0 ? a.index + b.call.shape(0)[size_t(dim)] : a.index;
    return b.load(0, inserted(b.i, dim, index));
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<SelectAttrs>();
    return c.each([&] {
      int64_t dim = wrap_dim("select", a.dim, c[0].dim());
      Dim size = c[0].size(dim), index = a.index.is_number() && a.index.number() < 0 ? a.index + size : a.index;
      Shape pad(size_t(2 * (c[0].dim() - dim)), Dim(0));
      pad[pad.size() - 2] = index;
      pad[pad.size() - 1] = size - index - 1;
      return constant_pad_nd(unsqueeze(c.grad(), dim), pad);
    });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[3, 4] | dim=0, index=1", "x[3, 17] | dim=-1, index=-2", "x[5] | dim=0, index=4",
                 "x[2, 0, 3] | dim=2, index=0")
};

struct SliceOp : View {
  static constexpr auto name = "slice";
  using Attributes = SliceAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<SliceAttrs>();
    check(call.rank(0) > 0, "slice: a 0-d tensor has no dimension to slice");
    check(a.step >= 1, "slice: step {} is not positive", a.step);
    int64_t dim = wrap_dim("slice", a.dim, call.rank(0));
    const Dim& size = call.shape(0)[size_t(dim)];
    Dim end = a.end.value_or(size);
    check(possibly_le(0, a.start) && possibly_le(a.start, end) && possibly_le(end, size),
          "slice: {} to {} is not a range of dimension {} of {}", a.start, end, dim, call.shape(0));
    return like_input(call, replaced(call.shape(0), dim, (end - a.start + (a.step - 1)) / a.step));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<SliceAttrs>();
    int64_t dim = wrap_dim("slice", a.dim, b.call.rank(0));
    return b.load(0, replaced(b.i, dim, a.start + b.i[size_t(dim)] * a.step));
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<SliceAttrs>();
    return c.each([&] {
      int64_t dim = wrap_dim("slice", a.dim, c[0].dim());
      Dim end = a.end.value_or(c[0].size(dim));
      if (a.step != 1) return slice_scatter(zeros_like(c[0]), c.grad(), dim, a.start, end, a.step);
      Shape pad(size_t(2 * (c[0].dim() - dim)), Dim(0));
      pad[pad.size() - 2] = a.start;
      pad[pad.size() - 1] = c[0].size(dim) - end;
      return constant_pad_nd(c.grad(), pad);
    });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[5, 4] | dim=0, start=1, end=4", "x[3, 37] | dim=-1, start=2, step=3", "x[8] | start=8",
                 "x[2, 20] | dim=1, start=1, end=19, step=2", "x[2, 3] | dim=1, end=0")
};

struct DiagonalAttrs {
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  SINTER_FIELDS(offset, dim1, dim2)
};

struct Diagonal : View {
  static constexpr auto name = "diagonal";
  using Attributes = DiagonalAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<DiagonalAttrs>();
    auto d = DiagonalRange::of("diagonal", call.shape(0), a.offset, a.dim1, a.dim2);
    Shape shape = removed(removed(call.shape(0), std::max(d.dim1, d.dim2)), std::min(d.dim1, d.dim2));
    shape.push_back(d.length);
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<DiagonalAttrs>();
    auto d = DiagonalRange::of("diagonal", b.call.shape(0), a.offset, a.dim1, a.dim2);
    Index at;
    size_t next = 0;
    for (int64_t j = 0; j < b.call.rank(0); ++j)
      at.push_back(j == d.dim1 ? b.i.back() + d.start1 : j == d.dim2 ? b.i.back() + d.start2 : b.i[next++]);
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<DiagonalAttrs>();
    return c.each([&] { return diagonal_scatter(zeros_like(c[0]), c.grad(), a.offset, a.dim1, a.dim2); });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[3, 3] |", "x[4, 20] | offset=1", "x[20, 18] | offset=-2", "x[2, 3, 4] | offset=1, dim1=-1, dim2=0",
                 "x[2, 3] | offset=5")
};

struct UnfoldAttrs {
  int64_t dim = 0, size = 1, step = 1;
  SINTER_FIELDS(dim, size, step)
};

struct Unfold : View {
  static constexpr auto name = "unfold";
  using Attributes = UnfoldAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<UnfoldAttrs>();
    check(call.rank(0) > 0, "unfold: a 0-d tensor has no dimension to unfold");
    int64_t dim = wrap_dim("unfold", a.dim, call.rank(0));
    const Dim& size = call.shape(0)[size_t(dim)];
    check(a.size >= 0 && possibly_le(a.size, size), "unfold: a window of {} does not fit dimension {} of {}", a.size,
          dim, call.shape(0));
    check(a.step >= 1, "unfold: step {} is not positive", a.step);
    Shape shape = replaced(call.shape(0), dim, (size - a.size) / a.step + 1);
    shape.push_back(a.size);
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<UnfoldAttrs>();
    int64_t dim = wrap_dim("unfold", a.dim, b.call.rank(0));
    Index at(b.i.begin(), b.i.end() - 1);
    at[size_t(dim)] = b.i[size_t(dim)] * a.step + b.i.back();
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<UnfoldAttrs>();
    return c.each([&] {
      int64_t dim = wrap_dim("unfold", a.dim, c[0].dim());
      Tensor windows = flatten(movedim(c.grad(), -1, dim + 1), dim, dim + 1);
      Shape extents{c.grad().size(dim), a.size};
      return index_add(zeros_like(c[0]), dim, strided_positions(extents, {a.step, 1}, 0, c[0].tensor()), windows);
    });
  }
  static constexpr auto on_complex = by_parts<>;
  SINTER_SAMPLES("x[7] | dim=0, size=3, step=2", "x[2, 20, 3] | dim=1, size=4, step=1",
                 "x[4, 5] | dim=-1, size=5, step=3")
};

struct AsStridedAttrs {
  IntList size, stride;
  int64_t storage_offset = 0;  // from the operand's first element
  SINTER_FIELDS(size, stride, storage_offset)
};

struct AsStrided : View {
  static constexpr auto name = "as_strided";
  using Attributes = AsStridedAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<AsStridedAttrs>();
    check(a.size.size() == a.stride.size(), "as_strided: sizes {} and strides {} differ in length", a.size, a.stride);
    checked_numel("as_strided", a.size);
    for (int64_t s : a.stride) check(s >= 0, "as_strided: a stride is negative: {}", a.stride);
    return like_input(call, Shape(std::span<const int64_t>(a.size)));
  }
  static bool alias(const OpCall& call, const IntList&, IntList& out_strides, int64_t& offset) {
    out_strides = call.as<AsStridedAttrs>().stride;
    offset = call.as<AsStridedAttrs>().storage_offset;
    return true;
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<AsStridedAttrs>();
    Dim position = a.storage_offset;
    for (size_t d = 0; d < a.size.size(); ++d) position += b.i[d] * a.stride[d];
    return b.load(0, unravel(position, b.call.shape(0)));
  }
  // Positions of the input's memory, however it is strided: accumulate there, then look again through its geometry.
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<AsStridedAttrs>();
    return c.each([&] {
      const Tensor& x = c[0].tensor();
      Tensor at = strided_positions(Shape(std::span<const int64_t>(a.size)), a.stride, a.storage_offset, x);
      Dim span = x.numel();
      if (!x.is_traced()) {
        int64_t low = std::min<int64_t>(a.storage_offset, 0);
        check(low == 0, "as_strided: no gradient for elements before the first of the input");
        span =
            std::max(strided_span(x.sizes().numbers(), x.strides()), a.storage_offset + strided_span(a.size, a.stride));
      }
      Tensor memory = index_add(zeros({span}, x.options()), 0, at, reshape(c.grad(), {-1}));
      return x.is_traced() ? view(memory, x.sizes()) : as_strided(memory, x.sizes().numbers(), x.strides());
    });
  }
  static TensorList on_complex(const ComplexCall& c) {
    AsStridedAttrs attrs = c.as<AsStridedAttrs>();
    for (auto& stride : attrs.stride) stride *= 2;
    attrs.size.push_back(2);
    attrs.stride.push_back(1);
    attrs.storage_offset *= 2;
    return {view_as_complex(call<AsStrided>({view_as_real(c[0])}, attrs))};
  }
  SINTER_SAMPLES("x[12] | size=[3, 4], stride=[4, 1]", "x[4, 6] | size=[3, 17], stride=[2, 1], storage_offset=1",
                 "x[10] | size=[4, 3], stride=[2, 1]")
};

}  // namespace

DiagonalRange DiagonalRange::of(const char* op, const Shape& shape, int64_t offset, int64_t dim1, int64_t dim2) {
  check(shape.rank() >= 2, "{}: {} is not a matrix or a stack of them", op, shape);
  DiagonalRange r;
  r.dim1 = wrap_dim(op, dim1, shape.rank());
  r.dim2 = wrap_dim(op, dim2, shape.rank());
  check(r.dim1 != r.dim2, "{}: dimensions {} and {} are the same", op, dim1, dim2);
  r.start1 = std::max<int64_t>(-offset, 0);
  r.start2 = std::max<int64_t>(offset, 0);
  r.length = max(min(shape[size_t(r.dim1)] - r.start1, shape[size_t(r.dim2)] - r.start2), 0);
  return r;
}

Tensor strided_positions(const Shape& sizes, const IntList& strides, int64_t offset, const Tensor& like) {
  Tensor at = full({}, offset, TensorOptions(kInt64).device(like.device()));
  for (size_t d = 0; d < sizes.size(); ++d) {
    Tensor along = arange_of_size(sizes[d], TensorOptions(kInt64).device(like.device())).mul(strides[d]);
    Shape shape(sizes.size(), Dim(1));
    shape[d] = sizes[d];
    at = at.add(view(along, shape));
  }
  return reshape(at, {-1});
}

int64_t strided_span(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

Tensor select(const TensorArg& x, int64_t dim, Dim index) { return call<Select>({x}, SelectAttrs{dim, index}); }

SliceRange SliceRange::of(const Dim& size, std::optional<Dim> start, std::optional<Dim> stop) {
  auto clamp = [&](Dim at) {
    if (at.same_as(0) || at.same_as(size)) return at;
    if (at < 0) at = at + size;
    return at < 0 ? Dim(0) : at < size ? at : size;
  };
  SliceRange r;
  r.start = start ? clamp(*start) : Dim(0);
  r.stop = stop ? clamp(*stop) : size;
  if (!r.start.same_as(0) && !r.stop.same_as(size) && r.stop < r.start) r.stop = r.start;
  if (r.stop.same_as(0)) r.start = 0;
  return r;
}

Tensor slice(const TensorArg& x, int64_t dim, std::optional<Dim> start, std::optional<Dim> stop, int64_t step) {
  UserPosition here(x.where());
  check(x.dim() > 0, "slice: a 0-d tensor has no dimension to slice");
  check(step != 0, "slice: step 0 goes nowhere");
  dim = wrap_dim("slice", dim, x.dim());
  Dim size = x.size(dim);
  if (step < 0) {
    // Position p of x is position size-1-p of its mirror image.
    auto mirrored = [&](const std::optional<Dim>& at) -> std::optional<Dim> {
      if (!at) return at;
      Dim p = *at < 0 ? *at + size : *at;
      return p < 0 ? size : p < size ? size - 1 - p : Dim(0);
    };
    return slice(flip(x, {dim}), dim, mirrored(start), mirrored(stop), -step);
  }
  auto r = SliceRange::of(size, start, stop);
  // A step beyond the end takes one element, whatever its size.
  if (size.is_number()) step = std::min(step, std::max<int64_t>(size.number(), 1));
  SliceAttrs attrs{dim, r.start, r.stop, step};
  if (r.stop.same_as(size)) attrs.end.reset();
  return call<SliceOp>({x}, attrs);
}
Tensor narrow(const TensorArg& x, int64_t dim, Dim start, Dim length) {
  UserPosition here(x.where());
  check(x.dim() > 0, "narrow: a 0-d tensor has no dimension to narrow");
  dim = wrap_dim("narrow", dim, x.dim());
  Dim size = x.size(dim);
  if (start < 0) start = start + size;
  check(start >= 0 && length >= 0 && start + length <= size,
        "narrow: {} elements from {} do not lie inside dimension {} of {}", length, start, dim, x.sizes());
  SliceAttrs attrs{dim, start, start + length, 1};
  if (attrs.end->same_as(size)) attrs.end.reset();
  return call<SliceOp>({x}, attrs);
}
Tensor diagonal(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return call<Diagonal>({x}, DiagonalAttrs{offset, dim1, dim2});
}
Tensor unfold(const TensorArg& x, int64_t dim, int64_t size, int64_t step) {
  return call<Unfold>({x}, UnfoldAttrs{dim, size, step});
}
Tensor as_strided(const TensorArg& x, const IntList& sizes, const IntList& strides, std::optional<int64_t> offset) {
  UserPosition here(x.where());
  check(sizes.size() == strides.size(), "as_strided: sizes {} and strides {} differ in length", sizes, strides);
  const Tensor& base = x.tensor();
  int64_t own = base.is_traced() ? 0 : base.storage_offset(), first = offset.value_or(own);
  Dim room = base.is_traced() ? base.numel() : Dim(int64_t(base.impl().buffer->bytes()) / item_size(base.dtype()));
  check(first >= 0 && first + strided_span(sizes, strides) <= room,
        "as_strided: sizes {} with strides {} from {} reach outside the {} elements of the memory", sizes, strides,
        first, room);
  return call<AsStrided>({x}, AsStridedAttrs{sizes, strides, first - own});
}

TensorList split(const TensorArg& x, Dim size, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0, "split: a 0-d tensor cannot be split");
  dim = wrap_dim("split", dim, x.dim());
  Dim total = x.size(dim);
  check(size > 0 || (size == 0 && total == 0), "split: pieces of size {} do not cover dimension {} of {}", size, dim,
        x.sizes());
  TensorList out;
  if (total == 0) return {alias(x)};
  // The number of pieces is a number of C++ values, so it cannot stay symbolic.
  int64_t pieces = Dim((total + size - 1) / size).to_int(x.where());
  for (int64_t p = 0; p < pieces; ++p) {
    Dim start = size * p;
    out.push_back(narrow(x, dim, start, p + 1 < pieces ? size : total - start));
  }
  return out;
}
TensorList split_with_sizes(const TensorArg& x, const Shape& sizes, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0, "split_with_sizes: a 0-d tensor cannot be split");
  dim = wrap_dim("split_with_sizes", dim, x.dim());
  TensorList out;
  Dim start = 0, sum = 0;
  for (auto& s : sizes) sum += s;
  check(sum == x.size(dim), "split_with_sizes: sizes {} do not add up to dimension {} of {}", sizes, dim, x.sizes());
  for (auto& s : sizes) {
    out.push_back(narrow(x, dim, start, s));
    start += s;
  }
  return out;
}
TensorList chunk(const TensorArg& x, int64_t chunks, int64_t dim) {
  UserPosition here(x.where());
  check(chunks > 0, "chunk: {} is not a number of pieces", chunks);
  check(x.dim() > 0, "chunk: a 0-d tensor cannot be split");
  dim = wrap_dim("chunk", dim, x.dim());
  Dim total = x.size(dim);
  if (total == 0) return TensorList(size_t(chunks), alias(x));
  return split(x, (total + (chunks - 1)) / chunks, dim);
}
// Halves of halves: the gradient of a part is as large as what it was taken from, so that positions taken one by one would
// cost the square of their number.
static void take_apart(const Tensor& x, int64_t dim, int64_t size, TensorList& out) {
  if (size == 1) return out.push_back(x.select(dim, 0));
  take_apart(x.slice(dim, 0, size / 2), dim, size / 2, out);
  take_apart(x.slice(dim, size / 2), dim, size - size / 2, out);
}

TensorList unbind(const TensorArg& x, int64_t dim) {
  UserPosition here(x.where());
  check(x.dim() > 0, "unbind: a 0-d tensor has no dimension to take apart");
  dim = wrap_dim("unbind", dim, x.dim());
  int64_t size = x.size(dim).to_int(x.where());
  TensorList out;
  if (size > 0 && x.tensor().requires_grad())
    take_apart(x.tensor(), dim, size, out);
  else
    for (int64_t i = 0; i < size; ++i) out.push_back(select(x, dim, i));
  return out;
}

Tensor Tensor::operator[](const ItemIndex& index) const { return sinter::select({*this, index.where}, 0, index.value); }

OpFamily slice_ops() {
  static constexpr const Op* kOps[] = {&op_of<Select>, &op_of<SliceOp>, &op_of<Diagonal>, &op_of<Unfold>,
                                       &op_of<AsStrided>};
  return kOps;
}

}  // namespace sinter
