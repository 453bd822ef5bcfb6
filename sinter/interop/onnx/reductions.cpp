// Reductions and running sums. Axes are an attribute in older versions, and an input in newer ones.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// Without axes all dimensions are meant, or none where the operator says so.
template <class Reduce>
Tensor reduced(In x, MaybeInts axes, bool keeps_without_axes, Reduce reduce) {
  const bool has_axes = axes && !axes->empty();
  // Reduced over a new dimension of size 1: what is done to each element remains.
  if (!has_axes && keeps_without_axes) return reduce(unsqueeze(x, 0), IntList{0}, false);
  IntList dims;
  if (has_axes) dims = wrapped("reduction", *axes, x.dim());
  if (!has_axes)
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  return reduce(x.tensor(), dims, true);
}

using Formula = Tensor (*)(const Tensor& x, const IntList& dims, bool keep);

Tensor by(Formula formula, In operand, MaybeInts axes, bool keepdims, bool keeps_without_axes) {
  return reduced(operand, axes, keeps_without_axes, [&](const Tensor& x, const IntList& dims, bool by_user) {
    // A 0-d tensor has no dimension to name.
    const Tensor out = dims.empty() ? formula(unsqueeze(x, 0), IntList{0}, false) : formula(x, dims, by_user && keepdims);
    return out.to(operand.dtype());
  });
}

Tensor sum_of(const Tensor& x, const IntList& dims, bool keep) { return sum(x, dims, keep); }
Tensor mean_of(const Tensor& x, const IntList& dims, bool keep) {
  return is_floating(x.dtype()) ? mean(x, dims, keep) : floor(mean(x.to(kFloat64), dims, keep));
}
// The extremes of nothing are infinities, or the ends of the type.
Tensor extreme_of(const Tensor& x, const IntList& dims, bool keep, bool largest) {
  if (x.dtype() == kBool) return largest ? any(x, dims, keep) : all(x, dims, keep);
  bool is_empty = false;
  for (int64_t dim : dims) is_empty = is_empty || x.size(dim) == 0;
  if (!is_empty) return largest ? amax(x, dims, keep) : amin(x, dims, keep);
  const Scalar end = is_floating(x.dtype()) ? Scalar(largest ? -INFINITY : INFINITY)
                                            : Scalar(largest ? iinfo(x.dtype()).min : iinfo(x.dtype()).max);
  return full(sum(x, dims, keep).sizes(), end, x.options());
}
Tensor max_of(const Tensor& x, const IntList& dims, bool keep) { return extreme_of(x, dims, keep, true); }
Tensor min_of(const Tensor& x, const IntList& dims, bool keep) { return extreme_of(x, dims, keep, false); }
Tensor l1_of(const Tensor& x, const IntList& dims, bool keep) { return sum(abs(x), dims, keep); }
Tensor l2_of(const Tensor& x, const IntList& dims, bool keep) { return sqrt(sum(square(x), dims, keep).to(is_floating(x.dtype()) ? x.dtype() : kFloat64)); }
Tensor squares_of(const Tensor& x, const IntList& dims, bool keep) { return sum(square(x), dims, keep); }
Tensor log_sum_of(const Tensor& x, const IntList& dims, bool keep) { return log(sum(x, dims, keep)); }
Tensor log_sum_exp_of(const Tensor& x, const IntList& dims, bool keep) {
  return logsumexp(is_floating(x.dtype()) ? x : x.to(kFloat64), dims, keep);
}

template <Formula formula>
Tensor reduction(In x, MaybeInts axes, bool keepdims, bool keeps) {
  return by(formula, x, axes, keepdims, keeps);
}

// A running sum or product; exclusive: without the element itself.
template <class Running>
Tensor running(In x, Any axis, bool exclusive, bool reverse, double start, Running run) {
  const int64_t dim = wrap_dim("CumSum", value_to<int64_t>(axis), x.dim());
  Tensor from = reverse ? flip(x, {dim}) : x.tensor();
  if (exclusive) {
    const Tensor first = full_like(narrow(from, dim, 0, 1), start);
    from = cat({first, narrow(from, dim, 0, from.size(dim) - 1)}, dim);
  }
  const Tensor out = run(from, dim).to(x.dtype());
  return reverse ? flip(out, {dim}) : out;
}

}  // namespace

std::span<const Function> reduction_operators() {
  static const Function kList[] = {
      {"onnx::ReduceSum.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<sum_of>},
      {"onnx::ReduceMean.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<mean_of>},
      {"onnx::ReduceMax.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<max_of>},
      {"onnx::ReduceMin.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<min_of>},
      {"onnx::ReduceL1.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<l1_of>},
      {"onnx::ReduceL2.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<l2_of>},
      {"onnx::ReduceSumSquare.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<squares_of>},
      {"onnx::ReduceLogSum.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<log_sum_of>},
      {"onnx::ReduceLogSumExp.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       reduction<log_sum_exp_of>},
      {"onnx::CumSum.11(Tensor x, Tensor axis, *, int exclusive=0, int reverse=0) -> Tensor",
       [](In x, Any axis, bool exclusive, bool reverse) {
         return running(x, axis, exclusive, reverse, 0, [](const Tensor& t, int64_t dim) { return cumsum(t, dim); });
       }},
      {"onnx::CumProd.26(Tensor x, Tensor axis, *, int exclusive=0, int reverse=0) -> Tensor",
       [](In x, Any axis, bool exclusive, bool reverse) {
         return running(x, axis, exclusive, reverse, 1, [](const Tensor& t, int64_t dim) { return cumprod(t, dim); });
       }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
