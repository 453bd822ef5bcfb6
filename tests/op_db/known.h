#pragma once
// Operators whose samples are not right or not taken, by the reason. The list may only shrink.
#include <string>
#include <vector>

namespace sinter::testing {

struct KnownOperators {
  const char* reason;
  std::vector<std::string> operators;
};

inline const std::vector<KnownOperators> kKnownOperators = {
    {"PyTorch's gradients of the part that is replaced and of the rest are interchanged", {"as_strided_scatter"}},
    {"PyTorch gives gradients to the triangle that is not read", {"cholesky_inverse"}},
    {"a batch without channels", {"nn.functional.batch_norm"}},
    {"numbers that scale truth values give i64", {"addr"}},
    {"eigenvalues of general matrices", {"linalg.eig", "linalg.eigvals"}},
    {"whole numbers where Sinter wants floating ones",
     {"nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
      "nn.functional.cosine_embedding_loss", "nn.functional.local_response_norm", "nn.functional.margin_ranking_loss",
      "nn.functional.pairwise_distance", "nn.functional.poisson_nll_loss", "nn.functional.triplet_margin_loss",
      "nn.functional.triplet_margin_with_distance_loss"}},
    {"1.8e-15 where the value is zero", {"lgamma"}},
    {"6e-16 where PyTorch gives 0", {"special.ndtr"}},
    {"a function that Sinter has not",
     {"_chunk_cat",
      "_segment_reduce.lengths",
      "_segment_reduce.offsets",
      "geqrf",
      "histogramdd",
      "linalg.ldl_factor",
      "linalg.ldl_factor_ex",
      "linalg.ldl_solve",
      "linalg.matrix_sqrth",
      "linalg.polar",
      "nn.functional.fractional_max_pool2d",
      "nn.functional.fractional_max_pool3d",
      "nn.functional.linear_cross_entropy.chunked",
      "nn.functional.linear_cross_entropy.chunked_none",
      "ormqr"}},
};

}  // namespace sinter::testing
