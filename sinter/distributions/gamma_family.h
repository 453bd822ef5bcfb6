#pragma once
// Distributions that are made of draws from gamma distributions. Such a draw moves with its parameters as the quantile does
// that it is (implicit reparameterisation).
#include "sinter/distributions/distribution.h"

namespace sinter SINTER_API {
namespace distributions {

class Gamma : public Family<Gamma> {
 public:
  Gamma(const TensorArg& concentration, const TensorArg& rate) : Gamma("Gamma", concentration, rate) {}
  const Tensor& concentration() const { return parameter(0); }
  const Tensor& rate() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 protected:
  Gamma(const char* name, const TensorArg& concentration, const TensorArg& rate);

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// The gamma distribution of concentration df / 2 and rate 1/2.
class Chi2 : public Family<Chi2, Gamma> {
 public:
  explicit Chi2(const TensorArg& df);
  Tensor df() const;
};

// Student's t-distribution around loc.
class StudentT : public Family<StudentT> {
 public:
  explicit StudentT(const TensorArg& df, const TensorArg& loc = 0, const TensorArg& scale = 1);
  const Tensor& df() const { return parameter(0); }
  const Tensor& loc() const { return parameter(1); }
  const Tensor& scale() const { return parameter(2); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

// Over the weights of as many classes as the concentration has in its last dimension.
class Dirichlet : public Family<Dirichlet> {
 public:
  explicit Dirichlet(const TensorArg& concentration);
  const Tensor& concentration() const { return parameter(0); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

class Beta : public Family<Beta> {
 public:
  Beta(const TensorArg& concentration1, const TensorArg& concentration0);
  const Tensor& concentration1() const { return parameter(0); }
  const Tensor& concentration0() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Dirichlet pair() const;
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  detail::Rule support(const Tensor& value) const override;
};

}  // namespace distributions
}  // namespace SINTER_API
