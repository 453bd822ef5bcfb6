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
    {"PyTorch's gradients of the part that is replaced and of the rest are interchanged",
     {"as_strided_scatter"}},
    {"PyTorch gives gradients to the triangle that is not read",
     {"cholesky_inverse"}},
    {"a batch without channels",
     {"nn.functional.batch_norm"}},
    {"numbers that scale truth values give i64",
     {"addr"}},
    {"a correction that is no whole number",
     {"std_mean", "var"}},
    {"complex numbers",
     {"cdouble", "cfloat", "complex", "linalg.eig", "linalg.eigvals", "view_as_complex"}},
    {"whole numbers where Sinter wants floating ones",
     {"nn.functional.avg_pool1d", "nn.functional.avg_pool2d", "nn.functional.avg_pool3d",
      "nn.functional.cosine_embedding_loss", "nn.functional.local_response_norm",
      "nn.functional.margin_ranking_loss", "nn.functional.pairwise_distance", "nn.functional.poisson_nll_loss",
      "nn.functional.triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss"}},
    {"a function that Sinter has not",
     {"_chunk_cat", "_segment_reduce.lengths", "_segment_reduce.offsets", "conj_physical", "digamma", "fft.fft",
      "fft.fft2", "fft.fftn", "fft.fftshift", "fft.hfft", "fft.hfft2", "fft.hfftn", "fft.ifft", "fft.ifft2",
      "fft.ifftn", "fft.ifftshift", "fft.ihfft", "fft.ihfft2", "fft.ihfftn", "fft.irfft", "fft.irfft2", "fft.irfftn",
      "fft.rfft", "fft.rfft2", "fft.rfftn", "gcd", "geqrf", "histogramdd", "i0", "igamma", "igammac", "lcm",
      "lgamma", "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve", "linalg.matrix_sqrth",
      "linalg.polar", "lu_unpack", "mvlgamma.mvlgamma_p_1", "mvlgamma.mvlgamma_p_3", "mvlgamma.mvlgamma_p_5",
      "nextafter", "nn.functional.bilinear", "nn.functional.fractional_max_pool2d",
      "nn.functional.fractional_max_pool3d", "nn.functional.linear_cross_entropy.chunked",
      "nn.functional.linear_cross_entropy.chunked_none", "nonzero_static", "ormqr", "polar",
      "polygamma.polygamma_n_0", "polygamma.polygamma_n_1", "polygamma.polygamma_n_2", "polygamma.polygamma_n_3",
      "polygamma.polygamma_n_4", "real", "resolve_conj", "resolve_neg", "special.airy_ai", "special.bessel_j0",
      "special.bessel_j1", "special.bessel_y0", "special.bessel_y1", "special.chebyshev_polynomial_t",
      "special.chebyshev_polynomial_u", "special.chebyshev_polynomial_v", "special.chebyshev_polynomial_w",
      "special.entr", "special.erfcx", "special.hermite_polynomial_h", "special.hermite_polynomial_he",
      "special.i0e", "special.i1", "special.i1e", "special.laguerre_polynomial_l", "special.legendre_polynomial_p",
      "special.log_ndtr", "special.modified_bessel_i0", "special.modified_bessel_i1", "special.modified_bessel_k0",
      "special.modified_bessel_k1", "special.ndtr", "special.ndtri", "special.polygamma.special_polygamma_n_0",
      "special.scaled_modified_bessel_k0", "special.scaled_modified_bessel_k1",
      "special.shifted_chebyshev_polynomial_t", "special.shifted_chebyshev_polynomial_u",
      "special.shifted_chebyshev_polynomial_v", "special.shifted_chebyshev_polynomial_w",
      "special.spherical_bessel_j0", "special.xlog1py", "special.zeta", "stft"}},
};

}  // namespace sinter::testing
