#include "sinter/distributions/gamma_family.h"

#include <limits>

#include "sinter/distributions/checks.h"

namespace sinter::distributions {

using detail::Rule;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// Shares of a whole, in f64: of small concentrations all draws but one may be too small for f32.
Tensor dirichlet_draw(const Tensor& concentration) {
  Tensor parts = _standard_gamma(concentration.to(kFloat64));
  return (parts / parts.sum({-1}, true)).to(concentration.dtype());
}

// Within (0, 1), so that logarithms of a draw and of what it leaves are finite.
Tensor inside(const Tensor& share) {
  const finfo limits(share.dtype());
  return clamp(share, limits.tiny, 1 - limits.eps / 2);
}

}  // namespace

// --- Gamma

Gamma::Gamma(const char* name, const TensorArg& concentration, const TensorArg& rate)
    : Family(name, {{"concentration", concentration, detail::positive}, {"rate", rate, detail::positive}}) {}
Tensor Gamma::entropy() const {
  const Tensor& a = concentration();
  return a - log(rate()) + lgamma(a) + (1 - a) * digamma(a);
}
Tensor Gamma::mean() const { return concentration() / rate(); }
Tensor Gamma::mode() const { return clamp_min((concentration() - 1) / rate(), 0); }
Tensor Gamma::variance() const { return concentration() / square(rate()); }
Tensor Gamma::draw(const Shape& shape) const {
  Tensor value = _standard_gamma(concentration().expand(shape)) / rate();
  return clamp_min(value, finfo(value.dtype()).tiny);
}
Tensor Gamma::log_density(const Tensor& value) const {
  const Tensor& a = concentration();
  return xlogy(a, rate()) + xlogy(a - 1, value) - rate() * value - lgamma(a);
}
Tensor Gamma::share_below(const Tensor& value) const { return gammainc(concentration(), rate() * value); }
Rule Gamma::support(const Tensor& value) const { return detail::nonnegative(value); }

Chi2::Chi2(const TensorArg& df) : Family("Chi2", 0.5 * df, 0.5) {}
Tensor Chi2::df() const { return 2 * concentration(); }

// --- StudentT

StudentT::StudentT(const TensorArg& df, const TensorArg& loc, const TensorArg& scale)
    : Family("StudentT",
             {{"df", df, detail::positive}, {"loc", loc, detail::real}, {"scale", scale, detail::positive}}) {}
Tensor StudentT::entropy() const {
  Tensor half = 0.5 * df(), next = 0.5 * (df() + 1);
  return log(scale()) + next * (digamma(next) - digamma(half)) + 0.5 * log(df()) + lgamma(half) + 0.5 * kLogPi -
         lgamma(next);
}
Tensor StudentT::mean() const { return where(df() > 1, loc(), kNan); }
Tensor StudentT::variance() const {
  Tensor finite = square(scale()) * df() / (df() - 2);
  return where(df() > 2, finite, where(df() > 1, kInfinity, full_like(df(), kNan)));
}
// A normal draw over the root of the mean of df squares of others.
Tensor StudentT::draw(const Shape& shape) const {
  Tensor half = 0.5 * df(), spread = rsqrt(_standard_gamma(half.expand(shape)) / half);
  return loc() + scale() * randn(shape, loc().options()) * spread;
}
Tensor StudentT::log_density(const Tensor& value) const {
  Tensor y = (value - loc()) / scale(), next = 0.5 * (df() + 1);
  Tensor norm = log(scale()) + 0.5 * log(df()) + 0.5 * kLogPi + lgamma(0.5 * df()) - lgamma(next);
  return -next * log1p(square(y) / df()) - norm;
}
Rule StudentT::support(const Tensor& value) const { return detail::real(value); }

// --- Dirichlet

Dirichlet::Dirichlet(const TensorArg& concentration)
    : Family("Dirichlet", {{"concentration", concentration, detail::positive_vector, 1}}, 1) {}
Tensor Dirichlet::entropy() const {
  const Tensor& a = concentration();
  Tensor whole = a.sum({-1});
  return lgamma(a).sum({-1}) - lgamma(whole) - (a.size(-1) - whole) * digamma(whole) - ((a - 1) * digamma(a)).sum({-1});
}
Tensor Dirichlet::mean() const { return concentration() / concentration().sum({-1}, true); }
// Where every concentration is below 1 the density is highest in the corner of the largest.
Tensor Dirichlet::mode() const {
  const Tensor& a = concentration();
  Tensor above = clamp_min(a - 1, 0), inner = above / above.sum({-1}, true);
  Tensor corner = one_hot(argmax(a, -1), a.size(-1)).to(a.dtype());
  return where(all(a < 1, -1, true), corner, inner);
}
Tensor Dirichlet::variance() const {
  const Tensor& a = concentration();
  Tensor whole = a.sum({-1}, true);
  return a * (whole - a) / (square(whole) * (whole + 1));
}
Tensor Dirichlet::draw(const Shape& shape) const { return dirichlet_draw(concentration().expand(shape)); }
Tensor Dirichlet::log_density(const Tensor& value) const {
  const Tensor& a = concentration();
  return xlogy(a - 1, value).sum({-1}) + lgamma(a.sum({-1})) - lgamma(a).sum({-1});
}
Rule Dirichlet::support(const Tensor& value) const { return detail::simplex(value); }

// --- Beta

Beta::Beta(const TensorArg& concentration1, const TensorArg& concentration0)
    : Family("Beta", {{"concentration1", concentration1, detail::positive},
                      {"concentration0", concentration0, detail::positive}}) {}
Dirichlet Beta::pair() const { return Dirichlet(stack({concentration1(), concentration0()}, -1)); }
Tensor Beta::entropy() const { return pair().entropy(); }
Tensor Beta::mean() const { return concentration1() / (concentration1() + concentration0()); }
Tensor Beta::mode() const { return pair().mode().select(-1, 0); }
Tensor Beta::variance() const {
  Tensor whole = concentration1() + concentration0();
  return concentration1() * concentration0() / (square(whole) * (whole + 1));
}
Tensor Beta::draw(const Shape& shape) const {
  return inside(
      dirichlet_draw(stack({concentration1().expand(shape), concentration0().expand(shape)}, -1)).select(-1, 0));
}
Tensor Beta::log_density(const Tensor& value) const {
  const Tensor &a = concentration1(), &b = concentration0();
  return xlogy(a - 1, value) + xlogy(b - 1, 1 - value) + lgamma(a + b) - lgamma(a) - lgamma(b);
}
Rule Beta::support(const Tensor& value) const { return detail::share(value); }

}  // namespace sinter::distributions
