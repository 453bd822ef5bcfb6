// Cases of tests/ops/composites_recorded_test.cpp: factorisations of any matrices, drawn windows, runs of elements,
// whole numbers.
#include "sinter/nn/linear.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/ops/composites.h"

namespace sinter::testing {

namespace {

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }
Tensor positive(const Tensor& x) { return matmul(x, transposed(x)) + eye(x.size(-1)); }

// A function of the matrix: the phases of the vectors cancel.
Tensor exponential(const Tensor& values, const Tensor& vectors) {
  const Tensor turned = complex(-0.3 * imag(values), 0.3 * real(values));
  return view_as_real(matmul(vectors * exp(turned).unsqueeze(-2), linalg::inv(vectors)));
}

TensorList runs(const Tensor& x, const Tensor& lengths, int64_t axis = 0, const std::optional<Scalar>& initial = {}) {
  TensorList out;
  for (auto* reduce : {"sum", "mean", "max", "min", "prod"})
    out.push_back(segment_reduce(x, reduce, lengths, {}, {}, axis, false, initial));
  return out;
}

TensorList counted(const std::tuple<Tensor, TensorList>& result) {
  TensorList out{std::get<0>(result)};
  for (auto& edges : std::get<1>(result)) out.push_back(edges);
  return out;
}

TensorList reduced(const std::vector<Reduction>& reductions, const std::function<Tensor(Reduction)>& loss) {
  TensorList out;
  for (Reduction reduction : reductions) out.push_back(loss(reduction));
  return out;
}

}  // namespace

std::vector<Composite> irregular_composites() {
  using nn::functional::linear_cross_entropy;
  constexpr auto kNone = Reduction::kNone, kMean = Reduction::kMean, kSum = Reduction::kSum;
  return {
      // --- factorisations
      {"ormqr",
       [](X x) -> TensorList {
         Tensor c = transposed(x[2]);
         return {ormqr(x[0], x[1], x[2]), ormqr(x[0], x[1], x[2], true, true), ormqr(x[0], x[1], c, false),
                 ormqr(x[0], x[1], c, false, true)};
       }},
      {"geqrf", [](X x) { return list(geqrf(x[0])); }},
      {"ldl_solve",
       [](X x) -> TensorList {
         auto [ld, pivots] = linalg::ldl_factor(x[0] + transposed(x[0]));
         return {linalg::ldl_solve(ld, pivots, x[1])};
       }},
      {"eig",
       [](X x) -> TensorList {
         auto [values, vectors] = linalg::eig(x[0]);
         Tensor sizes = abs(vectors);
         return {exponential(values, vectors), view_as_real((values * values * values).sum({-1})),
                 (sizes * sizes * sizes).sum({-2, -1})};
       }},
      {"eigvals",
       [](X x) -> TensorList {
         Tensor sizes = abs(linalg::eigvals(x[0]));
         return {(sizes * sizes * sizes).sum({-1})};
       }},
      {"eig_of_complex",
       [](X x) -> TensorList {
         auto [values, vectors] = linalg::eig(view_as_complex(x[0]));
         Tensor sizes = abs(values);
         return {exponential(values, vectors), (sizes * sizes * sizes).sum({-1})};
       }},
      {"polar", [](X x) { return list(linalg::polar(x[0])); }},
      {"polar_square", [](X x) { return list(linalg::polar(x[0])); }},
      {"matrix_sqrth", [](X x) -> TensorList { return {linalg::matrix_sqrth(positive(x[0]))}; }},
      {"matrix_sqrth_leaf", [](X x) -> TensorList { return {linalg::matrix_sqrth(x[0])}; }},
      // --- drawn windows
      {"fractional_max_pool2d",
       [](X x) {
         return list(fractional_max_pool2d(x[0], {2, 3}, {4, 5}, x[1]));
       }},
      {"fractional_max_pool2d_unbatched",
       [](X x) {
         return list(fractional_max_pool2d(x[0], 2, {1, 6}, x[1]));
       }},
      {"fractional_max_pool3d",
       [](X x) {
         return list(fractional_max_pool3d(x[0], {2, 3, 2}, {3, 2, 4}, x[1]));
       }},
      // --- runs and points
      {"segment_reduce", [](X x) { return runs(x[0], x[1]); }},
      {"segment_reduce_initial", [](X x) { return runs(x[0], x[1], 0, 0.5); }},
      {"segment_reduce_axis", [](X x) { return runs(x[0], x[1], 1); }},
      {"segment_reduce_empty", [](X x) { return runs(x[0], x[1]); }},
      {"segment_reduce_offsets",
       [](X x) -> TensorList {
         return {segment_reduce(x[0], "sum", {}, {}, x[1], 1), segment_reduce(x[0], "max", {}, {}, x[1], 1)};
       }},
      {"histogramdd",
       [](X x) {
         return counted(histogramdd(x[0], IntList{3, 4}, std::vector<double>{-1, 1, -2, 0.5}, x[1], true));
       }},
      {"histogramdd_own_range",
       [](X x) {
         return counted(histogramdd(x[0], IntList{3, 4}));
       }},
      {"histogramdd_edges",
       [](X x) -> TensorList {
         return {std::get<0>(histogramdd(x[0], TensorList{x[1], x[2]}))};
       }},
      {"_chunk_cat", [](X x) -> TensorList { return {_chunk_cat(x, 0, 3)}; }},
      // --- losses of a linear layer
      {"linear_cross_entropy_weight",
       [](X x) {
         return reduced({kNone, kMean, kSum},
                        [&](Reduction r) { return linear_cross_entropy(x[0], x[1], x[2], x[3], x[4], r, -100, 0.1); });
       }},
      {"linear_cross_entropy_probabilities",
       [](X x) {
         return reduced({kNone, kMean, kSum},
                        [&](Reduction r) { return linear_cross_entropy(x[0], x[1], x[2], {}, x[3], r); });
       }},
      {"linear_cross_entropy_many",
       [](X x) {
         return reduced({kNone, kMean},
                        [&](Reduction r) { return linear_cross_entropy(x[0], x[1], x[2], x[3], {}, r); });
       }},
      // --- whole numbers and truth values
      {"avg_pool_of_integers",
       [](X x) -> TensorList {
         return {avg_pool1d(x[0], 2, 1), avg_pool2d(x[0], 2, 1, 1, false, false),
                 avg_pool3d(x[0].unsqueeze(0), 2, {}, 0, true), avg_pool2d(x[0], 3, {}, 0, false, true, 4)};
       }},
      {"losses_of_integers",
       [](X x) -> TensorList {
         auto distance = [](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b); };
         return {cosine_embedding_loss(x[0], x[1], sign(x[2].select(1, 0))),
                 margin_ranking_loss(x[0], x[1], sign(x[2]), 0.3),
                 pairwise_distance(x[0], x[1]),
                 poisson_nll_loss(x[0], x[1]),
                 triplet_margin_loss(x[0], x[1], x[2]),
                 triplet_margin_with_distance_loss(x[0], x[1], x[2], distance, 0.5, true)};
       }},
      {"local_response_norm_of_integers", [](X x) -> TensorList { return {local_response_norm(x[0], 3)}; }},
      {"addr_of_truth",
       [](X x) -> TensorList {
         return {addr(x[0], x[1], x[2]), addr(x[0], x[1], x[2], 2, 3), addr(x[0], x[1], x[2], 0, 1)};
       }},
      {"lgamma_near_zeros",
       [](X x) -> TensorList {
         return {lgamma(x[0]), lgamma(x[0].to(kFloat64))};
       }},
  };
}

}  // namespace sinter::testing
