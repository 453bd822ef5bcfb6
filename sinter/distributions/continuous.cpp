#include "sinter/distributions/continuous.h"

#include <limits>

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"

namespace sinter::distributions {

using detail::Rule;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

// --- Normal

Normal::Normal(const TensorArg& loc, const TensorArg& scale)
    : Family("Normal", {{"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor Normal::entropy() const { return 0.5 + kHalfLogTwoPi + log(scale()); }
Tensor Normal::variance() const { return square(scale()); }
Tensor Normal::draw(const Shape& shape) const { return loc() + randn(shape, loc().options()) * scale(); }
Tensor Normal::log_density(const Tensor& value) const {
  return -square(value - loc()) / (2 * variance()) - log(scale()) - kHalfLogTwoPi;
}
Tensor Normal::share_below(const Tensor& value) const {
  return 0.5 * (1 + erf((value - loc()) / scale() * std::numbers::sqrt2 / 2));
}
Tensor Normal::quantile(const Tensor& share) const {
  return loc() + scale() * erfinv(2 * share - 1) * std::numbers::sqrt2;
}
Rule Normal::support(const Tensor& value) const { return detail::real(value); }

// --- LogNormal

LogNormal::LogNormal(const TensorArg& loc, const TensorArg& scale)
    : Family("LogNormal", {{"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor LogNormal::entropy() const { return base().entropy() + loc(); }
Tensor LogNormal::mean() const { return exp(loc() + square(scale()) / 2); }
Tensor LogNormal::mode() const { return exp(loc() - square(scale())); }
Tensor LogNormal::variance() const { return expm1(square(scale())) * exp(2 * loc() + square(scale())); }
Tensor LogNormal::draw(const Shape& shape) const { return exp(loc() + randn(shape, loc().options()) * scale()); }
Tensor LogNormal::log_density(const Tensor& value) const {
  Tensor l = log(value);
  return base().log_prob(l) - l;
}
Tensor LogNormal::share_below(const Tensor& value) const { return base().cdf(log(value)); }
Tensor LogNormal::quantile(const Tensor& share) const { return exp(base().icdf(share)); }
Rule LogNormal::support(const Tensor& value) const { return detail::positive(value); }

// --- HalfNormal

HalfNormal::HalfNormal(const TensorArg& scale) : Family("HalfNormal", {{"scale", scale, detail::positive}}) {}
Normal HalfNormal::whole() const { return Normal(0, scale()); }
Tensor HalfNormal::entropy() const { return whole().entropy() - kLog2; }
Tensor HalfNormal::mean() const { return scale() * std::sqrt(2 / kPi); }
Tensor HalfNormal::mode() const { return zeros_like(scale()); }
Tensor HalfNormal::variance() const { return square(scale()) * (1 - 2 / kPi); }
Tensor HalfNormal::draw(const Shape& shape) const { return abs(randn(shape, scale().options()) * scale()); }
Tensor HalfNormal::log_density(const Tensor& value) const {
  return where(value >= 0, whole().log_prob(value) + kLog2, -kInfinity);
}
Tensor HalfNormal::share_below(const Tensor& value) const { return 2 * whole().cdf(value) - 1; }
Tensor HalfNormal::quantile(const Tensor& share) const { return whole().icdf((share + 1) / 2); }
Rule HalfNormal::support(const Tensor& value) const { return detail::nonnegative(value); }

// --- Uniform

Uniform::Uniform(const TensorArg& low, const TensorArg& high)
    : Family("Uniform", {{"low", low, detail::real}, {"high", high, detail::real}}) {
  require_parameters(this->low() < this->high(), "low must be less than high");
}
Tensor Uniform::entropy() const { return log(high() - low()); }
Tensor Uniform::mean() const { return (low() + high()) / 2; }
Tensor Uniform::mode() const { return full_like(low(), std::numeric_limits<double>::quiet_NaN()); }
Tensor Uniform::variance() const { return square(high() - low()) / 12; }
Tensor Uniform::draw(const Shape& shape) const { return low() + rand(shape, low().options()) * (high() - low()); }
Tensor Uniform::log_density(const Tensor& value) const {
  return where((low() <= value) & (value < high()), -log(high() - low()), -kInfinity);
}
Tensor Uniform::share_below(const Tensor& value) const { return clamp((value - low()) / (high() - low()), 0, 1); }
Tensor Uniform::quantile(const Tensor& share) const { return share * (high() - low()) + low(); }
Rule Uniform::support(const Tensor& value) const {
  return {"between low and high", (value >= low()) & (value <= high())};
}

// --- Exponential

Exponential::Exponential(const TensorArg& rate) : Family("Exponential", {{"rate", rate, detail::positive}}) {}
Tensor Exponential::entropy() const { return 1 - log(rate()); }
Tensor Exponential::mean() const { return reciprocal(rate()); }
Tensor Exponential::mode() const { return zeros_like(rate()); }
Tensor Exponential::variance() const { return square(reciprocal(rate())); }
Tensor Exponential::draw(const Shape& shape) const { return exponential_noise(shape, rate().options()) / rate(); }
Tensor Exponential::log_density(const Tensor& value) const { return log(rate()) - rate() * value; }
Tensor Exponential::share_below(const Tensor& value) const { return -expm1(-rate() * value); }
Tensor Exponential::quantile(const Tensor& share) const { return -log1p(-share) / rate(); }
Rule Exponential::support(const Tensor& value) const { return detail::nonnegative(value); }

// --- Laplace

Laplace::Laplace(const TensorArg& loc, const TensorArg& scale)
    : Family("Laplace", {{"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor Laplace::entropy() const { return 1 + log(2 * scale()); }
Tensor Laplace::variance() const { return 2 * square(scale()); }
Tensor Laplace::draw(const Shape& shape) const { return quantile(open_uniform(shape, loc().options())); }
Tensor Laplace::log_density(const Tensor& value) const { return -log(2 * scale()) - abs(value - loc()) / scale(); }
Tensor Laplace::share_below(const Tensor& value) const {
  Tensor away = value - loc();
  return 0.5 - 0.5 * sign(away) * expm1(-abs(away) / scale());
}
Tensor Laplace::quantile(const Tensor& share) const {
  Tensor away = share - 0.5;
  return loc() - scale() * sign(away) * log1p(-2 * abs(away));
}
Rule Laplace::support(const Tensor& value) const { return detail::real(value); }

// --- Cauchy

Cauchy::Cauchy(const TensorArg& loc, const TensorArg& scale)
    : Family("Cauchy", {{"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor Cauchy::entropy() const { return std::log(4 * kPi) + log(scale()); }
Tensor Cauchy::mean() const { return full_like(loc(), std::numeric_limits<double>::quiet_NaN()); }
Tensor Cauchy::variance() const { return full_like(loc(), kInfinity); }
Tensor Cauchy::draw(const Shape& shape) const { return quantile(open_uniform(shape, loc().options())); }
Tensor Cauchy::log_density(const Tensor& value) const {
  return -kLogPi - log(scale()) - log1p(square((value - loc()) / scale()));
}
Tensor Cauchy::share_below(const Tensor& value) const { return atan((value - loc()) / scale()) / kPi + 0.5; }
Tensor Cauchy::quantile(const Tensor& share) const { return tan(kPi * (share - 0.5)) * scale() + loc(); }
Rule Cauchy::support(const Tensor& value) const { return detail::real(value); }

// --- Gumbel

Gumbel::Gumbel(const TensorArg& loc, const TensorArg& scale)
    : Family("Gumbel", {{"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor Gumbel::entropy() const { return log(scale()) + (1 + kEuler); }
Tensor Gumbel::mean() const { return loc() + scale() * kEuler; }
Tensor Gumbel::variance() const { return square(scale()) * (kPi * kPi / 6); }
Tensor Gumbel::draw(const Shape& shape) const {
  return loc() - scale() * log(exponential_noise(shape, loc().options()));
}
Tensor Gumbel::log_density(const Tensor& value) const {
  Tensor y = (loc() - value) / scale();
  return y - exp(y) - log(scale());
}
Tensor Gumbel::share_below(const Tensor& value) const { return exp(-exp((loc() - value) / scale())); }
Tensor Gumbel::quantile(const Tensor& share) const { return loc() - scale() * log(-log(share)); }
Rule Gumbel::support(const Tensor& value) const { return detail::real(value); }

}  // namespace sinter::distributions
