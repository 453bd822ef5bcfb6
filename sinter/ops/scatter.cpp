// Writes along one dimension: scatter, scatter_add, scatter_reduce, index_copy, index_add.
#include <cmath>

#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/indexing_parts.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct DimAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};
struct ScatterReduceAttrs {
  int64_t dim = 0;
  std::string reduce = "sum";
  SINTER_FIELDS(dim, reduce)
};

// Operands x, index, source; a source of no dimensions goes everywhere.
void check_scatter_operands(const OpCall& call) {
  check_index_operand(call, 1);
  check(call.inputs[2].weak || call.inputs[2].dtype == call.inputs[0].dtype, "{}: dtypes {} and {} differ", call.name(),
        call.inputs[0].dtype, call.inputs[2].dtype);
  check(call.rank(0) > 0, "{}: a 0-d tensor has no dimension to write along", call.name());
}
Elem load_source(ElementBuilder& b) { return b.load(2, b.call.rank(2) == 0 ? Index() : b.i); }

// --- one index per element

template <class Self, class A>
struct ElementScatter : Scatter {
  static constexpr int inputs = 3;
  using Attributes = A;
  static int64_t dim_of(const OpCall& call) { return wrap_dim(Self::name, call.as<A>().dim, call.rank(0)); }
  static std::vector<Type> infer(const OpCall& call) {
    check_scatter_operands(call);
    check(call.rank(0) == call.rank(1) && (call.rank(2) == 0 || call.rank(2) == call.rank(0)),
          "{}: {}, the index {} and the source {} differ in their number of dimensions", Self::name, call.shape(0),
          call.shape(1), call.shape(2));
    int64_t dim = dim_of(call);
    check_has_room(call, 1, call.shape(0)[size_t(dim)]);
    for (int64_t d = 0; d < call.rank(0); ++d) {
      const Dim& size = call.shape(1)[size_t(d)];
      check((d == dim || possibly_le(size, call.shape(0)[size_t(d)])) &&
                (call.rank(2) == 0 || possibly_le(size, call.shape(2)[size_t(d)])),
            "{}: the index {} is larger than {} or the source {} in dimension {}", Self::name, call.shape(1),
            call.shape(0), call.shape(2), d);
    }
    return {Type{call.inputs[0].dtype, call.shape(0), call.inputs[0].device}};
  }
  static Shape domain(const OpCall& call) { return call.shape(1); }
  static Elem element(ElementBuilder& b) { return load_source(b); }
  static Index target(ElementBuilder& b) {
    int64_t dim = dim_of(b.call);
    return replaced(b.i, dim, b.load_index(1, b.i, b.call.shape(0)[size_t(dim)]));
  }
};

// What reached the source: elements of it beyond the index were never read.
Tensor source_grad(const GradCall& c, const Tensor& grad, int64_t dim) {
  Tensor read = gather(grad, dim, c[1]);
  Shape pad;
  bool whole = true;
  for (int64_t d = c[1].dim(); d-- > 0;) {
    pad.push_back(0);
    pad.push_back(c[2].size(d) - c[1].size(d));
    whole = whole && pad.back().same_as(0);
  }
  return whole ? read : constant_pad_nd(read, pad);
}

struct ScatterOp : ElementScatter<ScatterOp, DimAttrs> {
  static constexpr auto name = "scatter";
  static constexpr auto on_complex = by_parts<0, 2>;
  static Combine scatter_combine(const OpCall&) { return Combine::kReplace; }
  static TensorList grad(const GradCall& c) {
    int64_t dim = c.as<DimAttrs>().dim;
    return c.each([&] { return scatter(c.grad(), dim, c[1], 0); }, [] { return Tensor(); },
                  [&] { return source_grad(c, c.grad(), dim); });
  }
  // Of several sources for one element any may win, so the samples have at most one index along dim.
  SINTER_SAMPLES("x[5, 4], i64[1, 4]<5, x[1, 4] |", "x[3, 20], i64[3, 1]<20, x[3, 2] | dim=1",
                 "x[3, 4], i64[3, 3]<4, 2.5 | dim=-1", "x[4], i64[0]<4, x[0] |")
};

struct ScatterAdd : ElementScatter<ScatterAdd, DimAttrs> {
  static constexpr auto name = "scatter_add";
  static constexpr auto on_complex = by_parts<0, 2>;
  static Combine scatter_combine(const OpCall&) { return Combine::kSum; }
  static TensorList grad(const GradCall& c) {
    int64_t dim = c.as<DimAttrs>().dim;
    return c.each([&] { return c.grad(); }, [] { return Tensor(); }, [&] { return source_grad(c, c.grad(), dim); });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5, .partial = true};
  SINTER_SAMPLES("x[5, 4], i64[3, 4]<5, x[3, 4] |", "x[3, 20], i64[3, 35]<20, x[3, 36] | dim=1",
                 "x[2, 3, 4], i64[2, 2, 4]<3, x[2, 2, 4] | dim=-2", "x[4], i64[0]<4, x[0] |")
};

struct ScatterReduce : ElementScatter<ScatterReduce, ScatterReduceAttrs> {
  static constexpr auto name = "scatter_reduce";
  static Combine scatter_combine(const OpCall& call) {
    auto& reduce = call.as<ScatterReduceAttrs>().reduce;
    if (reduce == "sum") return Combine::kSum;
    if (reduce == "prod") return Combine::kProd;
    if (reduce == "amax") return Combine::kMax;
    check(reduce == "amin", "scatter_reduce: '{}' is not known; there are sum, prod, mean, amax and amin", reduce);
    return Combine::kMin;
  }
  static std::vector<Type> infer(const OpCall& call) {
    scatter_combine(call);
    return ElementScatter::infer(call);
  }
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<ScatterReduceAttrs>();
    if (a.reduce == "sum")
      return c.each([&] { return c.grad(); }, [] { return Tensor(); }, [&] { return source_grad(c, c.grad(), a.dim); });
    return a.reduce == "prod" ? prod_grad(c, a.dim) : extremum_grad(c, a.dim);
  }
  static TensorList on_complex(const ComplexCall& c) {
    const std::string& reduce = c.as<ScatterReduceAttrs>().reduce;
    check(reduce == "sum", "scatter_reduce: '{}' is not defined for complex numbers; there is sum", reduce);
    return by_parts<0, 2>(c);
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5, .partial = true};
  SINTER_SAMPLES("x[5, 4], i64[3, 4]<5, x[3, 4] |", "x[3, 20], i64[3, 35]<20, x[3, 35] | dim=1, reduce=\"prod\"",
                 "x[3, 20], i64[3, 35]<20, x[3, 35] | dim=1, reduce=\"amax\"", "x[7], i64[9]<7, x[9] | reduce=\"amin\"")

 private:
  // The product of the others: out / factor, but where the factor is the only zero, the product with a 1 in its place.
  static TensorList prod_grad(const GradCall& c, int64_t dim) {
    const Tensor &x = c[0].tensor(), &source = c[2].tensor();
    return c.each(
        [&] {
          Tensor nonzero = x.masked_fill(x.eq(0), 1);
          return c.grad().mul(scatter_reduce(nonzero, dim, c[1], source, "prod")).div(nonzero);
        },
        [] { return Tensor(); },
        [&] {
          Tensor zero = source.eq(0);
          Tensor zeros_there = scatter_add(x.eq(0).to(x.dtype()), dim, c[1], zero.to(x.dtype()));
          Tensor alone = logical_and(zero, source_like(c, gather(zeros_there, dim, c[1])).eq(1));
          Tensor with_one = scatter_reduce(x, dim, c[1], source.masked_fill(alone, 1), "prod");
          Tensor of_zero = source_grad(c, c.grad().mul(with_one), dim);
          Tensor of_others = source_grad(c, c.grad().mul(c.out()), dim).div(source.masked_fill(zero, 1));
          return where(alone, of_zero, of_others);
        });
  }
  // Shared evenly among the elements that reached the extremum.
  static TensorList extremum_grad(const GradCall& c, int64_t dim) {
    const Tensor &x = c[0].tensor(), &source = c[2].tensor();
    DType dtype = x.dtype();
    Tensor own = x.eq(c.out()).to(dtype), theirs = source.eq(source_like(c, gather(c.out(), dim, c[1]))).to(dtype);
    Tensor share = c.grad().div(scatter_add(own, dim, c[1], theirs));
    return c.each([&] { return own.mul(share); }, [] { return Tensor(); },
                  [&] { return theirs.mul(source_grad(c, share, dim)); });
  }
  // Something of the index's shape, padded to the source's.
  static Tensor source_like(const GradCall& c, const Tensor& read) {
    Shape pad;
    for (int64_t d = c[1].dim(); d-- > 0;) pad.append(Shape{0, c[2].size(d) - c[1].size(d)});
    return constant_pad_nd(read, pad);
  }
};

// --- one index per slice

template <class Self>
struct SliceWrite : Scatter {
  static constexpr int inputs = 3;
  using Attributes = DimAttrs;
  static int64_t dim_of(const OpCall& call) { return wrap_dim(Self::name, call.as<DimAttrs>().dim, call.rank(0)); }
  static std::vector<Type> infer(const OpCall& call) {
    check_scatter_operands(call);
    check(call.rank(1) <= 1, "{}: the indices must be a vector, not of shape {}", Self::name, call.shape(1));
    check_has_room(call, 1, call.shape(0)[size_t(dim_of(call))]);
    Shape expected = domain(call);
    bool fits = call.rank(2) == 0 || call.rank(2) == call.rank(0);
    for (int64_t d = 0; fits && d < call.rank(2); ++d) fits = call.shape(2)[size_t(d)] == expected[size_t(d)];
    check(fits, "{}: the source has shape {}, the place for it {}", Self::name, call.shape(2), expected);
    return {Type{call.inputs[0].dtype, call.shape(0), call.inputs[0].device}};
  }
  static Shape domain(const OpCall& call) { return replaced(call.shape(0), dim_of(call), call.shape(1).numel()); }
  static Elem element(ElementBuilder& b) { return load_source(b); }
  static Index target(ElementBuilder& b) {
    int64_t dim = dim_of(b.call);
    Index where = b.call.rank(1) == 0 ? Index() : Index{b.i[size_t(dim)]};
    return replaced(b.i, dim, b.load_index(1, where, b.call.shape(0)[size_t(dim)]));
  }
};

// What each slice of the source has given; a source of one element gives it to all.
Tensor slices_grad(const GradCall& c, int64_t dim) {
  Tensor grads = index_select(c.grad(), dim, c[1]);
  return c[2].dim() == 0 ? grads.sum() : grads;
}

struct IndexCopy : SliceWrite<IndexCopy> {
  static constexpr auto name = "index_copy";
  static constexpr auto on_complex = by_parts<0, 2>;
  static Combine scatter_combine(const OpCall&) { return Combine::kReplace; }
  static TensorList grad(const GradCall& c) {
    int64_t dim = c.as<DimAttrs>().dim;
    return c.each([&] { return index_copy(c.grad(), dim, c[1], 0); }, [] { return Tensor(); },
                  [&] { return slices_grad(c, dim); });
  }
  SINTER_SAMPLES("x[5, 3], i64[1]<5, x[1, 3] |", "x[2, 7, 20], i64[1]<7, x[2, 1, 20] | dim=1",
                 "x[4, 17], i64[5]<17, 1.5 | dim=-1", "x[4, 2], i64[0]<4, x[0, 2] |", "x[6], i64[]<6, x[1] |")
};

struct IndexAdd : SliceWrite<IndexAdd> {
  static constexpr auto name = "index_add";
  static constexpr auto on_complex = by_parts<0, 2>;
  static Combine scatter_combine(const OpCall&) { return Combine::kSum; }
  static TensorList grad(const GradCall& c) {
    int64_t dim = c.as<DimAttrs>().dim;
    return c.each([&] { return c.grad(); }, [] { return Tensor(); }, [&] { return slices_grad(c, dim); });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5, .partial = true};
  SINTER_SAMPLES("x[5, 3], i64[4]<5, x[4, 3] |", "x[2, 7, 20], i64[9]<7, x[2, 9, 20] | dim=1",
                 "x[4, 17], i64[5]<17, x[4, 5] | dim=-1", "x[4, 2], i64[0]<4, x[0, 2] |")
};

Tensor mean_of(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source, bool include_self) {
  Tensor start = include_self ? x.tensor() : scatter(x, dim, index, 0);
  Tensor total = scatter_add(start, dim, index, source);
  Tensor ones = ones_like(x), counted = include_self ? ones : scatter(ones, dim, index, 0);
  Tensor one_each = expand(full({}, 1, x.tensor().options()), index.sizes());
  Tensor count = scatter_add(counted, dim, index, one_each).clamp(1);
  return is_floating(x.dtype()) ? total.div(count) : floor_divide(total, count);
}

TensorArg flat(const TensorArg& x) { return x.is_scalar() ? x : TensorArg(reshape(x, {-1}), x.where()); }

// A tensor of no dimensions is written to as one of one element.
template <class F>
Tensor in_one_dimension(const TensorArg& x, const TensorArg& source, F&& write) {
  UserPosition here(x.where());
  return reshape(write(flat(x), flat(source)), {});
}

}  // namespace

Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source) {
  if (x.dim() == 0) return in_one_dimension(x, source, [&](const TensorArg& y, const TensorArg& from) { return index_copy(y, dim, index, from); });
  return call<IndexCopy>({x, index, source}, DimAttrs{dim});
}
Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 const Scalar& alpha) {
  UserPosition here(x.where());
  if (x.dim() == 0)
    return in_one_dimension(x, source, [&](const TensorArg& y, const TensorArg& from) { return index_add(y, dim, index, from, alpha); });
  bool scaled = !(alpha == Scalar(1)) && !(alpha == Scalar(1.0));
  return call<IndexAdd>({x, index, scaled ? TensorArg(source.tensor().mul(alpha)) : source}, DimAttrs{dim});
}
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source) {
  if (x.dim() == 0)
    return in_one_dimension(x, source, [&](const TensorArg& y, const TensorArg& from) { return scatter(y, dim, flat(index), from); });
  return call<ScatterOp>({x, index, source}, DimAttrs{dim});
}
Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source) {
  if (x.dim() == 0)
    return in_one_dimension(x, source, [&](const TensorArg& y, const TensorArg& from) { return scatter_add(y, dim, flat(index), from); });
  return call<ScatterAdd>({x, index, source}, DimAttrs{dim});
}
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                      const std::string& reduce, bool include_self) {
  UserPosition here(x.where());
  if (x.dim() == 0)
    return in_one_dimension(x, source, [&](const TensorArg& y, const TensorArg& from) {
      return scatter_reduce(y, dim, flat(index), from, reduce, include_self);
    });
  if (reduce == "mean") return mean_of(x, dim, index, source, include_self);
  Tensor start = x.tensor();
  if (!include_self) {
    bool floats = is_differentiable(x.dtype());
    int64_t bits = 8 * item_size(x.dtype());
    bool is_signed = x.dtype() != kUInt8 && x.dtype() != kBool;
    int64_t top = x.dtype() == kBool ? 1 : int64_t((uint64_t(1) << (is_signed ? bits - 1 : bits)) - 1);
    Scalar lowest = floats ? Scalar(-INFINITY) : Scalar(is_signed ? -top - 1 : 0),
           highest = floats ? Scalar(INFINITY) : Scalar(top);
    start = scatter(x, dim, index,
                    reduce == "sum"    ? Scalar(0)
                    : reduce == "prod" ? Scalar(1)
                    : reduce == "amax" ? lowest
                                       : highest);
  }
  return call<ScatterReduce>({start, index, source}, ScatterReduceAttrs{dim, reduce});
}
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source, std::string_view reduce) {
  UserPosition here(x.where());
  check(reduce == "add" || reduce == "multiply", "scatter: reduce is \"add\" or \"multiply\", not \"{}\"", reduce);
  Tensor values = source.is_scalar() ? full(index.sizes(), source, x.tensor().options()) : source.tensor();
  return scatter_reduce(x, dim, index, {values, x.where()}, reduce == "add" ? "sum" : "prod");
}

OpFamily scatter_ops() {
  static constexpr const Op* kOps[] = {&op_of<ScatterOp>, &op_of<ScatterAdd>, &op_of<ScatterReduce>, &op_of<IndexCopy>,
                                       &op_of<IndexAdd>};
  return kOps;
}

}  // namespace sinter
