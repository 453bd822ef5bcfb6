#pragma once
// Reductions over whole dimensions (none named: all of them), running reductions, what is made of them, and orderings.
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// The sum; integers sum in i64.
Tensor sum(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
inline Tensor sum(const TensorArg& x, GivenDType dtype) { return sum(x, {}, false, dtype.value); }
// The mean of a floating tensor; half types are summed in f32.
Tensor mean(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
inline Tensor mean(const TensorArg& x, GivenDType dtype) { return mean(x, {}, false, dtype.value); }
// The product; integers multiply in i64.
Tensor prod(const TensorArg& x, std::optional<DType> dtype = {});
Tensor prod(const TensorArg& x, int64_t dim, bool keepdim = false, std::optional<DType> dtype = {});
// The sum with NaN counted as zero.
Tensor nansum(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The mean of what is not NaN.
Tensor nanmean(const TensorArg& x, const IntList& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// How many elements are not zero.
Tensor count_nonzero(const TensorArg& x, const IntList& dims = {});

// The largest element; NaN if any is. Its gradient is shared by equals.
Tensor amax(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);
// The lowest number there is where there are no elements; for what cancels out.
Tensor amax_if_any(const TensorArg& x, const IntList& dims, bool keepdim);  // no method
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

// The smallest and the largest element, of all or along a dimension.
std::tuple<Tensor, Tensor> aminmax(const TensorArg& x, std::optional<int64_t> dim = {}, bool keepdim = false);

// Whether any, or every, element is not zero.
Tensor any(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);
Tensor all(const TensorArg& x, const IntList& dims = {}, bool keepdim = false);

// Variance and standard deviation; the divisor is the count less the correction.
Tensor var(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1, bool keepdim = false);
Tensor std(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1, bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1,
                                    bool keepdim = false);
std::tuple<Tensor, Tensor> std_mean(const TensorArg& x, const IntList& dims = {}, int64_t correction = 1,
                                    bool keepdim = false);
// The covariances of variables, one in each row, whose columns are observations with how often each occurred and its weight.
Tensor cov(const TensorArg& x, int64_t correction = 1, const Tensor& fweights = {}, const Tensor& aweights = {});
// The same over the standard deviations.
Tensor corrcoef(const TensorArg& x);
// Variance and standard deviation of all elements, told whether the divisor is the count less one or the count.
inline Tensor var(const TensorArg& x, GivenBool unbiased) { return var(x, {}, unbiased.value); }
inline Tensor std(const TensorArg& x, GivenBool unbiased) { return std(x, {}, unbiased.value); }
// The p-norm; p may be 0 or an infinity. `dtype` converts the operand first.
Tensor norm(const TensorArg& x, const Scalar& p = 2, const IntList& dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
inline Tensor norm(const TensorArg& x, const Scalar& p, GivenDType dtype) {
  return norm(x, p, {}, false, dtype.value);
}
// log(sum(exp(x))) without overflow.
Tensor logsumexp(const TensorArg& x, const IntList& dims, bool keepdim = false);
// exp(x) over its sum along a dimension. Half types are computed in f32; `dtype` converts the operand first.
Tensor softmax(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});

// Running sum and product along a dimension; integers in i64.
Tensor cumsum(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});  // in place too
Tensor cumprod(const TensorArg& x, int64_t dim, std::optional<DType> dtype = {});  // in place too

// log(cumsum(exp(x))) without overflow.
Tensor logcumsumexp(const TensorArg& x, int64_t dim);
// The largest, or smallest, element so far along a dimension and where it is: the last of equals; NaN once there is one.
std::tuple<Tensor, Tensor> cummax(const TensorArg& x, int64_t dim);
std::tuple<Tensor, Tensor> cummin(const TensorArg& x, int64_t dim);

// --- neighbours along a dimension
// The differences of neighbours, n times; `prepend` and `append` are joined to x first.
Tensor diff(const TensorArg& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {}, const Tensor& append = {});
// The integral by trapezoids of samples that are dx, or x, apart; and what it has come to at each sample.
Tensor trapezoid(const TensorArg& y, const Scalar& dx = 1, int64_t dim = -1);
Tensor trapezoid(const TensorArg& y, const Tensor& x, int64_t dim = -1);
inline Tensor trapz(const TensorArg& y, const Tensor& x, int64_t dim = -1) { return trapezoid(y, x, dim); }
inline Tensor trapz(const TensorArg& y, double dx = 1, int64_t dim = -1) { return trapezoid(y, dx, dim); }
Tensor cumulative_trapezoid(const TensorArg& y, const Scalar& dx = 1, int64_t dim = -1);
Tensor cumulative_trapezoid(const TensorArg& y, const Tensor& x, int64_t dim = -1);
// The slope along each of the dimensions (none named: all of them) of samples that are `spacing` apart, by differences that
// are exact for polynomials of degree 2 inside and of degree edge_order (1 or 2) at the edges.
TensorList gradient(const TensorArg& x, const Scalar& spacing = 1, const IntList& dims = {}, int64_t edge_order = 1);
// The same with one spacing, or the coordinates of the samples, for each dimension.
TensorList gradient(const TensorArg& x, const std::vector<Scalar>& spacing, const IntList& dims = {},
                    int64_t edge_order = 1);
TensorList gradient(const TensorArg& x, const TensorList& coordinates, const IntList& dims = {}, int64_t edge_order = 1);

// --- orderings. NaN counts as the largest value, as in PyTorch. Equal elements keep their order

// Values in order along a dimension, and the positions they came from. Always stable.
std::tuple<Tensor, Tensor> sort(const TensorArg& x, GivenDim dim = -1, bool descending = false, bool stable = true);
Tensor argsort(const TensorArg& x, GivenDim dim = -1, bool descending = false, bool stable = true);
// LibTorch's order of arguments where `stable` is told.
inline std::tuple<Tensor, Tensor> sort(const TensorArg& x, GivenBool stable, int64_t dim = -1, bool descending = false) {
  return sort(x, dim, descending, stable.value);
}
inline Tensor argsort(const TensorArg& x, GivenBool stable, int64_t dim = -1, bool descending = false) {
  return argsort(x, dim, descending, stable.value);
}
// The values in order along the first dimension.
Tensor msort(const TensorArg& x);
// The k largest (or smallest) along a dimension and their positions; always sorted.
std::tuple<Tensor, Tensor> topk(const TensorArg& x, Dim k, int64_t dim = -1, bool largest = true, bool sorted = true);
// The k-th smallest (from 1) along a dimension and its position.
std::tuple<Tensor, Tensor> kthvalue(const TensorArg& x, Dim k, int64_t dim = -1, bool keepdim = false);
// The lower median along a dimension and its position; NaN when the dimension holds one.
std::tuple<Tensor, Tensor> median(const TensorArg& x, int64_t dim, bool keepdim = false);
// The lower median of all elements.
Tensor median(const TensorArg& x);
// The same of what is not NaN.
std::tuple<Tensor, Tensor> nanmedian(const TensorArg& x, int64_t dim, bool keepdim = false);
Tensor nanmedian(const TensorArg& x);
// The most frequent element along a dimension, the smallest of equals, and the last position that has it.
std::tuple<Tensor, Tensor> mode(const TensorArg& x, int64_t dim = -1, bool keepdim = false);
// What a share q of the elements does not exceed, along a dimension or of all; a vector of shares adds a first dimension.
// Between two elements: "linear", "lower", "higher", "midpoint" or "nearest". NaN if there is one.
Tensor quantile(const TensorArg& x, const TensorArg& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                std::string_view interpolation = "linear");
// The same of what is not NaN.
Tensor nanquantile(const TensorArg& x, const TensorArg& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                   std::string_view interpolation = "linear");
// Coordinates of the elements that are not zero, one row each, in row-major order.
Tensor nonzero(const TensorArg& x);
inline Tensor argwhere(const TensorArg& x) { return nonzero(x); }
// The first `size` of these rows; where there are fewer, rows of fill_value follow. The data does not decide the shape.
Tensor nonzero_static(const TensorArg& x, int64_t size, int64_t fill_value = -1);
// The same as nonzero, one tensor per dimension.
TensorList nonzero_numpy(const TensorArg& x);
// Distinct elements in order; the position of each element of x among them; how often each occurs. The last two are
// undefined unless asked for.
std::tuple<Tensor, Tensor, Tensor> unique(const TensorArg& x, bool sorted = true, bool return_inverse = false,
                                          bool return_counts = false);
// LibTorch's names of it.
inline std::tuple<Tensor, Tensor, Tensor> _unique2(const TensorArg& x, bool sorted = true, bool return_inverse = false,
                                                   bool return_counts = false) {
  return unique(x, sorted, return_inverse, return_counts);
}  // no method
std::tuple<Tensor, Tensor> _unique(const TensorArg& x, bool sorted = true, bool return_inverse = false);  // no method
// The same for the slices along a dimension.
std::tuple<Tensor, Tensor, Tensor> unique_dim(const TensorArg& x, int64_t dim, bool sorted = true,
                                              bool return_inverse = false, bool return_counts = false);
// Elements, or slices along a dimension, without those that equal the one before; where each went; how many became one.
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const TensorArg& x, bool return_inverse = false,
                                                      bool return_counts = false, std::optional<int64_t> dim = {});
// Where each value would go in the last dimension of `sorted` to keep it in order: before equal elements, or after
// (right, or side = "right"). With a `sorter` the sequence is taken in that order. Positions are i64 or i32.
Tensor searchsorted(const TensorArg& sorted, const TensorArg& values, bool out_int32 = false, bool right = false,
                    std::optional<std::string_view> side = {}, const Tensor& sorter = {});
Tensor bucketize(const TensorArg& values, const TensorArg& boundaries, bool out_int32 = false, bool right = false);
// How often each of 0, 1, … occurs among non-negative integers, or the sum of the weights of its places; reads x on the host.
Tensor bincount(const TensorArg& x, int64_t minlength = 0);
Tensor bincount(const TensorArg& x, const Tensor& weights, int64_t minlength = 0);
// How many elements lie in each of `bins` equal parts of [min, max], or of the range of x where both are equal.
Tensor histc(const TensorArg& x, int64_t bins = 100, const Scalar& min = 0, const Scalar& max = 0);
// How many elements (or the sum of whose weights) lie between neighbouring edges, the last included, and the edges: given,
// or of equal parts of a range, which is that of x by default. As a density the parts integrate to 1.
std::tuple<Tensor, Tensor> histogram(const TensorArg& x, const Tensor& bins, const Tensor& weight = {},
                                     bool density = false);
std::tuple<Tensor, Tensor> histogram(const TensorArg& x, int64_t bins = 100,
                                     const std::optional<std::array<double, 2>>& range = {}, const Tensor& weight = {},
                                     bool density = false);

// The same of points: x holds their coordinates in its last dimension, hist has a dimension for each of them; the edges
// are one vector for each. A range is the least and the greatest of the first coordinate, of the second, and so on.
std::tuple<Tensor, TensorList> histogramdd(const TensorArg& x, const TensorList& bins, const Tensor& weight = {},
                                           bool density = false);  // no method
std::tuple<Tensor, TensorList> histogramdd(const TensorArg& x, const IntList& bins,
                                           const std::optional<std::vector<double>>& range = {},
                                           const Tensor& weight = {}, bool density = false);  // no method
std::tuple<Tensor, TensorList> histogramdd(const TensorArg& x, int64_t bins,
                                           const std::optional<std::vector<double>>& range = {},
                                           const Tensor& weight = {}, bool density = false);  // no method

// --- runs of elements
// "sum", "mean", "max", "min" or "prod" of runs of elements along a dimension, which follow one another: given by their
// lengths, or by where each begins and the last ends. The dimensions of x in front of that one have runs of their own:
// lengths (offsets) is of their sizes, and then of a length for each run. A run without elements gives 0, NaN, -inf,
// inf or 1, or `initial`, which is counted in everywhere. Unless `unsafe` the lengths must add up to the size.
// `indices` is not there yet, as in PyTorch.
Tensor segment_reduce(const TensorArg& x, std::string_view reduce, const Tensor& lengths = {},
                      const Tensor& indices = {}, const Tensor& offsets = {}, int64_t axis = 0, bool unsafe = false,
                      const std::optional<Scalar>& initial = {});  // no method

}  // namespace sinter
