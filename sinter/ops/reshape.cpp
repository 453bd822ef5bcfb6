// The op `view`: the same elements in row-major order under other sizes.
#include "sinter/ops/reshape.h"

#include "sinter/ops/attributes.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/define.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

// The target with a size of -1 worked out.
Shape target_shape(const Shape& from, const Shape& size) {
  Shape out = size;
  Dim known = 1;
  int64_t open = -1;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d].same_as(-1)) {
      check(open < 0, "view: only one size of {} may be -1", size);
      open = int64_t(d);
      continue;
    }
    check(!size[d].is_number() || size[d].number() >= 0, "view: {} is not a shape", size);
    known = known * size[d];
  }
  Dim numel = from.numel();
  if (open >= 0) {
    check(!known.same_as(0), "view: the size -1 of {} could be anything, for the others hold no element", size);
    out[size_t(open)] = numel / known;
    known = known * out[size_t(open)];
  }
  check(known == numel, "view: {} has {} elements and cannot be seen as {}", from, numel, size);
  return out;
}

// Strides of `to` over memory of `from` and `strides`; false when the elements would have to move.
bool view_strides(std::span<const int64_t> from, std::span<const int64_t> strides, std::span<const int64_t> to,
                  IntList& out) {
  out = contiguous_strides(to);
  IntList sizes, steps;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 0) return true;
    if (from[d] == 1) continue;
    sizes.push_back(from[d]);
    steps.push_back(strides[d]);
  }
  size_t e = to.size();
  for (size_t d = sizes.size(); d > 0;) {
    // A run of dimensions that lie one inside the other in memory must be covered by whole dimensions of `to`.
    int64_t step = steps[d - 1], run = sizes[d - 1];
    for (--d; d > 0 && steps[d - 1] == run * step; --d) run *= sizes[d - 1];
    int64_t covered = 1;
    while (e > 0 && (covered < run || to[e - 1] == 1)) {
      out[e - 1] = step * covered;
      covered *= to[--e];
    }
    if (covered != run) return false;
  }
  return true;
}

struct ViewOp : View {
  static constexpr auto name = "view";
  using Attributes = ViewAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{call.inputs[0].dtype, target_shape(call.shape(0), call.as<ViewAttrs>().size), call.inputs[0].device}};
  }
  static bool alias(const OpCall& call, const IntList& strides, IntList& out_strides, int64_t& offset) {
    offset = 0;
    auto to = target_shape(call.shape(0), call.as<ViewAttrs>().size).numbers();
    return view_strides(call.shape(0).numbers(), strides, to, out_strides);
  }
  // Runs of dimensions with equal products map to each other alone, which keeps the index expressions small.
  static Elem element(ElementBuilder& b) {
    auto& from = b.call.shape(0);
    Shape to = target_shape_unasked(b.call);
    Index at(from.size());
    size_t f = 0, t = 0;
    while (f < from.size()) {
      size_t f0 = f, t0 = t;
      Dim source = from[f++], target = t < to.size() ? to[t++] : Dim(1);
      while (!source.same_as(target)) {
        if (t < to.size() && (f == from.size() || (smaller(target, source)))) {
          target = target * to[t++];
        } else if (f < from.size()) {
          source = source * from[f++];
        } else {
          break;
        }
      }
      if (f == from.size()) t = to.size();
      Dim position = 0;
      for (size_t d = t0; d < t; ++d) position = to[d].same_as(1) ? position : position * to[d] + b.i[d];
      Shape run(from.begin() + f0, from.begin() + f);
      Index coordinates = unravel(position, run);
      std::copy(coordinates.begin(), coordinates.end(), at.begin() + f0);
    }
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return reshape(c.grad(), c[0].sizes()); });
  }
  static TensorList on_complex(const ComplexCall& c) {
    Shape size = target_shape(c[0].sizes(), c.as<ViewAttrs>().size);
    size.push_back(2);
    return {view_as_complex(call<ViewOp>({view_as_real(c[0])}, ViewAttrs{size}))};
  }
  SINTER_SAMPLES("x[3, 4] | size=[12]", "x[12] | size=[3, -1]", "x[6, 4] | size=[3, 8]", "x[2, 3, 4] | size=[4, 1, 6]",
                 "x[] | size=[1, 1]", "x[1] | size=[]", "x[0, 3] | size=[3, 0, 2]", "x[5, 2, 20] | size=[5, 40]",
                 "x[2, 1, 3] | size=[1, 6]")

 private:
  // Which side to extend first; symbolic products that do not compare are extended on the source side.
  static bool smaller(const Dim& a, const Dim& b) {
    if (a.is_number()) return !b.is_number() || a.number() < b.number();
    return !b.is_number() && (b % a).same_as(0);
  }
  static Shape target_shape_unasked(const OpCall& call) {
    Shape out = call.as<ViewAttrs>().size;
    Dim known = 1;
    for (auto& d : out) known = d.same_as(-1) ? known : known * d;
    for (auto& d : out)
      if (d.same_as(-1)) d = call.shape(0).numel() / known;
    return out;
  }
};

bool needs_copy(const Tensor& x, const Shape& shape) {
  if (auto* program = ProgramTracer::current(); program && x.is_traced()) program->layout_matters(x);
  if (x.is_contiguous()) return false;
  // Under capture by the present sizes: their relation to the strides is part of the layout that is guarded. How many
  // dimensions stay as they are at either end depends on the sizes alone, and so is asked.
  const Shape own = x.sizes(), wanted = target_shape(own, shape);
  IntList target, unused;
  for (auto& d : wanted) target.push_back(d.is_number() ? d.number() : *Tracer::current()->hint(d));
  size_t common = std::min(own.size(), wanted.size()), same = 0;
  while (same < common && wanted[same] == own[same]) ++same;
  for (same = 0; same < common && wanted[wanted.size() - 1 - same] == own[own.size() - 1 - same];) ++same;
  return !view_strides(x.impl().sizes, x.impl().strides, target, unused);
}

}  // namespace

const Op& reshape_op() { return op_of<ViewOp>; }

Index unravel(const Dim& position, const Shape& shape) {
  Index at(shape.size());
  // The outermost coordinate needs no remainder: the position lies inside the shape.
  size_t outermost = 0;
  while (outermost < shape.size() && shape[outermost].same_as(1)) ++outermost;
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d].same_as(0)) return Index(shape.size());
    if (shape[d].same_as(1)) continue;
    Dim quotient = position / stride;
    at[d] = d == outermost ? quotient : quotient % shape[d];
    stride = stride * shape[d];
  }
  return at;
}

Tensor view(const TensorArg& x, const Shape& shape) { return call<ViewOp>({x}, ViewAttrs{shape}); }
Tensor view(const TensorArg& x, GivenDType given) {
  const DType dtype = given.value;
  UserPosition here(x.where());
  if (x.dtype() == dtype) return alias(x);
  check(!Tracer::current(), "view: the bytes of a tensor cannot be taken for {} inside a compiled function: do it before, or in "
        "a function kept out by compiler::disable()", dtype);
  const TensorImpl& body = x.tensor().impl();
  int64_t from = item_size(body.dtype), to = item_size(dtype);
  IntList sizes = body.sizes, strides = body.strides;
  int64_t offset = body.offset * from / to;
  if (from != to) {
    check(!sizes.empty(), "view: a 0-d tensor of {} cannot be taken for {}, whose elements have another size", body.dtype, dtype);
    bool fits = strides.back() == 1 && sizes.back() * from % to == 0 && body.offset * from % to == 0;
    for (size_t d = 0; d + 1 < sizes.size(); ++d) fits = fits && strides[d] * from % to == 0;
    check(fits, "view: a tensor of shape {} and strides {} cannot be taken for {}: its last dimension must lie together and be a "
          "multiple of {} bytes; call contiguous() first", sizes, strides, dtype, to);
    sizes.back() = sizes.back() * from / to;
    for (size_t d = 0; d + 1 < sizes.size(); ++d) strides[d] = strides[d] * from / to;
  }
  Tensor out = make_view(x.tensor(), sizes, strides, offset);
  out.impl().dtype = dtype;
  return out;
}
Tensor reshape(const TensorArg& x, const Shape& shape) {
  UserPosition here(x.where());
  if (!needs_copy(x.tensor(), shape)) return call<ViewOp>({x}, ViewAttrs{shape});
  return call<ViewOp>({x.tensor().contiguous()}, ViewAttrs{shape});
}
Tensor view_as(const TensorArg& x, const TensorArg& other) {
  UserPosition here(x.where());
  return view(x, other.sizes());
}
Tensor reshape_as(const TensorArg& x, const TensorArg& other) {
  UserPosition here(x.where());
  return reshape(x, other.sizes());
}
Tensor flatten(const TensorArg& x, int64_t start, int64_t end) {
  UserPosition here(x.where());
  start = wrap_dim("flatten", start, x.dim());
  end = wrap_dim("flatten", end, x.dim());
  check(start <= end, "flatten: dimension {} comes after dimension {}", start, end);
  if (x.dim() == 0) return reshape(x, {1});
  Shape shape;
  Dim merged = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d >= start && d <= end)
      merged = merged * x.size(d);
    else
      shape.push_back(x.size(d));
    if (d == end) shape.push_back(merged);
  }
  return reshape(x, shape);
}
Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes) {
  UserPosition here(x.where());
  check(x.dim() > 0, "unflatten: a 0-d tensor has no dimension to split");
  dim = wrap_dim("unflatten", dim, x.dim());
  // Only the one dimension counts for a size of -1: the others may be 0.
  Shape inner = target_shape({x.size(dim)}, sizes), shape;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) shape.push_back(x.size(d));
    if (d == dim)
      for (auto& s : inner) shape.push_back(s);
  }
  return reshape(x, shape);
}

}  // namespace sinter
