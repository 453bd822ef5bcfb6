#pragma once
// Reductions over whole dimensions (none named: all of them), running reductions, what is made of them, and orderings.
#include <optional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// The sum; integers sum in i64.
Tensor sum(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The mean of a floating tensor; half types are summed in f32.
Tensor mean(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The product; integers multiply in i64.
Tensor prod(const TensorArg& x, std::optional<DType> dtype = {});
Tensor prod(const TensorArg& x, int64_t dim, bool keepdim = false, std::optional<DType> dtype = {});
// The sum with NaN counted as zero.
Tensor nansum(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// How many elements are not zero.
Tensor count_nonzero(const TensorArg& x, const IntList& dims = {});

// The largest element; NaN if any is. Its gradient is shared by equals.
Tensor amax(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);
// The lowest number there is where there are no elements; for what cancels out.
Tensor amax_if_any(const TensorArg& x, const IntList& dims, bool keepdim);
// The smallest element; NaN if any is. Its gradient is shared by equals.
Tensor amin(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);
// Where the largest element is: along a dimension, or in the flattened tensor. The first of equals.
Tensor argmax(const TensorArg& x, std::optional<int64_t> dim = {}, bool keepdim = false);
// Where the smallest element is.
Tensor argmin(const TensorArg& x, std::optional<int64_t> dim = {}, bool keepdim = false);
// The largest of all elements; along a dimension also where they are; of two tensors element by element.
Tensor max(const Tensor& x, Where where = Where::current());
std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim = false, Where where = Where::current());
Tensor max(const Tensor& a, const Tensor& b, Where where = Where::current());
// The same for the smallest.
Tensor min(const Tensor& x, Where where = Where::current());
std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim = false, Where where = Where::current());
Tensor min(const Tensor& a, const Tensor& b, Where where = Where::current());

// Whether any, or every, element is not zero.
Tensor any(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);
Tensor all(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);

// Variance and standard deviation; the divisor is the count less the correction.
Tensor var(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1, bool keepdim = false);
Tensor std(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1, bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1,
                                    bool keepdim = false);
// The p-norm; p may be 0 or an infinity.
Tensor norm(const TensorArg& x, const Scalar& p = 2, const IntList& dims = {}, bool keepdim = false);
// log(sum(exp(x))) without overflow.
Tensor logsumexp(const TensorArg& x, const IntList& dims, bool keepdim = false);
// exp(x) over its sum along a dimension. Half types are computed in f32; `dtype` converts the operand first.
Tensor softmax(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});

// Running sum and product along a dimension; integers in i64.
Tensor cumsum(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});
Tensor cumprod(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});

// --- orderings. NaN counts as the largest value, as in PyTorch. Equal elements keep their order

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
