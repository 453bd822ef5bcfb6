// Reading and writing at places that tensors tell, and searches.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Tensor as_index(In index) { return index.dtype() == kInt64 ? index.tensor() : index.tensor().to(kInt64); }

// Places that count from the end become those that count from the beginning.
Tensor from_start(In index, const Dim& size) {
  const Tensor at = as_index(index);
  return where(lt(at, 0), add(at, TensorArg(size)), at);
}

Tensor gather_elements(In x, In index, Int axis) {
  const int64_t dim = wrap_dim("GatherElements", axis, x.dim());
  return gather(x, dim, from_start(index, x.size(dim)));
}

// The last dimension of the indices tells places in the first dimensions behind those of the batch.
Tensor gather_nd(In x, In indices, Int batch_dims) {
  const int64_t depth = indices.size(indices.dim() - 1);
  const Tensor at = as_index(indices);
  std::vector<TensorIndex> index;
  for (int64_t b = 0; b < batch_dims; ++b) {
    Shape along(std::vector<int64_t>(size_t(indices.dim() - 1), 1));
    along[size_t(b)] = x.size(b);
    index.push_back(arange_of_size(x.size(b), TensorOptions(kInt64).device(x.tensor().device())).view(along));
  }
  for (int64_t d = 0; d < depth; ++d) index.push_back(select(at, -1, d));
  return sinter::index(x, index);
}

const char* reduction_named(Text name) {
  if (name == "add") return "sum";
  if (name == "mul") return "prod";
  if (name == "max") return "amax";
  if (name == "min") return "amin";
  throw_error(format("there is no reduction '{}'", name));
}

Tensor scatter_elements(In x, In index, In updates, Int axis, Text reduction) {
  const int64_t dim = wrap_dim("ScatterElements", axis, x.dim());
  const Tensor at = from_start(index, x.size(dim));
  if (reduction == "none") return scatter(x, dim, at, updates);
  return scatter_reduce(x, dim, at, updates, reduction_named(reduction));
}

Tensor scatter_nd(In x, In indices, In updates, Text reduction) {
  const int64_t depth = indices.size(indices.dim() - 1);
  const Tensor at = as_index(indices);
  std::vector<TensorIndex> index;
  for (int64_t d = 0; d < depth; ++d) index.push_back(select(at, -1, d));
  if (reduction == "none") return index_put(x, index, updates);
  if (reduction == "add") return index_put(x, index, updates, true);
  // Row-major places of whole slices in the flattened front.
  const Shape sizes = x.sizes(), front = sizes.slice(0, size_t(depth)), rest = sizes.slice(size_t(depth));
  Tensor place = zeros(at.sizes().slice(0, size_t(at.dim() - 1)), at.options());
  for (int64_t d = 0; d < depth; ++d)
    place = add(mul(place, TensorArg(sizes[size_t(d)])), from_start(select(at, -1, d), sizes[size_t(d)]));
  const Tensor rows = reshape(x, {front.numel(), rest.numel()});
  const Tensor from = reshape(updates, {place.numel(), rest.numel()});
  const Tensor to = expand(place.reshape({-1, 1}), from.sizes());
  return reshape(scatter_reduce(rows, 0, to, from, reduction_named(reduction)), sizes);
}

Tensor one_hot_of(In indices, Any depth, In values, Int axis) {
  // A number of any type, which may have a dimension.
  const Dim count = is_floating(dtype_of(depth)) ? Dim(value_to<Scalar>(depth).to_int()) : value_to<Dim>(depth);
  const Tensor at = from_start(indices, count);
  const int64_t rank = at.dim() + 1, dim = wrap_dim("OneHot", axis, rank);
  Shape along(std::vector<int64_t>(size_t(rank), 1));
  along[size_t(dim)] = count;
  const Tensor classes = arange_of_size(count, TensorOptions(kInt64).device(at.device())).view(along);
  const Tensor off = select(values, 0, 0), on = select(values, 0, 1);
  return where(eq(unsqueeze(at, dim), classes), on, off);
}

Tensor compressed(In x, In condition, MaybeInt axis) {
  const Tensor mask = condition.tensor();
  const Tensor from = axis ? x.tensor() : flatten(x);
  const int64_t dim = axis.value_or(0);
  return index_select(from, dim, nonzero(mask).flatten());
}

Tensor nonzero_places(In x) { return nonzero(x).transpose(0, 1).contiguous(); }

// --- searches

Tensor place_of_extreme(In x, Int axis, bool keepdims, bool last, bool largest) {
  const int64_t dim = wrap_dim("ArgMax", axis, x.dim());
  auto search = [&](const Tensor& from) { return largest ? argmax(from, dim, keepdims) : argmin(from, dim, keepdims); };
  if (!last) return search(x.tensor());
  const Dim size = x.size(dim);
  return sub(TensorArg(size - 1), search(flip(x, {dim})));
}

std::tuple<Tensor, Tensor> best(In x, Any k, Int axis, bool largest, Ignored) {
  return topk(x, value_to<Dim>(k), axis, largest, true);
}

// Distinct elements or slices; by default sorted, else in the order in which they first occur.
std::tuple<Tensor, Tensor, Tensor, Tensor> distinct(In x, MaybeInt axis, bool sorted) {
  auto [values, inverse, counts] = axis ? unique_dim(x, *axis, true, true, true) : unique(x, true, true, true);
  const Tensor flat = inverse.flatten();
  const Dim total = flat.numel();
  const Tensor at = arange_of_size(total, TensorOptions(kInt64).device(flat.device()));
  Tensor first = scatter_reduce(full_like(counts, total), 0, flat, at, "amin");
  if (sorted) return {values, first, flat, counts};
  auto [in_order, order] = sort(first);
  const Tensor rank = scatter(zeros_like(order), 0, order, arange_of_size(order.numel(), order.options()));
  return {index_select(values, axis.value_or(0), order), in_order, index_select(rank, 0, flat), index_select(counts, 0, order)};
}

// Past and new keys or values at positions of the sequence.
Tensor tensor_scatter(In past, In update, Maybe write_indices, Int axis, Text mode) {
  const int64_t dim = wrap_dim("TensorScatter", axis, past.dim());
  const Dim most = past.size(dim), count = update.size(dim);
  const TensorOptions options = TensorOptions(kInt64).device(past.tensor().device());
  Shape along(std::vector<int64_t>(size_t(past.dim()), 1)), batch = along;
  along[size_t(dim)] = count;
  batch[0] = past.size(0);
  Tensor at = arange_of_size(count, options).view(along);
  if (write_indices.defined()) at = add(at, write_indices.view(batch));
  if (mode == "circular") at = remainder(at, TensorArg(most));
  return scatter(past, dim, expand(at, update.sizes()), update);
}

}  // namespace

std::span<const Function> indexing_operators() {
  static const Function kList[] = {
      {"onnx::GatherElements.11(Tensor data, Tensor indices, *, int axis=0) -> Tensor", gather_elements},
      {"onnx::GatherND.11(Tensor data, Tensor indices, *, int batch_dims=0) -> Tensor", gather_nd},
      {"onnx::Scatter.9(Tensor data, Tensor indices, Tensor updates, *, int axis=0) -> Tensor",
       [](In x, In index, In updates, Int axis) { return scatter_elements(x, index, updates, axis, "none"); }},
      {"onnx::ScatterElements.11(Tensor data, Tensor indices, Tensor updates, *, int axis=0, str reduction=\"none\") -> Tensor",
       scatter_elements},
      {"onnx::ScatterND.11(Tensor data, Tensor indices, Tensor updates, *, str reduction=\"none\") -> Tensor", scatter_nd},
      {"onnx::TensorScatter.24(Tensor past_cache, Tensor update, Tensor? write_indices=None, *, str mode=\"linear\", int axis=-2) "
       "-> Tensor",
       [](In past, In update, Maybe at, Text mode, Int axis) { return tensor_scatter(past, update, at, axis, mode); }},
      {"onnx::OneHot.9(Tensor indices, Tensor depth, Tensor values, *, int axis=-1) -> Tensor", one_hot_of},
      {"onnx::Compress.9(Tensor input, Tensor condition, *, int? axis=None) -> Tensor", compressed},
      {"onnx::NonZero.9(Tensor X) -> Tensor", nonzero_places},
      {"onnx::ArgMax.1(Tensor data, *, int axis=0, int keepdims=1, int select_last_index=0) -> Tensor",
       [](In x, Int axis, bool keepdims, bool last) { return place_of_extreme(x, axis, keepdims, last, true); }},
      {"onnx::ArgMin.1(Tensor data, *, int axis=0, int keepdims=1, int select_last_index=0) -> Tensor",
       [](In x, Int axis, bool keepdims, bool last) { return place_of_extreme(x, axis, keepdims, last, false); }},
      {"onnx::TopK.1(Tensor X, Tensor k, *, int axis=-1, int largest=1, int sorted=1) -> (Tensor, Tensor)", best},
      {"onnx::Unique.11(Tensor X, *, int? axis=None, int sorted=1) -> (Tensor, Tensor, Tensor, Tensor)", distinct},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
