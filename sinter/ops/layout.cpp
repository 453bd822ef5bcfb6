#include "sinter/ops/layout.h"

#include <algorithm>

#include "sinter/ops/attributes.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pad.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/reshape.h"
#include "sinter/ops/view.h"
#include "sinter/ops/view_path.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

std::vector<Type> like_input(const OpCall& call, const Shape& shape) {
  return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
}

struct Cat : Loop {
  static constexpr auto name = "cat";
  static constexpr auto on_complex = by_parts<>;
  static constexpr int inputs = -1;
  using Attributes = CatAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(!call.inputs.empty(), "cat: needs at least one tensor");
    int64_t rank = call.rank(0), dim = wrap_dim("cat", call.as<CatAttrs>().dim, rank);
    check(rank > 0, "cat: 0-d tensors cannot be joined; stack them instead");
    Shape shape = call.shape(0);
    for (int j = 1; j < int(call.inputs.size()); ++j) {
      auto& other = call.shape(j);
      bool fits = other.rank() == rank;
      for (int64_t d = 0; fits && d < rank; ++d) fits = d == dim || other[size_t(d)] == shape[size_t(d)];
      check(fits, "cat: tensor {} has shape {}, which does not join {} along dimension {}: all other sizes must agree",
            j, other, call.shape(0), dim);
      check(call.inputs[size_t(j)].dtype == call.inputs[0].dtype, "cat: dtypes {} and {} differ", call.inputs[0].dtype,
            call.inputs[size_t(j)].dtype);
      check(call.inputs[size_t(j)].device == call.inputs[0].device, "cat: tensors are on {} and {}",
            call.inputs[0].device, call.inputs[size_t(j)].device);
      shape[size_t(dim)] += other[size_t(dim)];
    }
    return like_input(call, shape);
  }
  // The last tensor is the rest when no earlier one holds the coordinate.
  static Elem element(ElementBuilder& b) {
    int64_t dim = wrap_dim("cat", b.call.as<CatAttrs>().dim, b.call.rank(0));
    int count = int(b.call.inputs.size());
    std::vector<Dim> start(size_t(count), Dim(0));
    for (int j = 1; j < count; ++j) start[size_t(j)] = start[size_t(j) - 1] + b.call.shape(j - 1)[size_t(dim)];
    auto inside = [&](int j) {
      return Conditions{{b.i[size_t(dim)] - start[size_t(j)], b.call.shape(j)[size_t(dim)], 1}};
    };
    auto piece = [&](int j) {
      return b.load_if(inside(j), j, replaced(b.i, dim, b.i[size_t(dim)] - start[size_t(j)]), 0);
    };
    Elem out = piece(count - 1);
    for (int j = count - 1; j-- > 0;) out = b.select(inside(j), piece(j), out);
    return out;
  }
  static TensorList grad(const GradCall& c) {
    int64_t dim = wrap_dim("cat", c.as<CatAttrs>().dim, c[0].dim());
    TensorList out(c.inputs.size());
    Dim start = 0;
    for (int j = 0; j < int(c.inputs.size()); ++j) {
      if (c.needs(j)) out[size_t(j)] = narrow(c.grad(), dim, start, c[j].size(dim));
      start += c[j].size(dim);
    }
    return out;
  }
  SINTER_SAMPLES("x[2, 3], x[2, 4] | dim=1", "x[3], x[20], x[1] |", "x[2, 17, 3], x[2, 5, 3], x[2, 0, 3] | dim=-2",
                 "x[4, 2] |", "x[0], x[0] |")
};

struct RepeatAttrs {
  Shape repeats;
  SINTER_FIELDS(repeats)
};

struct Repeat : Loop {
  static constexpr auto name = "repeat";
  static constexpr auto on_complex = by_parts<>;
  using Attributes = RepeatAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& repeats = call.as<RepeatAttrs>().repeats;
    check(repeats.rank() >= call.rank(0), "repeat: {} has more dimensions than there are repeats: {}", call.shape(0),
          repeats);
    Shape shape = repeats;
    for (auto& r : repeats) check(possibly_le(0, r), "repeat: {} is not a number of repeats", r);
    size_t added = repeats.size() - call.shape(0).size();
    for (size_t d = added; d < shape.size(); ++d) shape[d] = repeats[d] * call.shape(0)[d - added];
    return like_input(call, shape);
  }
  static Elem element(ElementBuilder& b) {
    auto& from = b.call.shape(0);
    auto& repeats = b.call.as<RepeatAttrs>().repeats;
    size_t added = repeats.size() - from.size();
    Index at;
    for (size_t d = 0; d < from.size(); ++d) {
      const Dim& i = b.i[d + added];
      at.push_back(from[d].same_as(0) ? Dim(0) : repeats[d + added].same_as(1) ? i : i % from[d]);
    }
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto& repeats = c.as<RepeatAttrs>().repeats;
    return c.each([&] {
      size_t added = repeats.size() - size_t(c[0].dim());
      Shape apart;
      IntList summed;
      for (size_t d = 0; d < repeats.size(); ++d) {
        summed.push_back(int64_t(apart.size()));
        apart.push_back(repeats[d]);
        if (d >= added) apart.push_back(c[0].size(int64_t(d - added)));
      }
      return summed.empty() ? c.grad() : reshape(c.grad(), apart).sum(summed);
    });
  }
  SINTER_SAMPLES("x[2, 3] | repeats=[2, 2]", "x[3] | repeats=[2, 1, 7]", "x[5, 1] | repeats=[1, 20]",
                 "x[2] | repeats=[0]", "x[] | repeats=[3]", "x[0, 2] | repeats=[2, 2]")
};

struct FlipAttrs {
  IntList dims;
  SINTER_FIELDS(dims)
};

struct Flip : Loop {
  static constexpr auto name = "flip";
  static constexpr auto on_complex = by_parts<>;
  using Attributes = FlipAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    wrap_dims("flip", call.as<FlipAttrs>().dims, call.rank(0));
    return like_input(call, call.shape(0));
  }
  static Elem element(ElementBuilder& b) {
    Index at = b.i;
    for (int64_t d : wrap_dims("flip", b.call.as<FlipAttrs>().dims, b.call.rank(0)))
      if (d < b.call.rank(0)) at[size_t(d)] = b.call.shape(0)[size_t(d)] - 1 - b.i[size_t(d)];
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return flip(c.grad(), c.as<FlipAttrs>().dims); });
  }
  SINTER_SAMPLES("x[3, 20] | dims=[1]", "x[2, 3, 4] | dims=[0, -1]", "x[5] |", "x[] | dims=[0]", "x[0, 2] | dims=[0]")
};

struct RollAttrs {
  Shape shifts;
  IntList dims;
  SINTER_FIELDS(shifts, dims)
};

struct Roll : Loop {
  static constexpr auto name = "roll";
  static constexpr auto on_complex = by_parts<>;
  using Attributes = RollAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<RollAttrs>();
    check(a.shifts.size() == a.dims.size(), "roll: shifts {} and dimensions {} differ in number", a.shifts, a.dims);
    check(call.rank(0) > 0 || a.dims.empty(), "roll: a 0-d tensor has no dimension to roll");
    for (int64_t d : a.dims) wrap_dim("roll", d, call.rank(0));
    return like_input(call, call.shape(0));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<RollAttrs>();
    Index at = b.i;
    for (size_t j = 0; j < a.dims.size(); ++j) {
      size_t d = size_t(wrap_dim("roll", a.dims[j], b.call.rank(0)));
      const Dim& size = b.call.shape(0)[d];
      // Never negative: the shift is taken modulo the size first.
      if (!size.same_as(0)) at[d] = (at[d] + size - a.shifts[j] % size) % size;
    }
    return b.load(0, at);
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<RollAttrs>();
    Shape back;
    for (auto& s : a.shifts) back.push_back(-s);
    return c.each([&] { return roll(c.grad(), back, a.dims); });
  }
  SINTER_SAMPLES("x[5] | shifts=[2], dims=[0]", "x[3, 20] | shifts=[-1, 7], dims=[0, -1]",
                 "x[4] | shifts=[9], dims=[0]", "x[0] | shifts=[1], dims=[0]", "x[4] | shifts=[1, 2], dims=[0, 0]")
};

// --- a piece of x replaced. Operand 1 is the piece.

void check_piece(const OpCall& call, const Shape& expected) {
  auto& source = call.shape(1);
  bool fits = source.rank() == expected.rank();
  for (size_t d = 0; fits && d < source.size(); ++d) fits = source[d] == expected[d];
  check(fits, "{}: the source has shape {}, the place for it {}", call.name(), source, expected);
  check(call.inputs[0].dtype == call.inputs[1].dtype, "{}: dtypes {} and {} differ", call.name(), call.inputs[0].dtype,
        call.inputs[1].dtype);
}

struct SelectScatterAttrs {
  int64_t dim = 0;
  Dim index;  // not negative
  SINTER_FIELDS(dim, index)
};

struct SelectScatter : Loop {
  static constexpr auto name = "select_scatter";
  static constexpr auto on_complex = by_parts<>;
  static constexpr int inputs = 2;
  using Attributes = SelectScatterAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<SelectScatterAttrs>();
    check(call.rank(0) > 0, "select_scatter: a 0-d tensor has no dimension to select from");
    int64_t dim = wrap_dim("select_scatter", a.dim, call.rank(0));
    check(possibly_le(0, a.index) && possibly_le(a.index + 1, call.shape(0)[size_t(dim)]),
          "select_scatter: index {} is out of range for dimension {} of {}", a.index, dim, call.shape(0));
    check_piece(call, removed(call.shape(0), dim));
    return like_input(call, call.shape(0));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<SelectScatterAttrs>();
    int64_t dim = wrap_dim("select_scatter", a.dim, b.call.rank(0));
    Conditions inside{{b.i[size_t(dim)] - a.index, 1, 1}};
    return b.select(inside, b.load_if(inside, 1, removed(b.i, dim), 0), b.load(0, b.i));
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<SelectScatterAttrs>();
    return c.each([&] { return select_scatter(c.grad(), zeros_like(c[1]), a.dim, a.index); },
                  [&] { return select(c.grad(), a.dim, a.index); });
  }
  SINTER_SAMPLES("x[3, 4], x[4] | dim=0, index=1", "x[2, 20], x[2] | dim=-1, index=17", "x[5], x[] | index=4")
};

struct SliceScatterAttrs {
  int64_t dim = 0;
  Dim start;
  std::optional<Dim> end;  // none: the size
  int64_t step = 1;
  SINTER_FIELDS(dim, start, end, step)
};

struct SliceScatter : Loop {
  static constexpr auto name = "slice_scatter";
  static constexpr auto on_complex = by_parts<>;
  static constexpr int inputs = 2;
  using Attributes = SliceScatterAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<SliceScatterAttrs>();
    check(call.rank(0) > 0, "slice_scatter: a 0-d tensor has no dimension to slice");
    check(a.step >= 1, "slice_scatter: step {} is not positive", a.step);
    int64_t dim = wrap_dim("slice_scatter", a.dim, call.rank(0));
    Dim end = a.end.value_or(call.shape(0)[size_t(dim)]);
    check(possibly_le(0, a.start) && possibly_le(a.start, end) && possibly_le(end, call.shape(0)[size_t(dim)]),
          "slice_scatter: {} to {} is not a range of dimension {} of {}", a.start, end, dim, call.shape(0));
    check_piece(call, replaced(call.shape(0), dim, (end - a.start + (a.step - 1)) / a.step));
    return like_input(call, call.shape(0));
  }
  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<SliceScatterAttrs>();
    int64_t dim = wrap_dim("slice_scatter", a.dim, b.call.rank(0));
    Dim from_start = b.i[size_t(dim)] - a.start;
    Conditions inside{{from_start, a.end.value_or(b.call.shape(0)[size_t(dim)]) - a.start, a.step}};
    return b.select(inside, b.load_if(inside, 1, replaced(b.i, dim, from_start / a.step), 0), b.load(0, b.i));
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<SliceScatterAttrs>();
    return c.each([&] { return slice_scatter(c.grad(), zeros_like(c[1]), a.dim, a.start, a.end, a.step); },
                  [&] { return slice(c.grad(), a.dim, a.start, a.end, a.step); });
  }
  SINTER_SAMPLES("x[5, 4], x[3, 4] | start=1, end=4", "x[3, 37], x[3, 12] | dim=-1, start=2, step=3",
                 "x[8], x[0] | start=8", "x[2, 20], x[2, 9] | dim=1, start=1, end=19, step=2")
};

struct DiagonalScatterAttrs {
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  SINTER_FIELDS(offset, dim1, dim2)
};

struct DiagonalScatter : Loop {
  static constexpr auto name = "diagonal_scatter";
  static constexpr auto on_complex = by_parts<>;
  static constexpr int inputs = 2;
  using Attributes = DiagonalScatterAttrs;
  static DiagonalRange range(const OpCall& call) {
    auto& a = call.as<DiagonalScatterAttrs>();
    return DiagonalRange::of("diagonal_scatter", call.shape(0), a.offset, a.dim1, a.dim2);
  }
  static std::vector<Type> infer(const OpCall& call) {
    auto d = range(call);
    Shape expected = removed(removed(call.shape(0), std::max(d.dim1, d.dim2)), std::min(d.dim1, d.dim2));
    expected.push_back(d.length);
    check_piece(call, expected);
    return like_input(call, call.shape(0));
  }
  static Elem element(ElementBuilder& b) {
    auto d = range(b.call);
    Dim along = b.i[size_t(d.dim1)] - d.start1;
    Conditions inside{{along - (b.i[size_t(d.dim2)] - d.start2), 1, 1}, {along, d.length, 1}};
    Index at = removed(removed(b.i, std::max(d.dim1, d.dim2)), std::min(d.dim1, d.dim2));
    at.push_back(along);
    return b.select(inside, b.load_if(inside, 1, at, 0), b.load(0, b.i));
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<DiagonalScatterAttrs>();
    return c.each([&] { return diagonal_scatter(c.grad(), zeros_like(c[1]), a.offset, a.dim1, a.dim2); },
                  [&] { return diagonal(c.grad(), a.offset, a.dim1, a.dim2); });
  }
  SINTER_SAMPLES("x[3, 3], x[3] |", "x[4, 20], x[4] | offset=1", "x[20, 18], x[18] | offset=-2",
                 "x[2, 3, 4], x[3, 1] | offset=1, dim1=-1, dim2=0")
};

// The source as x's dtype.
Tensor cast_like(const TensorArg& source, const TensorArg& x) {
  return source.is_scalar() ? full({}, source.scalar(), x.tensor().options())
                            : source.tensor().to(x.dtype(), source.where());
}

}  // namespace

Tensor cat(const TensorList& tensors, int64_t dim, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "cat: needs at least one tensor");
  std::vector<TensorArg> pieces;
  // An empty vector goes with tensors of any rank, as in PyTorch; among them its size may be for the data to decide.
  bool mixed = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.dim() != 1; });
  auto skipped = [&](const Tensor& t) { return t.dim() == 1 && (mixed ? t.size(0) == 0 : t.size(0).same_as(0)); };
  DType dtype = tensors[0].dtype();
  for (auto& t : tensors) {
    dtype = promote_types(dtype, t.dtype());
    if (!skipped(t)) pieces.emplace_back(t, where);
  }
  if (pieces.empty()) pieces.emplace_back(tensors[0], where);
  for (auto& p : pieces)
    if (p.dtype() != dtype) p = TensorArg(p.tensor().to(dtype), where);
  // A kernel is given an address, a size and strides of each piece: of many, some at a time.
  constexpr size_t kMostPieces = 32;
  while (pieces.size() > kMostPieces) {
    std::vector<TensorArg> joined;
    for (size_t first = 0; first < pieces.size(); first += kMostPieces) {
      std::span some = std::span(pieces).subspan(first, std::min(kMostPieces, pieces.size() - first));
      joined.emplace_back(call_op(op_of<Cat>, some, CatAttrs{dim}, where), where);
    }
    pieces = std::move(joined);
  }
  return call_op(op_of<Cat>, pieces, CatAttrs{dim}, where);
}
Tensor stack(const TensorList& tensors, int64_t dim, Where where) {
  UserPosition here(where);
  check(!tensors.empty(), "stack: needs at least one tensor");
  dim = wrap_dim("stack", dim, tensors[0].dim() + 1);
  TensorList pieces;
  for (auto& t : tensors) {
    bool fits = t.dim() == tensors[0].dim();
    for (int64_t d = 0; fits && d < t.dim(); ++d) fits = t.size(d) == tensors[0].size(d);
    check(fits, "stack: shapes {} and {} differ", tensors[0].sizes(), t.sizes());
    pieces.push_back(t.unsqueeze(dim));
  }
  return cat(pieces, dim, where);
}

Tensor repeat(const TensorArg& x, const Shape& repeats) { return call<Repeat>({x}, RepeatAttrs{repeats}); }
Tensor tile(const TensorArg& x, const Shape& repeats) {
  Shape padded = repeats;
  while (padded.rank() < x.dim()) padded = inserted(padded, 0, 1);
  return repeat(x, padded);
}
Tensor repeat_interleave(const TensorArg& x, Dim repeats, std::optional<int64_t> dim) {
  UserPosition here(x.where());
  Tensor from = dim ? x.tensor() : flatten(x);
  check(from.dim() > 0, "repeat_interleave: a 0-d tensor has no dimension to repeat along");
  int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), from.dim());
  check(repeats >= 0, "repeat_interleave: the number of repeats, {}, is negative", repeats);
  Shape apart = inserted(from.sizes(), d + 1, repeats);
  // Memory of its own, also where nothing is repeated.
  return flatten(expand(unsqueeze(from, d + 1), apart).clone(MemoryFormat::kContiguous), d, d + 1);
}
Tensor repeat_interleave(const TensorArg& x, const Tensor& repeats, std::optional<int64_t> dim) {
  UserPosition here(x.where());
  Tensor from = dim ? x.tensor() : flatten(x);
  check(from.dim() > 0, "repeat_interleave: a 0-d tensor has no dimension to repeat along");
  int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), from.dim());
  check(!is_floating(repeats.dtype()) && repeats.dim() <= 1,
        "repeat_interleave: repeats must be a vector of integers, not {} {}", repeats.dtype(), repeats.sizes());
  auto counts = repeats.to_vector<int64_t>();
  int64_t size = from.size(d).to_int(x.where());
  if (counts.size() == 1) counts.resize(size_t(size), counts[0]);
  check(int64_t(counts.size()) == size, "repeat_interleave: {} repeats for a dimension of size {} of {}",
        int64_t(counts.size()), size, from.sizes());
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < size; ++i) {
    check(counts[size_t(i)] >= 0, "repeat_interleave: repeats are not negative, but one is {}", counts[size_t(i)]);
    positions.insert(positions.end(), size_t(counts[size_t(i)]), i);
  }
  return index_select(from, d, from_data(positions, {int64_t(positions.size())}).to(from.device()));
}

Tensor flip(const TensorArg& x, const IntList& dims) { return call<Flip>({x}, FlipAttrs{dims}); }
Tensor roll(const TensorArg& x, const Shape& shifts, const IntList& dims) {
  UserPosition here(x.where());
  if (!dims.empty()) return call<Roll>({x}, RollAttrs{shifts, dims});
  check(shifts.size() == 1, "roll: {} shifts, but no dimensions are named", int64_t(shifts.size()));
  return reshape(call<Roll>({flatten(x)}, RollAttrs{shifts, {0}}), x.sizes());
}
Tensor rot90(const TensorArg& x, int64_t k, const IntList& dims) {
  UserPosition here(x.where());
  check(dims.size() == 2, "rot90: turns in a plane of two dimensions, not {}", dims);
  auto plane = wrap_dims("rot90", dims, x.dim());
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose(flip(x, {plane[1]}), plane[0], plane[1]);
    case 2:
      return flip(x, plane);
    case 3:
      return flip(transpose(x, plane[0], plane[1]), {plane[1]});
    default:
      return clone(x);
  }
}

Tensor select_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, Dim index) {
  UserPosition here(x.where());
  dim = wrap_dim("select_scatter", dim, x.dim());
  if (x.dim() > 0 && index < 0) index = index + x.size(dim);
  return call<SelectScatter>({x, cast_like(source, x)}, SelectScatterAttrs{dim, index});
}
Tensor slice_scatter(const TensorArg& x, const TensorArg& source, int64_t dim, std::optional<Dim> start,
                     std::optional<Dim> stop, int64_t step) {
  UserPosition here(x.where());
  check(x.dim() > 0, "slice_scatter: a 0-d tensor has no dimension to slice");
  dim = wrap_dim("slice_scatter", dim, x.dim());
  Dim size = x.size(dim);
  auto r = SliceRange::of(size, start, stop);
  SliceScatterAttrs attrs{dim, r.start, r.stop, step};
  if (r.stop.same_as(size)) attrs.end.reset();
  return call<SliceScatter>({x, cast_like(source, x)}, attrs);
}
Tensor diagonal_scatter(const TensorArg& x, const TensorArg& source, int64_t offset, int64_t dim1, int64_t dim2) {
  UserPosition here(x.where());
  return call<DiagonalScatter>({x, cast_like(source, x)}, DiagonalScatterAttrs{offset, dim1, dim2});
}
Tensor as_strided_scatter(const TensorArg& x, const TensorArg& source, const IntList& sizes, const IntList& strides,
                          int64_t offset) {
  UserPosition here(x.where());
  Shape shape((std::span<const int64_t>(sizes)));
  Tensor at = strided_positions(shape, strides, offset, x.tensor());
  Tensor values = reshape(expand(cast_like(source, x), shape), {-1});
  return reshape(index_copy(reshape(x, {-1}), 0, at, values), x.sizes());
}

// --- memory formats

namespace {

const Op& clone_op() {
  static const Op* op = find_op("clone");
  return *op;
}

}  // namespace

std::optional<IntList> strides_like(const char* function, const Tensor& x, MemoryFormat format) {
  const TensorImpl& body = x.impl();
  if ((body.traced && !body.traced->has_layout()) ||
      (body.contiguous && (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve)))
    return std::nullopt;
  return format == MemoryFormat::kPreserve ? preserved_strides(body.sizes, body.strides)
                                           : format_strides(function, body.sizes, format);
}

Tensor laid_like(const char* function, const Tensor& x, MemoryFormat format, Tensor made) {
  auto strides = strides_like(function, x, format);
  if (!strides) return made;
  if (auto* tracer = Tracer::current()) {
    if (made.is_traced()) tracer->lay_out(made, *strides);
    return made;
  }
  Tensor out = empty_strided(made.sizes(), *strides, made.options());
  return out.copy_(made);
}

Tensor clone(const TensorArg& x, MemoryFormat format) {
  UserPosition here(x.where());
  auto plainly = [&] { return call_op(clone_op(), {&x, 1}, {}, x.where()); };
  if (x.is_scalar() || !x.tensor().defined()) return plainly();
  auto strides = strides_like("clone", x.tensor(), format);
  if (!strides) return plainly();
  if (auto* tracer = Tracer::current()) {
    Tensor out = plainly();
    tracer->lay_out(out, *strides);
    return out;
  }
  Tensor out = empty_strided(x.sizes(), *strides, x.tensor().options());
  call_op_into(clone_op(), {&x, 1}, {}, out, x.where());
  return out;
}
Tensor Tensor::contiguous(MemoryFormat format, Where where) const {
  if (impl("contiguous", where).traced && !impl_->traced->has_layout()) return *this;
  if (auto* program = ProgramTracer::current(); program && is_traced()) program->layout_matters(*this);
  if (format == MemoryFormat::kPreserve || is_contiguous(format)) return *this;
  return clone(format, where);
}
Tensor Tensor::to(MemoryFormat format, Where where) const { return contiguous(format, where); }

OpFamily layout_ops() {
  static const auto all = [] {
    std::vector<const Op*> ops{&op_of<Cat>,           &op_of<Repeat>,       &op_of<Flip>,           &op_of<Roll>,
                               &op_of<SelectScatter>, &op_of<SliceScatter>, &op_of<DiagonalScatter>,
                               &write_op()};
    ops.insert(ops.end(), pad_ops().begin(), pad_ops().end());
    return ops;
  }();
  return all;
}

}  // namespace sinter
