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
    {"a correction that is no whole number", {"std_mean", "var"}},
    {"eigenvalues of general matrices", {"linalg.eig", "linalg.eigvals"}},
    {"whole numbers where Sinter wants floating ones",
     {"nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
      "nn.functional.cosine_embedding_loss", "nn.functional.local_response_norm", "nn.functional.margin_ranking_loss",
      "nn.functional.pairwise_distance", "nn.functional.poisson_nll_loss", "nn.functional.triplet_margin_loss",
      "nn.functional.triplet_margin_with_distance_loss"}},
    {"1.8e-15 where the value is zero", {"lgamma"}},
    {"a function that Sinter has not",
     {"_chunk_cat",
      "_segment_reduce.lengths",
      "_segment_reduce.offsets",
      "gcd",
      "geqrf",
      "histogramdd",
      "i0",
      "lcm",
      "linalg.ldl_factor",
      "linalg.ldl_factor_ex",
      "linalg.ldl_solve",
      "linalg.matrix_sqrth",
      "linalg.polar",
      "nextafter",
      "nn.functional.bilinear",
      "nn.functional.fractional_max_pool2d",
      "nn.functional.fractional_max_pool3d",
      "nn.functional.linear_cross_entropy.chunked",
      "nn.functional.linear_cross_entropy.chunked_none",
      "nonzero_static",
      "ormqr",
      "special.airy_ai",
      "special.bessel_j0",
      "special.bessel_j1",
      "special.bessel_y0",
      "special.bessel_y1",
      "special.chebyshev_polynomial_t",
      "special.chebyshev_polynomial_u",
      "special.chebyshev_polynomial_v",
      "special.chebyshev_polynomial_w",
      "special.entr",
      "special.erfcx",
      "special.hermite_polynomial_h",
      "special.hermite_polynomial_he",
      "special.i0e",
      "special.i1",
      "special.i1e",
      "special.laguerre_polynomial_l",
      "special.legendre_polynomial_p",
      "special.log_ndtr",
      "special.modified_bessel_i0",
      "special.modified_bessel_i1",
      "special.modified_bessel_k0",
      "special.modified_bessel_k1",
      "special.ndtr",
      "special.ndtri",
      "special.scaled_modified_bessel_k0",
      "special.scaled_modified_bessel_k1",
      "special.shifted_chebyshev_polynomial_t",
      "special.shifted_chebyshev_polynomial_u",
      "special.shifted_chebyshev_polynomial_v",
      "special.shifted_chebyshev_polynomial_w",
      "special.spherical_bessel_j0",
      "special.xlog1py",
      "special.zeta"}},
};

}  // namespace sinter::testing
