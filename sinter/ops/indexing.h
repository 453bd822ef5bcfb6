#pragma once
// Reading and writing through tensors of indices. Indices are integers; negative ones count from the end, one outside
// the dimension is an Error. The in-place forms check every index before they write.
#include <string>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter {

// --- reading
// Whole slices: result coordinate j along dim reads x at index[j].
Tensor index_select(const TensorArg& x, int64_t dim, const TensorArg& index);
// Result of index's shape: each element reads x at the same coordinates, but for dim, which index gives.
Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index);
// gather with x and index broadcast against each other; no dim: over the flattened tensors.
Tensor take_along_dim(const TensorArg& x, const TensorArg& index, std::optional<int64_t> dim = {});
// Elements of the flattened x, in index's shape.
Tensor take(const TensorArg& x, const TensorArg& index);
// Rows of a table. No gradient reaches row `padding_idx` (negative: none such).
Tensor embedding(const TensorArg& weight, const TensorArg& indices, int64_t padding_idx = -1);
// The gradient of embedding's table: rows of `grad` added up by index.
Tensor embedding_dense_backward(const TensorArg& grad, const TensorArg& indices, Dim num_weights,
                                int64_t padding_idx = -1);
// x[a, b:c, ..., None, tensor, mask] with PyTorch's rules; x.index({...}) is the same.
Tensor index(const TensorArg& x, const std::vector<TensorIndex>& indices);
// The elements where a mask, broadcast with x, is true; 1-d.
Tensor masked_select(const TensorArg& x, const TensorArg& mask);

// --- writing into a copy
// index(x, indices) replaced by (or, accumulating, increased by) values, which broadcast.
Tensor index_put(const TensorArg& x, const std::vector<TensorIndex>& indices, const TensorArg& values,
                 bool accumulate = false);
// Slices along dim at index[j] replaced by slice j of source; increased by alpha times it; filled with a value.
Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);
Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 const Scalar& alpha = 1);
Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& value);
// The inverse of gather: elements of source (a number, or a tensor at least of index's shape) put at index along dim.
Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);
Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);
// reduce: "sum", "prod", "mean", "amax" or "amin" of the sources that meet, and of x's own element if include_self.
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                      const std::string& reduce, bool include_self = true);
// The true positions of mask replaced by the elements of source, in order.
Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source);

}  // namespace sinter
