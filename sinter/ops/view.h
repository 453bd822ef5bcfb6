#pragma once
// Views: other looks at the same elements. Eagerly the result shares its operand's memory; in a graph it is free.
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter {

// The same elements as a new tensor.
Tensor alias(const TensorArg& x);
// The elements in row-major order under other sizes; one may be -1. An Error when that needs a copy.
Tensor view(const TensorArg& x, const Shape& shape);
// The same, copying when it must.
Tensor reshape(const TensorArg& x, const Shape& shape);
Tensor view_as(const TensorArg& x, const TensorArg& other);
Tensor reshape_as(const TensorArg& x, const TensorArg& other);
// Dimensions start…end merged into one.
Tensor flatten(const TensorArg& x, int64_t start = 0, int64_t end = -1);
// One dimension split into several; one of the sizes may be -1.
Tensor unflatten(const TensorArg& x, int64_t dim, const Shape& sizes);

// Dimension j of the result is dimension dims[j] of x.
Tensor permute(const TensorArg& x, const IntList& dims);
Tensor transpose(const TensorArg& x, int64_t a, int64_t b);
inline Tensor swapaxes(const TensorArg& x, int64_t a, int64_t b) { return transpose(x, a, b); }
inline Tensor swapdims(const TensorArg& x, int64_t a, int64_t b) { return transpose(x, a, b); }
// The transpose of a matrix; vectors and 0-d tensors stay as they are.
Tensor t(const TensorArg& x);
Tensor movedim(const TensorArg& x, const IntList& source, const IntList& destination);
inline Tensor movedim(const TensorArg& x, int64_t source, int64_t destination) {
  return movedim(x, IntList{source}, IntList{destination});
}

// Dimensions of size 1 repeated to the given sizes (-1: unchanged); new ones may be put in front.
Tensor expand(const TensorArg& x, const Shape& shape);
Tensor expand_as(const TensorArg& x, const TensorArg& other);
Tensor broadcast_to(const TensorArg& x, const Shape& shape);
// The gradient of a broadcast: sums over the dimensions that `shape` lacks or has as 1.
Tensor sum_to_size(const TensorArg& x, const Shape& shape);

// Without the dimensions of size 1: all of them, or those named.
Tensor squeeze(const TensorArg& x);
Tensor squeeze(const TensorArg& x, int64_t dim);
Tensor squeeze(const TensorArg& x, const IntList& dims);
Tensor unsqueeze(const TensorArg& x, int64_t dim);

// One position of a dimension, which disappears; negative counts from the end.
Tensor select(const TensorArg& x, int64_t dim, Dim index);
// start, start + step, … before stop; negative positions count from the end, all are clamped, as in Python. A negative
// step walks backwards, from the last position by default, and is a copy: strides are never negative.
Tensor slice(const TensorArg& x, int64_t dim, std::optional<Dim> start = {}, std::optional<Dim> stop = {},
             int64_t step = 1);
Tensor narrow(const TensorArg& x, int64_t dim, Dim start, Dim length);
// The elements whose coordinate along dim2 is that along dim1 plus offset, as a new last dimension.
Tensor diagonal(const TensorArg& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
// Windows of `size` elements every `step` along a dimension; the window becomes a new last dimension.
Tensor unfold(const TensorArg& x, int64_t dim, int64_t size, int64_t step);
// Any strides over x's memory, in elements; the offset is x's own by default. In a graph x counts as row-major.
Tensor as_strided(const TensorArg& x, const IntList& sizes, const IntList& strides, std::optional<int64_t> offset = {});

// Pieces of `size` along a dimension; the last may be smaller.
TensorList split(const TensorArg& x, Dim size, int64_t dim = 0);
TensorList split_with_sizes(const TensorArg& x, const Shape& sizes, int64_t dim = 0);
// At most `chunks` equal pieces; the last may be smaller.
TensorList chunk(const TensorArg& x, int64_t chunks, int64_t dim = 0);
// Every position of a dimension.
TensorList unbind(const TensorArg& x, int64_t dim = 0);

}  // namespace sinter
