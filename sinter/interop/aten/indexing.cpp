// Reading and writing through tensors of indices.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

using Indices = const std::vector<TensorIndex>&;

constexpr EmbeddingBagMode kBagModes[] = {EmbeddingBagMode::kSum, EmbeddingBagMode::kMean, EmbeddingBagMode::kMax};

EmbeddingBagMode bag_mode(Int mode) {
  check(mode >= 0 && mode < std::ssize(kBagModes), "embedding_bag: there is no mode {}", mode);
  return kBagModes[mode];
}

// The bag of each index. An offset behind the last index changes nothing.
Tensor bag_of_each(const Tensor& indices, const Tensor& offsets) {
  Tensor at = arange_of_size(indices.size(0), TensorOptions(kInt64).device(indices.device()));
  return searchsorted(offsets.to(kInt64), at, /*out_int32=*/false, /*right=*/true) - 1;
}

// How many indices of each bag count.
Tensor bag_sizes(const Tensor& indices, const Tensor& bag, const Dim& bags, MaybeInt padding_idx) {
  const TensorOptions options = bag.options();
  Tensor counted = padding_idx ? (indices != *padding_idx).to(kInt64) : ones({indices.size(0)}, options);
  return index_add(zeros({bags}, options), 0, bag, counted);
}

// Of the largest of each bag and column the index; 0 for bags that are empty.
Tensor indices_of_largest(const Tensor& weight, const Tensor& indices, const Tensor& bag, const Tensor& bags,
                          MaybeInt padding_idx) {
  const Dim count = indices.size(0);
  Tensor at = arange_of_size(count, bag.options()).unsqueeze(1);
  Tensor is_largest = embedding(weight, indices) == index_select(bags, 0, bag);
  if (padding_idx) is_largest = is_largest & (indices != *padding_idx).unsqueeze(1);
  Tensor first = scatter_reduce(full(bags.sizes(), count, bag.options()), 0,
                                bag.unsqueeze(1).expand(is_largest.sizes()), where(is_largest, at, count), "amin");
  return take(cat({indices, zeros({1}, indices.options())}), first);
}

// The bags, and what only gradients need of them.
std::tuple<Tensor, Tensor, Tensor, Tensor> bags_of(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                   Unset, Int mode, Ignored, const Tensor& weights,
                                                   bool include_last_offset, MaybeInt padding_idx) {
  Tensor bags = embedding_bag(weight, indices, offsets, bag_mode(mode), weights, include_last_offset, padding_idx);
  if (padding_idx && *padding_idx < 0) *padding_idx += weight.size(0).to_int();
  Tensor bag = bag_of_each(indices, offsets), sizes = bag_sizes(indices, bag, bags.size(0), padding_idx);
  Tensor largest =
      bag_mode(mode) == EmbeddingBagMode::kMax ? indices_of_largest(weight, indices, bag, bags, padding_idx) : sizes;
  return {bags, bag, sizes, largest};
}

Tensor bags_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets, Ignored, const Tensor& sizes,
                     const Tensor& largest, const Dim& rows, Unset, Int mode, Unset, const Tensor& weights,
                     Int padding_idx) {
  Tensor out = zeros({rows, grad.size(1)}, grad.options());
  if (bag_mode(mode) == EmbeddingBagMode::kMax)
    return scatter_add(out, 0, largest, where((sizes > 0).unsqueeze(1), grad, 0));
  const MaybeInt padding = padding_idx < 0 ? MaybeInt() : padding_idx;
  Tensor bag = bag_of_each(indices, offsets), each = grad;
  if (bag_mode(mode) == EmbeddingBagMode::kMean)
    each = grad / clamp_min(bag_sizes(indices, bag, grad.size(0), padding), 1).unsqueeze(1);
  each = index_select(each, 0, bag);
  if (weights.defined()) each = each * weights.unsqueeze(1);
  if (padding) each = where((indices == *padding).unsqueeze(1), 0, each);
  return index_add(out, 0, indices, each);
}

Tensor scatter_reduced(In x, Int dim, In index, In source, Text reduce, bool include_self) {
  return scatter_reduce(x, dim, index, source, reduce, include_self);
}

// Positions that the mask leaves out may be anywhere: they become 0.
std::vector<TensorIndex> inside(Indices indices, const Tensor& mask) {
  std::vector<TensorIndex> out;
  for (auto& index : indices) {
    auto* positions = std::get_if<Tensor>(&index.value);
    out.push_back(positions ? TensorIndex(where(mask, *positions, 0)) : index);
  }
  return out;
}

}  // namespace

std::span<const Function> indexing_functions() {
  static const Function kList[] = {
      {"embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
       "sparse=False) -> Tensor",
       [](In weight, In indices, Int padding_idx, Unset, Ignored) { return embedding(weight, indices, padding_idx); }},
      {"embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
       "scale_grad_by_freq) -> Tensor",
       [](In grad, In indices, const Dim& count, Int padding_idx, Unset) {
         return embedding_dense_backward(grad, indices, count, padding_idx);
       }},
      {"embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, "
       "bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, "
       "Tensor, Tensor)",
       bags_of},
      {"_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, "
       "Tensor, Tensor, Tensor)",
       [](const Tensor& weight, const Tensor& indices, const Tensor& offsets, Unset scaled, Int mode, Ignored sparse,
          const Tensor& weights, bool last, Int padding_idx) {
         // Here a negative number stands for none; in embedding_bag.padding_idx it counts from the end.
         return bags_of(weight, indices, offsets, scaled, mode, sparse, weights, last,
                        padding_idx < 0 ? MaybeInt() : padding_idx);
       }},
      {"embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool "
       "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, "
       "Tensor)",
       [](const Tensor& weight, const Tensor& indices, const Tensor& offsets, Unset scaled, Int mode, Ignored sparse,
          const Tensor& weights, bool last) {
         return bags_of(weight, indices, offsets, scaled, mode, sparse, weights, last, std::nullopt);
       }},
      {"_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
       "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? "
       "per_sample_weights, int padding_idx=-1) -> Tensor",
       bags_backward},
      {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
       [](In x, Indices indices) { return index(x, indices); }},
      {"_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
       [](In x, Indices indices) { return index(x, indices); }},
      {"_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
       [](In x, const Tensor& mask, Indices indices, const Scalar& fill) {
         return where(mask, index(x, inside(indices, mask)), fill);
       }},
      {"_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
       [](In x, const Tensor& mask, Indices indices, In values) {
         return index_put(x, inside(indices, mask), where(mask, values, 0), /*accumulate=*/true);
       }},
      {"index_select(Tensor self, int dim, Tensor index) -> Tensor", index_select},
      {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
       [](In x, Int dim, In index, Ignored) { return gather(x, dim, index); }},
      {"take(Tensor self, Tensor index) -> Tensor", take},
      {"take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", take_along_dim},
      {"masked_select(Tensor self, Tensor mask) -> Tensor", masked_select},

      // --- writing
      {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
       [](In x, Indices indices, In values, bool accumulate) { return index_put(x, indices, values, accumulate); }},
      {"_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
       [](In x, Indices indices, In values, bool accumulate) { return index_put(x, indices, values, accumulate); }},
      {"index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
       [](const Tensor& x, Indices indices, In values, bool accumulate) {
         return x.index_put_(indices, values, accumulate);
       }},
      {"index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", index_copy},
      {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", index_add},
      {"index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", index_fill},
      {"index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", index_fill},
      {"index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> "
       "Tensor",
       index_reduce},
      {"put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", put},
      {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
       [](In x, Int dim, In index, In source) { return scatter(x, dim, index, source); }},
      {"scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
       [](In x, Int dim, In index, In value) { return scatter(x, dim, index, value); }},
      {"scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
       [](In x, Int dim, In index, In source, Text reduce) { return scatter(x, dim, index, source, reduce); }},
      {"scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
       [](In x, Int dim, In index, In value, Text reduce) { return scatter(x, dim, index, value, reduce); }},
      {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", scatter_add},
      {"scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> "
       "Tensor",
       scatter_reduced},
      {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter},
  };
  return kList;
}

}  // namespace sinter::interop
