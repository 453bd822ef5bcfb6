// Statistics, and integrals and slopes of samples.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/reduce.h"

namespace sinter::interop {

namespace {

using Scalars = const std::vector<Scalar>&;

IntList dim_or_all(MaybeInt dim) { return dim ? IntList{*dim} : IntList(); }

using MaybeReals = const std::optional<std::vector<double>>&;

std::optional<std::array<double, 2>> range_of(MaybeReals range) {
  if (!range) return std::nullopt;
  check(range->size() == 2, "a range has two ends, not {}", range->size());
  return std::array{(*range)[0], (*range)[1]};
}

ValueList with_edges(const std::tuple<Tensor, TensorList>& counted) {
  return {Value{std::get<0>(counted)}, results_of(std::get<1>(counted)).at(0)};
}

}  // namespace

std::span<const Function> statistics_functions() {
  static const Function kList[] = {
      {"cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", cov},
      {"corrcoef(Tensor self) -> Tensor", corrcoef},
      {"histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
       "Tensor bin_edges)",
       [](In x, const Tensor& bins, const Tensor& weight, bool density) {
         return histogram(x, bins, weight, density);
       }},
      {"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
       "-> "
       "(Tensor hist, Tensor bin_edges)",
       [](In x, Int bins, MaybeReals range, const Tensor& weight, bool density) {
         return histogram(x, bins, range_of(range), weight, density);
       }},
      {"histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor "
       "hist, "
       "Tensor[] bin_edges)",
       [](In x, Ints bins, MaybeReals range, const Tensor& weight, bool density) {
         return with_edges(histogramdd(x, bins, range, weight, density));
       }},
      {"histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> "
       "(Tensor "
       "hist, Tensor[] bin_edges)",
       [](In x, Int bins, MaybeReals range, const Tensor& weight, bool density) {
         return with_edges(histogramdd(x, bins, range, weight, density));
       }},
      {"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> "
       "(Tensor hist, Tensor[] bin_edges)",
       [](In x, const TensorList& bins, Ignored, const Tensor& weight, bool density) {
         return with_edges(histogramdd(x, bins, weight, density));
       }},
      {"_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> "
       "Tensor[]",
       [](In x, Ints bins, MaybeReals range, Ignored, Ignored) { return std::get<1>(histogramdd(x, bins, range)); }},
      {"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
       "density=False) -> "
       "Tensor",
       [](In x, Ints bins, MaybeReals range, const Tensor& weight, bool density) {
         return std::get<0>(histogramdd(x, bins, range, weight, density));
       }},
      {"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> "
       "Tensor",
       [](In x, const TensorList& bins, const Tensor& weight, bool density) {
         return std::get<0>(histogramdd(x, bins, weight, density));
       }},
      {"segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
       "int axis=0, "
       "bool unsafe=False, Scalar? initial=None) -> Tensor",
       [](In x, Text reduce, const Tensor& lengths, const Tensor& indices, const Tensor& offsets, Int axis, bool unsafe,
          const std::optional<Scalar>& initial) {
         return segment_reduce(x, reduce, lengths, indices, offsets, axis, unsafe, initial);
       }},

      // --- neighbours
      {"trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
       [](In y, const Tensor& x, Int dim) { return trapezoid(y, x, dim); }},
      {"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
       [](In y, const Scalar& dx, Int dim) { return trapezoid(y, dx, dim); }},
      {"trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
       [](In y, const Tensor& x, Int dim) { return trapezoid(y, x, dim); }},
      {"trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
       [](In y, double dx, Int dim) { return trapezoid(y, dx, dim); }},
      {"cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
       [](In y, const Tensor& x, Int dim) { return cumulative_trapezoid(y, x, dim); }},
      {"cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
       [](In y, const Scalar& dx, Int dim) { return cumulative_trapezoid(y, dx, dim); }},
      {"gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
       [](In x, const std::optional<Scalar>& spacing, MaybeInt dim, Int edge_order) {
         return gradient(x, spacing.value_or(1), dim_or_all(dim), edge_order);
       }},
      {"gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
       [](In x, const Scalar& spacing, Ints dims, Int edge_order) { return gradient(x, spacing, dims, edge_order); }},
      {"gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
       [](In x, Ints dims, Int edge_order) { return gradient(x, 1, dims, edge_order); }},
      {"gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
       [](In x, Scalars spacing, MaybeInt dim, Int edge_order) {
         return gradient(x, spacing, dim_or_all(dim), edge_order);
       }},
      {"gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
       [](In x, Scalars spacing, Ints dims, Int edge_order) { return gradient(x, spacing, dims, edge_order); }},
      {"gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
       [](In x, const TensorList& spacing, MaybeInt dim, Int edge_order) {
         return gradient(x, spacing, dim_or_all(dim), edge_order);
       }},
      {"gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
       [](In x, const TensorList& spacing, Ints dims, Int edge_order) {
         return gradient(x, spacing, dims, edge_order);
       }},
  };
  return kList;
}

}  // namespace sinter::interop
