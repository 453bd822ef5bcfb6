#include <cmath>

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/ops/composites.h"

namespace sinter::testing {

std::vector<Composite> arrangement_composites() {
  return {
      // --- joining, taking apart, diagonals
      {"hstack", [](X x) -> TensorList { return {hstack(x)}; }},
      {"hstack_vectors", [](X x) -> TensorList { return {hstack(x)}; }},
      {"vstack", [](X x) -> TensorList { return {vstack(x)}; }},
      {"dstack", [](X x) -> TensorList { return {dstack(x)}; }},
      {"column_stack", [](X x) -> TensorList { return {column_stack(x)}; }},
      {"block_diag", [](X x) -> TensorList { return {block_diag(x)}; }},
      {"cartesian_prod", [](X x) -> TensorList { return {cartesian_prod(x)}; }},
      {"combinations", [](X x) -> TensorList { return {combinations(x[0], 3)}; }},
      {"combinations_replaced", [](X x) -> TensorList { return {combinations(x[0], 2, true)}; }},
      {"atleast_3d", [](X x) -> TensorList { return {atleast_3d(x[0])}; }},
      {"diag_vector", [](X x) -> TensorList { return {diag(x[0], 1)}; }},
      {"diag_matrix", [](X x) -> TensorList { return {diag(x[0], -1)}; }},
      {"diag_embed", [](X x) -> TensorList { return {diag_embed(x[0], -1, 0, 2)}; }},
      {"diagflat", [](X x) -> TensorList { return {diagflat(x[0], 1)}; }},
      {"tensor_split", [](X x) { return tensor_split(x[0], 3, 1); }},
      {"tensor_split_at",
       [](X x) {
         return tensor_split(x[0], {1, 4});
       }},
      {"hsplit", [](X x) { return hsplit(x[0], 2); }},
      {"fliplr", [](X x) -> TensorList { return {fliplr(x[0])}; }},
      {"broadcast_tensors", [](X x) { return broadcast_tensors(x); }},
      {"put", [](X x) -> TensorList { return {put(x[0], x[1], x[2])}; }},
      {"put_accumulate", [](X x) -> TensorList { return {put(x[0], x[1], x[2], true)}; }},
      {"index_reduce_amax", [](X x) -> TensorList { return {index_reduce(x[0], 0, x[1], x[2], "amax")}; }},
      {"index_reduce_mean", [](X x) -> TensorList { return {index_reduce(x[0], 1, x[1], x[2], "mean", false)}; }},
      {"scatter_multiply", [](X x) -> TensorList { return {scatter(x[0], 1, x[1], x[2], "multiply")}; }},
      // --- element by element
      {"nan_to_num", [](X x) -> TensorList { return {nan_to_num(x[0], 0.5, 7, -8)}; }},
      {"nan_to_num_grad", [](X x) -> TensorList { return {nan_to_num(where(x[0] > 0, x[0], NAN), 2)}; }},
      {"isneginf",
       [](X x) -> TensorList {
         return {isneginf(x[0]), isposinf(x[0]), isreal(x[0])};
       }},
      {"signbit", [](X x) -> TensorList { return {signbit(x[0])}; }},
      {"frac", [](X x) -> TensorList { return {frac(3 * x[0])}; }},
      {"frexp", [](X x) { return list(frexp(x[0])); }},
      {"deg2rad", [](X x) -> TensorList { return {deg2rad(rad2deg(x[0]) * 2)}; }},
      {"sinc", [](X x) -> TensorList { return {sinc(x[0])}; }},
      {"logit", [](X x) -> TensorList { return {logit(x[0])}; }},
      {"logit_eps", [](X x) -> TensorList { return {logit(x[0], 0.3)}; }},
      {"round_decimals", [](X x) -> TensorList { return {round(100 * x[0].detach(), -1)}; }},
      {"float_power", [](X x) -> TensorList { return {float_power(x[0], x[1])}; }},
      {"ldexp", [](X x) -> TensorList { return {ldexp(x[0], x[1])}; }},
      {"logaddexp2", [](X x) -> TensorList { return {logaddexp2(x[0], x[1])}; }},
      {"heaviside", [](X x) -> TensorList { return {heaviside(x[0], x[1])}; }},
      {"isin", [](X x) -> TensorList { return {isin(x[0], x[1])}; }},
      {"isin_many", [](X x) -> TensorList { return {isin(x[0], x[1], false, true)}; }},
      {"clip", [](X x) -> TensorList { return {clip(x[0], -0.5, 0.7)}; }},
      // --- neighbours, scans, orderings
      {"diff", [](X x) -> TensorList { return {diff(x[0], 2, 0)}; }},
      {"diff_joined", [](X x) -> TensorList { return {diff(x[0], 1, -1, x[1], x[2])}; }},
      {"cummax", [](X x) { return list(cummax(x[0], 1)); }},
      {"cummin", [](X x) { return list(cummin(x[0], 0)); }},
      {"cummax_ties", [](X x) { return list(cummax(x[0], 0)); }},
      {"logcumsumexp", [](X x) -> TensorList { return {logcumsumexp(5 * x[0], 1)}; }},
      {"trapezoid", [](X x) -> TensorList { return {trapezoid(x[0], 0.5, 0)}; }},
      {"trapezoid_at", [](X x) -> TensorList { return {trapezoid(x[0], x[1], 0)}; }},
      {"cumulative_trapezoid", [](X x) -> TensorList { return {cumulative_trapezoid(x[0])}; }},
      {"cumulative_trapezoid_at", [](X x) -> TensorList { return {cumulative_trapezoid(x[0], x[1])}; }},
      {"gradient", [](X x) { return gradient(x[0], 0.5); }},
      {"gradient_edges", [](X x) { return gradient(x[0], 2.0, {1}, 2); }},
      {"gradient_at", [](X x) { return gradient(x[0], TensorList{x[1]}, {0}, 2); }},
      {"msort", [](X x) -> TensorList { return {msort(x[0])}; }},
      {"nanmedian", [](X x) { return list(nanmedian(x[0], 1)); }},
      {"mode", [](X x) { return list(mode(x[0], 1)); }},
      {"quantile",
       [](X x) -> TensorList {
         return {quantile(x[0], tensor({0.1, 0.5, 0.9}), 1)};
       }},
      {"quantile_all", [](X x) -> TensorList { return {quantile(x[0], 0.3, {}, false, "higher")}; }},
      {"quantile_keepdim", [](X x) -> TensorList { return {quantile(x[0], 0.75, 0, true, "midpoint")}; }},
      {"nanquantile", [](X x) -> TensorList { return {nanquantile(x[0], 0.4, 1)}; }},
      {"histc", [](X x) -> TensorList { return {histc(x[0], 6)}; }},
      {"histc_range", [](X x) -> TensorList { return {histc(x[0], 5, -1, 1)}; }},
      {"histogram", [](X x) { return list(histogram(x[0], 5, {}, x[1], true)); }},
      {"histogram_edges", [](X x) { return list(histogram(x[0], x[1])); }},
      {"unique_consecutive", [](X x) { return list(unique_consecutive(x[0], true, true)); }},
      {"unique_consecutive_dim", [](X x) { return list(unique_consecutive(x[0], true, true, 1)); }},
      {"unique_dim", [](X x) { return list(unique_dim(x[0], 1, true, true, true)); }},
      {"bincount_weights", [](X x) -> TensorList { return {bincount(x[0], x[1])}; }, true},
      {"searchsorted_side", [](X x) -> TensorList { return {searchsorted(x[0], x[1], true, false, "right", x[2])}; }},
      // --- reductions
      {"nanmean", [](X x) -> TensorList { return {nanmean(x[0], {1})}; }},
      {"aminmax", [](X x) { return list(aminmax(x[0], 1)); }},
      {"std_mean", [](X x) { return list(std_mean(x[0], {1})); }},
      {"cov", [](X x) -> TensorList { return {cov(x[0])}; }},
      {"cov_weights", [](X x) -> TensorList { return {cov(x[0], 0, x[1], x[2])}; }},
      {"corrcoef", [](X x) -> TensorList { return {corrcoef(x[0])}; }},
      // --- numbers alone
      {"logspace", [](X) -> TensorList { return {logspace(-1, 2, 7, 2)}; }},
      {"tril_indices",
       [](X) -> TensorList {
         return {tril_indices(3, 4, 1), triu_indices(4, 3, -1)};
       }},
  };
}

}  // namespace sinter::testing
