// x.index({…}) and x.index_put_({…}, v): basic indices become views, index tensors the ops `index` and `index_put`.
#include <functional>

#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/indexing_parts.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// How index tensors, operands first…last, meet the dimensions of x. Their common shape takes the place of the indexed
// dimensions when these are adjacent, and comes first when not.
struct Placement {
  IntList dims;
  int first;             // the first operand that is an index
  Shape indices;         // common shape of the index tensors
  int64_t position = 0;  // where it stands in the result
  Shape result;

  Placement(const OpCall& call, const IntList& indexed, int first) : dims(indexed), first(first) {
    for (int j = 0; j < int(dims.size()); ++j) merge(call.shape(first + j));
    bool adjacent = true;
    for (size_t j = 1; j < dims.size(); ++j) adjacent = adjacent && dims[j] == dims[j - 1] + 1;
    position = adjacent ? dims[0] : 0;
    size_t next = 0;
    for (int64_t d = 0; d < call.rank(0); ++d) {
      if (next < dims.size() && dims[next] == d)
        ++next;
      else
        result.push_back(call.shape(0)[size_t(d)]);
    }
    for (size_t j = 0; j < indices.size(); ++j) result = inserted(result, position + int64_t(j), indices[j]);
  }

  // Coordinates of x for coordinates of the result.
  Index source(ElementBuilder& b) const {
    std::span<const Dim> common(b.i.begin() + position, indices.size());
    Index at;
    size_t next = 0, kept = 0;
    for (int64_t d = 0; d < b.call.rank(0); ++d) {
      if (next < dims.size() && dims[next] == d) {
        int operand = first + int(next++);
        at.push_back(b.load_index(operand, broadcast_index(b.call.shape(operand), common), b.call.shape(0)[size_t(d)]));
      } else {
        at.push_back(b.i[int64_t(kept) < position ? kept : kept + indices.size()]);
        ++kept;
      }
    }
    return at;
  }

 private:
  // Broadcasting without asking: infer has compared the sizes.
  void merge(const Shape& other) {
    while (indices.size() < other.size()) indices = inserted(indices, 0, 1);
    size_t shift = indices.size() - other.size();
    for (size_t d = 0; d < other.size(); ++d)
      if (indices[d + shift].same_as(1)) indices[d + shift] = other[d];
  }
};

struct IndexAttrs {
  IntList dims;  // which dimension each index tensor indexes, ascending
  SINTER_FIELDS(dims)
};
struct IndexPutAttrs {
  IntList dims;
  bool accumulate = false;
  SINTER_FIELDS(dims, accumulate)
};

void check_placement(const OpCall& call, const IntList& dims, int first) {
  check(!dims.empty() && int64_t(call.inputs.size()) == first + int64_t(dims.size()),
        "{}: {} index tensors for the dimensions {}", call.name(), int64_t(call.inputs.size()) - first, dims);
  Shape common;
  for (int j = 0; j < int(dims.size()); ++j) {
    int64_t d = dims[size_t(j)];
    check(d >= 0 && d < call.rank(0) && (j == 0 || d > dims[size_t(j) - 1]), "{}: {} are not dimensions of {} in order",
          call.name(), dims, call.shape(0));
    check_index_operand(call, first + j);
    check_has_room(call, first + j, call.shape(0)[size_t(d)]);
    common = broadcast_shapes(call.name(), common, call.shape(first + j));
  }
}

struct IndexOp : Loop {
  static constexpr auto name = "index";
  static constexpr auto on_complex = by_parts<0>;
  static constexpr int inputs = -1;
  using Attributes = IndexAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& dims = call.as<IndexAttrs>().dims;
    check_placement(call, dims, 1);
    return {Type{call.inputs[0].dtype, Placement(call, dims, 1).result, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    return b.load(0, Placement(b.call, b.call.as<IndexAttrs>().dims, 1).source(b));
  }
  static TensorList grad(const GradCall& c);
  SINTER_SAMPLES("x[5, 3], i64[4]<5 | dims=[0]", "x[5, 20], i64[2, 3]<5, i64[3]<20 | dims=[0, 1]",
                 "x[3, 4, 5], i64[2]<3, i64[2]<5 | dims=[0, 2]", "x[2, 7, 33], i64[3, 1]<7 | dims=[1]",
                 "x[4, 3], i64[0]<4 | dims=[0]", "x[6], i64[]<6 | dims=[0]")
};

struct IndexPut : Scatter {
  static constexpr auto name = "index_put";
  static constexpr auto on_complex = by_parts<0, 1>;
  static constexpr int inputs = -1;  // x, values, indices
  using Attributes = IndexPutAttrs;
  static Placement placement(const OpCall& call) { return Placement(call, call.as<IndexPutAttrs>().dims, 2); }
  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs.size() >= 3, "index_put: needs a tensor, values and indices");
    check_placement(call, call.as<IndexPutAttrs>().dims, 2);
    check(call.inputs[1].weak || call.inputs[1].dtype == call.inputs[0].dtype, "index_put: dtypes {} and {} differ",
          call.inputs[0].dtype, call.inputs[1].dtype);
    Shape place = placement(call).result;
    bool fits = call.rank(1) == 0 || call.rank(1) == place.rank();
    for (int64_t d = 0; fits && d < call.rank(1); ++d) fits = call.shape(1)[size_t(d)] == place[size_t(d)];
    check(fits, "index_put: the values have shape {}, the place for them {}", call.shape(1), place);
    return {Type{call.inputs[0].dtype, call.shape(0), call.inputs[0].device}};
  }
  static Shape domain(const OpCall& call) { return placement(call).result; }
  static Elem element(ElementBuilder& b) { return b.load(1, b.call.rank(1) == 0 ? Index() : b.i); }
  static Index target(ElementBuilder& b) { return placement(b.call).source(b); }
  static Combine scatter_combine(const OpCall& call) {
    return call.as<IndexPutAttrs>().accumulate ? Combine::kSum : Combine::kReplace;
  }
  static TensorList grad(const GradCall& c);
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5, .partial = true};
  // Without accumulation two equal indices would race, so such samples have one index.
  SINTER_SAMPLES("x[5, 3], x[1, 3], i64[1]<5 | dims=[0]",
                 "x[5, 20], x[2, 3], i64[2, 3]<5, i64[3]<20 | dims=[0, 1], accumulate=true",
                 "x[3, 4, 5], x[6, 4], i64[6]<3, i64[6]<5 | dims=[0, 2], accumulate=true",
                 "x[2, 7, 33], 1.5, i64[3, 1]<7 | dims=[1]", "x[4, 3], x[0, 3], i64[0]<4 | dims=[0]")
};

std::vector<TensorArg> operands(std::initializer_list<TensorArg> first, std::span<const TensorArg> indices) {
  std::vector<TensorArg> out(first);
  out.insert(out.end(), indices.begin(), indices.end());
  return out;
}

TensorList IndexOp::grad(const GradCall& c) {
  auto& dims = c.as<IndexAttrs>().dims;
  return c.each([&] {
    auto inputs = operands({zeros_like(c[0]), c.grad()}, c.inputs.subspan(1));
    return call_op(op_of<IndexPut>, inputs, IndexPutAttrs{dims, true}, c[0].where());
  });
}

TensorList IndexPut::grad(const GradCall& c) {
  auto& a = c.as<IndexPutAttrs>();
  auto indices = c.inputs.subspan(2);
  return c.each(
      [&] {
        if (a.accumulate) return c.grad();
        return call_op(op_of<IndexPut>, operands({c.grad(), TensorArg(0)}, indices), IndexPutAttrs{a.dims, false},
                       c[0].where());
      },
      [&] {
        Tensor all = call_op(op_of<IndexOp>, operands({c.grad()}, indices), IndexAttrs{a.dims}, c[0].where());
        return c[1].dim() == 0 ? all.sum() : all;
      });
}

// x after its basic indices, and the tensors that index dimensions of that view.
struct Indexed {
  Tensor base;
  std::vector<TensorArg> tensors;
  IntList dims;
  // From a new value of each view to the new value of what it was taken from, outermost first.
  std::vector<std::function<Tensor(const Tensor&)>> put_back;
};

int64_t dims_taken(const TensorIndex& index) {
  if (auto* tensor = std::get_if<Tensor>(&index.value)) return tensor->dtype() == kBool ? tensor->dim() : 1;
  return std::holds_alternative<Dim>(index.value) || std::holds_alternative<Slice>(index.value);
}

// A mask is the coordinates of its true elements, one vector per dimension.
void add_mask(Indexed& out, const Tensor& mask, int64_t dim, const Where& where) {
  for (int64_t d = 0; d < mask.dim(); ++d)
    check(mask.size(d) == out.base.size(dim + d), "index: the mask {} does not fit dimensions {} and on of {}",
          mask.sizes(), dim, out.base.sizes());
  Tensor coordinates = nonzero({mask, where});
  for (int64_t d = 0; d < mask.dim(); ++d) {
    out.tensors.emplace_back(select(coordinates, 1, d), where);
    out.dims.push_back(dim + d);
  }
}

Indexed apply_basic(const TensorArg& x, const std::vector<TensorIndex>& indices, bool for_writing) {
  Indexed out{x.tensor(), {}, {}, {}};
  int64_t taken = 0, ellipses = 0, dim = 0;
  for (auto& index : indices) {
    taken += dims_taken(index);
    ellipses += std::holds_alternative<EllipsisIndex>(index.value);
  }
  check(ellipses <= 1, "index: more than one Ellipsis");
  check(taken <= x.dim(), "index: {} indices for a tensor of shape {}", taken, x.sizes());
  for (auto& index : indices) {
    if (auto* number = std::get_if<Dim>(&index.value)) {
      out.put_back.push_back(
          [=, whole = out.base, i = *number](auto& piece) { return select_scatter(whole, piece, dim, i); });
      out.base = select({out.base, x.where()}, dim, *number);
    } else if (auto* range = std::get_if<Slice>(&index.value)) {
      check(!for_writing || range->step > 0, "index_put_: a slice with the negative step {} cannot be written to",
            range->step);
      if (range->start || range->stop || range->step != 1) {
        out.put_back.push_back([=, whole = out.base, r = *range](auto& piece) {
          return slice_scatter(whole, piece, dim, r.start, r.stop, r.step);
        });
        out.base = slice({out.base, x.where()}, dim, range->start, range->stop, range->step);
      }
      ++dim;
    } else if (std::holds_alternative<EllipsisIndex>(index.value)) {
      dim += x.dim() - taken;
    } else if (std::holds_alternative<NewAxis>(index.value)) {
      out.put_back.push_back([=](auto& piece) { return squeeze(piece, dim); });
      out.base = unsqueeze({out.base, x.where()}, dim++);
    } else {
      auto& tensor = std::get<Tensor>(index.value);
      if (tensor.dtype() != kBool) {
        check(is_integral(tensor.dtype()), "index: indices must be integers or bool, not {}", tensor.dtype());
        out.tensors.emplace_back(tensor, x.where());
        out.dims.push_back(dim++);
      } else if (tensor.dim() == 0) {
        out.put_back.push_back([=](auto& piece) { return squeeze(piece, dim); });
        out.base = unsqueeze({out.base, x.where()}, dim);
        add_mask(out, unsqueeze(tensor, 0), dim++, x.where());
      } else {
        add_mask(out, tensor, dim, x.where());
        dim += tensor.dim();
      }
    }
  }
  return out;
}

// The mask, shaped to broadcast over x, when the indices are one mask and nothing else: filling needs no coordinates.
Tensor only_mask(const TensorArg& x, const std::vector<TensorIndex>& indices) {
  auto* mask = indices.size() == 1 ? std::get_if<Tensor>(&indices[0].value) : nullptr;
  if (!mask || mask->dtype() != kBool || mask->dim() == 0 || mask->dim() > x.dim()) return {};
  for (int64_t d = 0; d < mask->dim(); ++d)
    check(mask->size(d) == x.size(d), "index_put: the mask {} does not fit {}", mask->sizes(), x.sizes());
  Shape shape = mask->sizes();
  while (shape.rank() < x.dim()) shape.push_back(1);
  return reshape(*mask, shape);
}

// The operands of index_put on an indexed tensor: values cast and broadcast to their place.
std::vector<TensorArg> put_operands(const Indexed& at, const TensorArg& values, const Where& where) {
  std::vector<Type> types{{at.base.dtype(), at.base.sizes(), at.base.device(), false}};
  for (auto& t : at.tensors) types.push_back({t.dtype(), t.sizes(), at.base.device(), false});
  Attrs attrs = IndexAttrs{at.dims};
  Shape place = IndexOp::infer(OpCall{op_of<IndexOp>, types, attrs})[0].shape;
  TensorArg source = cast_source(values, at.base);
  if (!source.is_scalar()) source = TensorArg(expand(source, place), where);
  return operands({TensorArg(at.base, where), source}, at.tensors);
}

}  // namespace

Tensor index(const TensorArg& x, const std::vector<TensorIndex>& indices) {
  UserPosition here(x.where());
  auto at = apply_basic(x, indices, false);
  if (at.tensors.empty()) return at.base.is_same(x.tensor()) ? alias(x) : at.base;
  return call_op(op_of<IndexOp>, operands({TensorArg(at.base, x.where())}, at.tensors), IndexAttrs{at.dims}, x.where());
}

Tensor index_put(const TensorArg& x, const std::vector<TensorIndex>& indices, const TensorArg& values,
                 bool accumulate) {
  UserPosition here(x.where());
  if (Tensor mask; !accumulate && values.dim() == 0 && (mask = only_mask(x, indices)).defined())
    return x.tensor().masked_fill(mask, cast_source(values, x));
  auto at = apply_basic(x, indices, true);
  Tensor piece = at.tensors.empty() ? (accumulate ? at.base.add(cast_source(values, x)) : copy(at.base, values))
                                    : call_op(op_of<IndexPut>, put_operands(at, values, x.where()),
                                              IndexPutAttrs{at.dims, accumulate}, x.where());
  for (auto put = at.put_back.rbegin(); put != at.put_back.rend(); ++put) piece = (*put)(piece);
  return piece;
}

const Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const TensorArg& value,
                                 bool accumulate) const {
  UserPosition here(value.where());
  TensorArg x(*this, value.where());
  if (Tensor mask; !accumulate && value.dim() == 0 && (mask = only_mask(x, indices)).defined())
    return masked_fill_(mask, cast_source(value, x));
  auto at = apply_basic(x, indices, true);
  if (at.tensors.empty()) {
    if (accumulate)
      at.base.add_(value);
    else
      at.base.copy_(value);
    return *this;
  }
  auto inputs = put_operands(at, value, value.where());
  for (size_t j = 0; j < at.tensors.size(); ++j) check_indices("index_put_", at.tensors[j], at.base.size(at.dims[j]));
  call_op_into(op_of<IndexPut>, inputs, IndexPutAttrs{at.dims, accumulate}, at.base, value.where());
  return *this;
}

OpFamily advanced_index_ops() {
  static constexpr const Op* kOps[] = {&op_of<IndexOp>, &op_of<IndexPut>};
  return kOps;
}

}  // namespace sinter
