#pragma once
// Distributions over numbers that are formulas of a uniform or a normal draw.
#include "sinter/distributions/distribution.h"

namespace sinter SINTER_API {
namespace distributions {

class Normal : public Family<Normal> {
 public:
  Normal(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override { return loc(); }
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

// exp of a normal draw.
class LogNormal : public Family<LogNormal> {
 public:
  LogNormal(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  // That of the logarithm.
  Normal base() const { return Normal(loc(), scale()); }

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

// The size of a normal draw around 0.
class HalfNormal : public Family<HalfNormal> {
 public:
  explicit HalfNormal(const TensorArg& scale);
  const Tensor& scale() const { return parameter(0); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Normal whole() const;
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

// Between low and high.
class Uniform : public Family<Uniform> {
 public:
  Uniform(const TensorArg& low, const TensorArg& high);
  const Tensor& low() const { return parameter(0); }
  const Tensor& high() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  // NaN: none is more probable than another.
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

class Exponential : public Family<Exponential> {
 public:
  explicit Exponential(const TensorArg& rate);
  const Tensor& rate() const { return parameter(0); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

class Laplace : public Family<Laplace> {
 public:
  Laplace(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override { return loc(); }
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

// Its mean is NaN and its variance infinite.
class Cauchy : public Family<Cauchy> {
 public:
  Cauchy(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

class Gumbel : public Family<Gumbel> {
 public:
  Gumbel(const TensorArg& loc, const TensorArg& scale);
  const Tensor& loc() const { return parameter(0); }
  const Tensor& scale() const { return parameter(1); }
  Tensor entropy() const override;
  Tensor mean() const override;
  Tensor mode() const override { return loc(); }
  Tensor variance() const override;

 private:
  Tensor draw(const Shape& shape) const override;
  Tensor log_density(const Tensor& value) const override;
  Tensor share_below(const Tensor& value) const override;
  Tensor quantile(const Tensor& share) const override;
  detail::Rule support(const Tensor& value) const override;
};

}  // namespace distributions
}  // namespace SINTER_API
