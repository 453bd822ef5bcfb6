#pragma once
// Orderings. NaN counts as the largest value, as in PyTorch. Equal elements keep their order.
#include <tuple>

#include "sinter/tensor/tensor.h"

namespace sinter {

// Values in order along a dimension, and the positions they came from. Always stable.
std::tuple<Tensor, Tensor> sort(const TensorArg& x, int64_t dim = -1, bool descending = false, bool stable = true);
Tensor argsort(const TensorArg& x, int64_t dim = -1, bool descending = false, bool stable = true);
// The k largest (or smallest) along a dimension and their positions; always sorted.
std::tuple<Tensor, Tensor> topk(const TensorArg& x, Dim k, int64_t dim = -1, bool largest = true, bool sorted = true);
// The k-th smallest (from 1) along a dimension and its position.
std::tuple<Tensor, Tensor> kthvalue(const TensorArg& x, Dim k, int64_t dim = -1, bool keepdim = false);
// The lower median along a dimension and its position; NaN when the dimension holds one.
std::tuple<Tensor, Tensor> median(const TensorArg& x, int64_t dim, bool keepdim = false);
// The lower median of all elements.
Tensor median(const TensorArg& x);
// Coordinates of the elements that are not zero, one row each, in row-major order.
Tensor nonzero(const TensorArg& x);
// Distinct elements in order; the position of each element of x among them; how often each occurs. The last two are
// undefined unless asked for.
std::tuple<Tensor, Tensor, Tensor> unique(const TensorArg& x, bool sorted = true, bool return_inverse = false,
                                          bool return_counts = false);
// Where each value would go in the last dimension of `sorted` to keep it in order: before equal elements, or after.
Tensor searchsorted(const TensorArg& sorted, const TensorArg& values, bool right = false);
Tensor bucketize(const TensorArg& values, const TensorArg& boundaries, bool right = false);
// How often each of 0, 1, … occurs among non-negative integers; reads x on the host.
Tensor bincount(const TensorArg& x, int64_t minlength = 0);

}  // namespace sinter
