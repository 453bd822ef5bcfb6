// Reductions over whole dimensions, and running ones.
#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

IntList dims_or_all(MaybeInts dims) { return dims.value_or(IntList()); }

// The correction of a variance is a number, in schemas of any kind.
using Correction = const std::optional<Scalar>&;
double number_of(Correction correction) { return correction ? correction->to_double() : 1; }
bool is_whole(Correction correction) { return number_of(correction) == std::floor(number_of(correction)); }

// By how much a fraction of a correction enlarges the variance without one, of which there are so many.
double enlargement(In x, const Tensor& results, Correction correction) {
  const double count = double(int64_t(results.numel())), n = count == 0 ? 0 : double(int64_t(x.tensor().numel())) / count;
  return n / std::max(n - number_of(correction), 0.0);
}

Tensor variance(In x, MaybeInts dims, Correction correction, bool keepdim) {
  if (is_whole(correction)) return var(x, dims_or_all(dims), int64_t(number_of(correction)), keepdim);
  Tensor plain = var(x, dims_or_all(dims), 0, keepdim);
  return plain * enlargement(x, plain, correction);
}
Tensor deviation(In x, MaybeInts dims, Correction correction, bool keepdim) {
  if (is_whole(correction)) return sinter::std(x, dims_or_all(dims), int64_t(number_of(correction)), keepdim);
  Tensor plain = sinter::std(x, dims_or_all(dims), 0, keepdim);
  return plain * std::sqrt(enlargement(x, plain, correction));
}

}  // namespace

std::span<const Function> reduction_functions() {
  static const Function kList[] = {
      {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeType dtype) { return sum(x, {}, false, dtype); }},
      {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim, MaybeType dtype) { return sum(x, dims_or_all(dims), keepdim, dtype); }},
      {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeType dtype) { return mean(x, {}, false, dtype); }},
      {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim, MaybeType dtype) { return mean(x, dims_or_all(dims), keepdim, dtype); }},
      {"nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim, MaybeType dtype) {
         return nansum(x, dims_or_all(dims), keepdim, dtype);
       }},
      {"nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim, MaybeType dtype) {
         return nanmean(x, dims_or_all(dims), keepdim, dtype);
       }},
      {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", [](In x, MaybeType dtype) { return prod(x, dtype); }},
      {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
       [](In x, Int dim, bool keepdim, MaybeType dtype) { return prod(x, dim, keepdim, dtype); }},
      {"sum_to_size(Tensor self, SymInt[] size) -> Tensor", sum_to_size},
      {"count_nonzero(Tensor self, int? dim=None) -> Tensor",
       [](In x, MaybeInt dim) { return count_nonzero(x, dim ? IntList{*dim} : IntList()); }},
      {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
       [](In x, Ints dims) { return count_nonzero(x, dims); }},
      {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", amax},
      {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", amin},
      {"max(Tensor self) -> Tensor", [](const Tensor& x) { return max(x); }},
      {"min(Tensor self) -> Tensor", [](const Tensor& x) { return min(x); }},
      {"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       [](const Tensor& x, Int dim, bool keepdim) { return max(x, dim, keepdim); }},
      {"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       [](const Tensor& x, Int dim, bool keepdim) { return min(x, dim, keepdim); }},
      {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
       [](In x, MaybeInt dim, bool keepdim) { return argmax(x, dim, keepdim); }},
      {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
       [](In x, MaybeInt dim, bool keepdim) { return argmin(x, dim, keepdim); }},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
       [](In x, MaybeInt dim, bool keepdim) { return aminmax(x, dim, keepdim); }},
      {"any(Tensor self) -> Tensor", [](In x) { return any(x); }},
      {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
       [](In x, Int dim, bool keepdim) { return any(x, dim, keepdim); }},
      {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim) { return any(x, dims_or_all(dims), keepdim); }},
      {"all(Tensor self) -> Tensor", [](In x) { return all(x); }},
      {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
       [](In x, Int dim, bool keepdim) { return all(x, dim, keepdim); }},
      {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
       [](In x, MaybeInts dims, bool keepdim) { return all(x, dims_or_all(dims), keepdim); }},
      {"var(Tensor self, bool unbiased=True) -> Tensor",
       [](In x, bool unbiased) { return var(x, IntList(), unbiased); }},
      {"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
       [](In x, MaybeInts dims, bool unbiased, bool keepdim) { return var(x, dims_or_all(dims), unbiased, keepdim); }},
      {"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", variance},
      {"std(Tensor self, bool unbiased=True) -> Tensor",
       [](In x, bool unbiased) { return sinter::std(x, IntList(), unbiased); }},
      {"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
       [](In x, MaybeInts dims, bool unbiased, bool keepdim) {
         return sinter::std(x, dims_or_all(dims), unbiased, keepdim);
       }},
      {"std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", deviation},
      {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
       [](In x, bool unbiased) { return var_mean(x, {}, unbiased); }},
      {"var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       [](In x, MaybeInts dims, bool unbiased, bool keepdim) {
         return var_mean(x, dims_or_all(dims), unbiased, keepdim);
       }},
      {"var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       [](In x, MaybeInts dims, Correction correction, bool keepdim) {
         if (is_whole(correction)) return var_mean(x, dims_or_all(dims), int64_t(number_of(correction)), keepdim);
         return std::tuple(variance(x, dims, correction, keepdim), mean(x, dims_or_all(dims), keepdim));
       }},
      {"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
       [](In x, bool unbiased) { return std_mean(x, {}, unbiased); }},
      {"std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
       [](In x, MaybeInts dims, bool unbiased, bool keepdim) {
         return std_mean(x, dims_or_all(dims), unbiased, keepdim);
       }},
      {"std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, "
       "Tensor)",
       [](In x, MaybeInts dims, Correction correction, bool keepdim) {
         if (is_whole(correction)) return std_mean(x, dims_or_all(dims), int64_t(number_of(correction)), keepdim);
         return std::tuple(deviation(x, dims, correction, keepdim), mean(x, dims_or_all(dims), keepdim));
       }},
      {"norm.Scalar(Tensor self, Scalar p=2) -> Tensor", [](In x, const Scalar& p) { return norm(x, p); }},
      {"norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
       [](In x, const std::optional<Scalar>& p, Ints dims, bool keepdim) {
         return norm(x, p.value_or(2), dims, keepdim);
       }},
      {"norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
       [](In x, const std::optional<Scalar>& p, Ints dims, bool keepdim, DType dtype) {
         return norm(x, p.value_or(2), dims, keepdim, dtype);
       }},
      {"norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
       [](In x, const std::optional<Scalar>& p, DType dtype) { return norm(x, p.value_or(2), {}, false, dtype); }},
      {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp},
      {"special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", logsumexp},

      // --- running
      {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumsum},
      {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumprod},
      {"logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp},
      {"cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", cummax},
      {"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", cummin},
      {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", diff},
  };
  return kList;
}

}  // namespace sinter::interop
