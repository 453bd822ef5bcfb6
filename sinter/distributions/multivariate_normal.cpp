#include "sinter/distributions/multivariate_normal.h"

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"

namespace sinter::distributions {

using detail::Rule;

namespace {

Rule lower_root(const Tensor& x) {
  return {"lower triangular with a positive diagonal",
          all((x == tril(x)).flatten(-2), -1) & all(x.diagonal(0, -2, -1) > 0, -1)};
}

// A matrix that is not positive definite is an Error of cholesky.
Tensor root_of(const char* what, const TensorArg& matrix) {
  check(!matrix.is_scalar() && matrix.dim() >= 2 && matrix.size(-1) == matrix.size(-2),
        "MultivariateNormal: {} must be a square matrix, or several, got the shape {}", what, matrix.sizes());
  return linalg::cholesky(matrix);
}

// The lower root of the inverse: of the matrix with rows and columns reversed it is the inverse's upper one.
Tensor root_of_inverse(const TensorArg& precision) {
  root_of("precision_matrix", precision);
  Tensor reversed = linalg::cholesky(precision.tensor().flip({-2, -1}));
  Tensor upper = reversed.flip({-2, -1}).transpose(-2, -1);
  return linalg::solve_triangular(upper, eye(upper.size(-1), upper.options()), /*upper=*/false);
}

Tensor half_log_det(const Tensor& root) { return log(root.diagonal(0, -2, -1)).sum({-1}); }

}  // namespace

MultivariateNormal::MultivariateNormal(const TensorArg& loc, Root root)
    : Family("MultivariateNormal",
             {{"loc", loc, detail::real_vector, 1}, {"scale_tril", root.scale_tril, lower_root, 2}}, 1) {
  check(scale_tril().size(-1) == this->loc().size(-1) && scale_tril().size(-2) == this->loc().size(-1),
        "MultivariateNormal: loc of shape {} needs matrices of {} rows and columns, not of shape {}",
        this->loc().sizes(), this->loc().size(-1), scale_tril().sizes());
}
MultivariateNormal::MultivariateNormal(const TensorArg& loc, const TensorArg& covariance_matrix)
    : MultivariateNormal(loc, Root{root_of("covariance_matrix", covariance_matrix)}) {}
MultivariateNormal MultivariateNormal::from_precision(const TensorArg& loc, const TensorArg& precision_matrix) {
  return {loc, Root{root_of_inverse(precision_matrix)}};
}
MultivariateNormal MultivariateNormal::from_scale_tril(const TensorArg& loc, const TensorArg& scale_tril) {
  return {loc, Root{scale_tril}};
}

Tensor MultivariateNormal::covariance_matrix() const { return matmul(scale_tril(), scale_tril().transpose(-2, -1)); }
Tensor MultivariateNormal::precision_matrix() const { return cholesky_inverse(scale_tril()); }
Tensor MultivariateNormal::entropy() const {
  return half_log_det(scale_tril()) + (0.5 + kHalfLogTwoPi) * double(int64_t(loc().size(-1)));
}
Tensor MultivariateNormal::variance() const { return square(scale_tril()).sum({-1}); }
Tensor MultivariateNormal::draw(const Shape& shape) const {
  Tensor noise = randn(shape, loc().options());
  return loc() + matmul(scale_tril(), noise.unsqueeze(-1)).squeeze(-1);
}
Tensor MultivariateNormal::log_density(const Tensor& value) const {
  Tensor away = value - loc();
  Shape batch = away.sizes();
  batch.push_back(away.size(-1));
  Tensor scaled = linalg::solve_triangular(scale_tril().expand(batch), away.unsqueeze(-1), /*upper=*/false).squeeze(-1);
  return -0.5 * square(scaled).sum({-1}) - half_log_det(scale_tril()) - kHalfLogTwoPi * double(int64_t(loc().size(-1)));
}
Rule MultivariateNormal::support(const Tensor& value) const { return detail::real_vector(value); }

}  // namespace sinter::distributions
