// Orderings, searches and counts.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/reduce.h"

namespace sinter::interop {

namespace {

// What was not asked for is there all the same, and empty.
std::tuple<Tensor, Tensor, Tensor> filled(const std::tuple<Tensor, Tensor, Tensor>& found) {
  auto or_empty = [](const Tensor& t) { return t.defined() ? t : empty({0}, kInt64); };
  return {std::get<0>(found), or_empty(std::get<1>(found)), or_empty(std::get<2>(found))};
}

using MaybeText = const std::optional<std::string>&;

std::optional<std::string_view> viewed(MaybeText text) {
  return text ? std::optional<std::string_view>(*text) : std::nullopt;
}

}  // namespace

std::span<const Function> sorting_functions() {
  static const Function kList[] = {
      {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
       [](In x, Int dim, bool descending) { return sort(x, dim, descending); }},
      {"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
       "indices)",
       [](In x, Ignored, Int dim, bool descending) { return sort(x, dim, descending); }},
      {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
       [](In x, Int dim, bool descending) { return argsort(x, dim, descending); }},
      {"argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
       [](In x, Ignored, Int dim, bool descending) { return argsort(x, dim, descending); }},
      {"msort(Tensor self) -> Tensor", msort},
      {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
       "indices)",
       topk},
      {"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", kthvalue},
      {"median(Tensor self) -> Tensor", [](In x) { return median(x); }},
      {"median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       [](In x, Int dim, bool keepdim) { return median(x, dim, keepdim); }},
      {"nanmedian(Tensor self) -> Tensor", [](In x) { return nanmedian(x); }},
      {"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       [](In x, Int dim, bool keepdim) { return nanmedian(x, dim, keepdim); }},
      {"mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", mode},
      {"quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
       [](In x, In q, MaybeInt dim, bool keepdim, Text interpolation) {
         return quantile(x, q, dim, keepdim, interpolation);
       }},
      {"quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
       "Tensor",
       [](In x, In q, MaybeInt dim, bool keepdim, Text interpolation) {
         return quantile(x, q, dim, keepdim, interpolation);
       }},
      {"nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> "
       "Tensor",
       [](In x, In q, MaybeInt dim, bool keepdim, Text interpolation) {
         return nanquantile(x, q, dim, keepdim, interpolation);
       }},
      {"nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") "
       "-> Tensor",
       [](In x, In q, MaybeInt dim, bool keepdim, Text interpolation) {
         return nanquantile(x, q, dim, keepdim, interpolation);
       }},
      {"nonzero(Tensor self) -> Tensor", nonzero},
      {"nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", nonzero_static},
      {"argwhere(Tensor self) -> Tensor", argwhere},
      {"nonzero_numpy(Tensor self) -> Tensor[]", nonzero_numpy},
      {"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
       "Tensor, Tensor)",
       [](In x, bool sorted, bool inverse, bool counts) { return filled(unique(x, sorted, inverse, counts)); }},
      {"unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
       "(Tensor, Tensor, Tensor)",
       [](In x, Int dim, bool sorted, bool inverse, bool counts) {
         return filled(unique_dim(x, dim, sorted, inverse, counts));
       }},
      {"unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
       "(Tensor, Tensor, Tensor)",
       [](In x, bool inverse, bool counts, MaybeInt dim) {
         return filled(unique_consecutive(x, inverse, counts, dim));
       }},
      {"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
       "side=None, Tensor? sorter=None) -> Tensor",
       [](In sorted, In values, bool out_int32, bool right, MaybeText side, const Tensor& sorter) {
         return searchsorted(sorted, values, out_int32, right, viewed(side), sorter);
       }},
      {"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
       "side=None, Tensor? sorter=None) -> Tensor",
       [](In sorted, In values, bool out_int32, bool right, MaybeText side, const Tensor& sorter) {
         return searchsorted(sorted, values, out_int32, right, viewed(side), sorter);
       }},
      {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
       bucketize},
      {"bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
       bucketize},
      {"bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
       [](In x, const Tensor& weights, Int minlength) {
         return weights.defined() ? bincount(x, weights, minlength) : bincount(x, minlength);
       }},
      {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc},
  };
  return kList;
}

}  // namespace sinter::interop
