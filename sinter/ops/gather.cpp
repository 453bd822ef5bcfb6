// Reads along one dimension: index_select, gather, embedding.
#include "sinter/ops/attributes.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/contract.h"
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

struct IndexSelect : Loop {
  static constexpr auto name = "index_select";
  static constexpr auto on_complex = by_parts<0>;
  static constexpr int inputs = 2;
  using Attributes = DimAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.rank(0) > 0, "index_select: a 0-d tensor has no dimension to select from");
    check(call.rank(1) <= 1, "index_select: the indices must be a vector, not of shape {}", call.shape(1));
    check_index_operand(call, 1);
    int64_t dim = wrap_dim("index_select", call.as<DimAttrs>().dim, call.rank(0));
    check_has_room(call, 1, call.shape(0)[size_t(dim)]);
    return {Type{call.inputs[0].dtype, replaced(call.shape(0), dim, call.shape(1).numel()), call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    int64_t dim = wrap_dim("index_select", b.call.as<DimAttrs>().dim, b.call.rank(0));
    Index where = b.call.rank(1) == 0 ? Index() : Index{b.i[size_t(dim)]};
    return b.load(0, replaced(b.i, dim, b.load_index(1, where, b.call.shape(0)[size_t(dim)])));
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return index_add(zeros_like(c[0]), c.as<DimAttrs>().dim, c[1], c.grad()); });
  }
  SINTER_SAMPLES("x[5, 3], i64[4]<5 |", "x[2, 7, 20], i64[3]<7 | dim=1", "x[3, 17], i64[40]<17 | dim=-1",
                 "x[4, 2], i64[0]<4 |", "x[4, 2], i32[3]<4 |", "x[4], i64[]<4 |")
};

// What flows back to x of which one element along `dim` was taken: nothing but where that was. Written so, readers compute it
// where they need it; a scatter would store the zeros.
static Tensor spread(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& grad) {
  return where(positions_along(x, dim) == index, grad, 0);
}

struct Gather : Loop {
  static constexpr auto name = "gather";
  static constexpr auto on_complex = by_parts<0>;
  static constexpr int inputs = 2;
  using Attributes = GatherAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check_index_operand(call, 1);
    check(call.rank(0) == call.rank(1), "gather: {} and the index {} differ in their number of dimensions",
          call.shape(0), call.shape(1));
    check(call.rank(0) > 0, "gather: a 0-d tensor has no dimension to gather from");
    int64_t dim = wrap_dim("gather", call.as<GatherAttrs>().dim, call.rank(0));
    for (int64_t d = 0; d < call.rank(0); ++d)
      check(d == dim || possibly_le(call.shape(1)[size_t(d)], call.shape(0)[size_t(d)]),
            "gather: the index {} is larger than {} in dimension {}", call.shape(1), call.shape(0), d);
    check_has_room(call, 1, call.shape(0)[size_t(dim)]);
    return {Type{call.inputs[0].dtype, call.shape(1), call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    int64_t dim = wrap_dim("gather", b.call.as<GatherAttrs>().dim, b.call.rank(0));
    return b.load(0, replaced(b.i, dim, b.load_index(1, b.i, b.call.shape(0)[size_t(dim)])));
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      const Tensor &x = c[0].tensor(), &index = c[1].tensor();
      int64_t dim = wrap_dim("gather", c.as<GatherAttrs>().dim, x.dim());
      bool one = Tracer::current() != nullptr;
      for (int64_t d = 0; d < x.dim() && one; ++d) one = index.size(d).same_as(d == dim ? Dim(1) : x.size(d));
      return one ? spread(x, dim, index, c.grad()) : scatter_add(zeros_like(x), dim, index, c.grad());
    });
  }
  SINTER_SAMPLES("x[3, 4], i64[2, 4]<3 |", "x[3, 20], i64[3, 35]<20 | dim=1", "x[2, 3, 5], i64[1, 3, 4]<5 | dim=-1",
                 "x[3], i64[0]<3 |")
};

struct EmbeddingAttrs {
  int64_t padding_idx = -1;
  SINTER_FIELDS(padding_idx)
};

struct Embedding : Loop {
  static constexpr auto name = "embedding";
  static constexpr auto on_complex = by_parts<0>;
  static constexpr int inputs = 2;
  using Attributes = EmbeddingAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.rank(0) == 2, "embedding: the table must be a matrix, not of shape {}", call.shape(0));
    check_index_operand(call, 1);
    check_has_room(call, 1, call.shape(0)[0]);
    Shape shape = call.shape(1);
    shape.push_back(call.shape(0)[1]);
    return {Type{call.inputs[0].dtype, shape, call.inputs[0].device}};
  }
  static Elem element(ElementBuilder& b) {
    Index where(b.i.begin(), b.i.end() - 1);
    return b.load(0, {b.load_index(1, where, b.call.shape(0)[0]), b.i.back()});
  }
  static TensorList grad(const GradCall& c) {
    return c.each(
        [&] { return embedding_dense_backward(c.grad(), c[1], c[0].size(0), c.as<EmbeddingAttrs>().padding_idx); });
  }
  SINTER_SAMPLES("x[10, 4], i64[3]<10 |", "x[7, 33], i64[2, 5]<7 | padding_idx=0", "x[5, 3], i64[]<5 |",
                 "x[5, 8], i32[0]<5 |")
};

}  // namespace

// A tensor of no dimensions is one of one element, here as in the writes along a dimension.
Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index) {
  if (x.dim() == 0) return reshape(index_select(reshape(x, {1}), dim, index), {});
  return call<IndexSelect>({x, index}, DimAttrs{dim});
}
Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index) {
  UserPosition here(x.where());
  for (auto* operand : {&x, &index}) tensor_operand("gather", *operand);
  if (x.dim() == 0) return gather(reshape(x, {1}), dim, index);
  if (index.dim() == 0) return reshape(gather(x, dim, reshape(index, {1})), {});
  return call<Gather>({x, index}, GatherAttrs{dim});
}
Tensor embedding(const TensorArg& weight, const TensorArg& indices, int64_t padding_idx) {
  UserPosition here(weight.where());
  check(weight.dim() == 2, "embedding: the table must be a matrix, not of shape {}", weight.sizes());
  check(padding_idx < weight.size(0), "embedding: padding_idx {} is not one of {} rows", padding_idx, weight.size(0));
  return call<Embedding>({weight, indices}, EmbeddingAttrs{padding_idx < 0 ? -1 : padding_idx});
}

OpFamily gather_ops() {
  static constexpr const Op* kOps[] = {&op_of<IndexSelect>, &op_of<Gather>, &op_of<Embedding>};
  return kOps;
}

}  // namespace sinter
