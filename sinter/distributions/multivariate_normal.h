#pragma once
// The normal distribution of vectors.
#include "sinter/distributions/distribution.h"

namespace sinter SINTER_API {
namespace distributions {

// Given by its covariance matrix, by the inverse of that, or by its lower triangular root.
class MultivariateNormal : public Family<MultivariateNormal> {
 public:
  MultivariateNormal(const TensorArg& loc, const TensorArg& covariance_matrix);
  static MultivariateNormal from_precision(const TensorArg& loc, const TensorArg& precision_matrix);
  static MultivariateNormal from_scale_tril(const TensorArg& loc, const TensorArg& scale_tril);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale_tril() const { return parameter(1); }
  Tensor covariance_matrix() const;
  Tensor precision_matrix() const;
  Tensor entropy() const override;
  Tensor mean() const override { return loc(); }
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  struct Root {
    const TensorArg& scale_tril;
  };
  MultivariateNormal(const TensorArg& loc, Root root);
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

}  // namespace distributions
}  // namespace SINTER_API
