#include "sinter/ops/view.h"

#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/indexing_parts.h"
#include "sinter/ops/pointwise.h"

namespace sinter {

void check_index_operand(const OpCall& call, int operand) {
  DType dtype = call.inputs[size_t(operand)].dtype;
  check(is_integral(dtype), "{}: indices must be integers, not {}", call.name(), dtype);
}

void check_has_room(const OpCall& call, int operand, const Dim& extent) {
  // How many there are may be for the data to decide.
  bool room = !extent.same_as(0) || call.shape(operand).numel() == 0;
  check(room, "{}: no index is in range for a dimension of size 0 of {}", call.name(), call.shape(0));
}

void check_indices(const char* op, const TensorArg& index, const Dim& extent) {
  if (index.is_scalar() || Tracer::current() || !extent.is_number() || !index.tensor().device().is_cpu())
    return;
  Tensor plain = index.tensor().contiguous();
  int64_t size = extent.number();
  visit_dtype(plain.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (is_integral(dtype_of<T>)) {
      const T* data = plain.data_ptr<T>();
      for (int64_t j = 0; j < plain.impl().numel; ++j)
        check(int64_t(data[j]) >= -size && int64_t(data[j]) < size,
              "{}: index {} is out of range for a dimension of size {}", op, int64_t(data[j]), size);
    }
  });
}

TensorArg cast_source(const TensorArg& source, const TensorArg& x) {
  if (source.is_scalar() || source.dtype() == x.dtype()) return source;
  return TensorArg(source.tensor().to(x.dtype(), source.where()), source.where());
}

// --- composites

Tensor take_along_dim(const TensorArg& x, const TensorArg& index, std::optional<int64_t> dim) {
  UserPosition here(x.where());
  if (!dim) return gather(flatten(x), 0, flatten(index));
  check(x.dim() == index.dim(), "take_along_dim: {} and {} differ in their number of dimensions", x.sizes(),
        index.sizes());
  int64_t d = wrap_dim("take_along_dim", *dim, x.dim());
  // Broadcast every dimension but the one indexed.
  Shape from = x.sizes(), at = index.sizes();
  from[size_t(d)] = at[size_t(d)] = 1;
  Shape common = broadcast_shapes("take_along_dim", from, at);
  from = at = common;
  from[size_t(d)] = x.size(d);
  at[size_t(d)] = index.size(d);
  return gather(expand(x, from), d, expand(index, at));
}

Tensor take(const TensorArg& x, const TensorArg& index) {
  UserPosition here(x.where());
  return reshape(index_select(reshape(x, {-1}), 0, reshape(index, {-1})), index.sizes());
}

Tensor embedding_dense_backward(const TensorArg& grad, const TensorArg& indices, Dim num_weights, int64_t padding_idx) {
  UserPosition here(grad.where());
  Tensor rows = grad.tensor();
  Dim width = rows.size(-1);
  if (padding_idx >= 0) rows = rows.masked_fill(unsqueeze(indices.tensor().eq(padding_idx), -1), 0);
  return index_add(zeros({num_weights, width}, rows.options()), 0, flatten(indices),
                   reshape(rows, {indices.tensor().numel(), width}));
}

Tensor masked_select(const TensorArg& x, const TensorArg& mask) {
  UserPosition here(x.where());
  Shape shape = broadcast_shapes("masked_select", x.sizes(), mask.sizes());
  return index(expand(x, shape), {expand(mask, shape)});
}

Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& value) {
  UserPosition here(x.where());
  check(value.dim() == 0, "index_fill: the value must be a number or a 0-d tensor, not of shape {}", value.sizes());
  if (value.is_scalar()) return index_copy(x, dim, index, value);
  if (x.dim() == 0) return reshape(index_fill(reshape(x, {1}), dim, index, value), {});
  // Through a mask: the value gets the gradient of an element once, however often the index names it.
  int64_t d = wrap_dim("index_fill", dim, x.dim());
  Shape along(size_t(x.dim()), Dim(1));
  along[size_t(d)] = x.size(d);
  Tensor filled = index_copy(zeros({x.size(d)}, x.tensor().options().dtype(kBool)), 0, index, true);
  return where(reshape(filled, along), cast_source(value, x), x);
}

Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source) {
  UserPosition here(x.where());
  check(mask.dtype() == kBool, "masked_scatter: the mask must be bool, not {}", mask.dtype());
  Shape shape = broadcast_shapes("masked_scatter", x.sizes(), mask.sizes());
  Tensor chosen = expand(mask, shape);
  Tensor nth = reshape(chosen, {-1}).to(kInt64).cumsum(0).sub(1).clamp(0);
  Tensor values = reshape(index_select(reshape(cast_source(source, x), {-1}), 0, nth), shape);
  return where(chosen, values, expand(x, shape));
}

OpFamily indexing_ops() {
  static const auto all = [] {
    std::vector<const Op*> ops;
    for (OpFamily part : {gather_ops(), scatter_ops(), advanced_index_ops()})
      ops.insert(ops.end(), part.begin(), part.end());
    return ops;
  }();
  return all;
}

}  // namespace sinter
