#include "sinter/distributions/kl.h"

#include <functional>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/distributions/checks.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/tensor/tracer.h"

namespace sinter::distributions {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kLogTwoPi = 2 * kHalfLogTwoPi;

// The divergence of a pair of these types; an undefined tensor where they are others.
using Pair = std::function<Tensor(const Distribution& p, const Distribution& q)>;

template <class P, class Q>
Pair pair(Tensor (*divergence)(const P& p, const Q& q)) {
  return [divergence](const Distribution& p, const Distribution& q) {
    auto* a = dynamic_cast<const P*>(&p);
    auto* b = dynamic_cast<const Q*>(&q);
    return a && b ? divergence(*a, *b) : Tensor();
  };
}

// q has no density where p has some.
template <class P, class Q>
Pair infinite() {
  return pair(+[](const P& p, const Q& q) {
    return full(broadcast_shapes("kl_divergence", p.batch_shape(), q.batch_shape()), kInfinity, p.mean().options());
  });
}

Tensor x_log_x(const Tensor& x) { return xlogy(x, x); }

// --- pairs of one type

Tensor kl_bernoulli(const Bernoulli& p, const Bernoulli& q) {
  Tensor a = p.probs(), b = q.probs(), l = p.logits(), m = q.logits();
  Tensor ones = where(a == 0, 0, where(b == 0, kInfinity, a * (softplus(-m) - softplus(-l)))),
         zeros = where(a == 1, 0, where(b == 1, kInfinity, (1 - a) * (softplus(m) - softplus(l))));
  return ones + zeros;
}

Tensor kl_beta(const Beta& p, const Beta& q) {
  const Tensor &a = p.concentration1(), &b = p.concentration0(), &c = q.concentration1(), &d = q.concentration0();
  Tensor ab = a + b, cd = c + d;
  return lgamma(c) + lgamma(d) + lgamma(ab) - lgamma(a) - lgamma(b) - lgamma(cd) + (a - c) * digamma(a) +
         (b - d) * digamma(b) + (cd - ab) * digamma(ab);
}

Tensor kl_binomial(const Binomial& p, const Binomial& q) {
  Tensor enough = p.total_count() >= q.total_count(), a = p.probs();
  Tensor count = obeying(p.total_count(), {"at least the total_count of the second", enough},
                         Fault::kDistributionParameter, "kl_divergence of Binomial", "the total_count of the first");
  Tensor each = a * (p.logits() - q.logits()) + log1p(-a) - log1p(-q.probs());
  return where(count > q.total_count(), kInfinity, count * each);
}

Tensor kl_categorical(const Categorical& p, const Categorical& q) {
  Tensor a = p.probs();
  return where(a == 0, 0, where(q.probs() == 0, kInfinity, a * (p.logits() - q.logits()))).sum({-1});
}

Tensor kl_dirichlet(const Dirichlet& p, const Dirichlet& q) {
  const Tensor &a = p.concentration(), &b = q.concentration();
  Tensor whole = a.sum({-1});
  return lgamma(whole) - lgamma(b.sum({-1})) - (lgamma(a) - lgamma(b)).sum({-1}) +
         ((a - b) * (digamma(a) - digamma(whole).unsqueeze(-1))).sum({-1});
}

Tensor kl_exponential(const Exponential& p, const Exponential& q) {
  Tensor ratio = q.rate() / p.rate();
  return ratio - log(ratio) - 1;
}

Tensor kl_gamma(const Gamma& p, const Gamma& q) {
  const Tensor &a = p.concentration(), &b = q.concentration();
  return b * log(p.rate() / q.rate()) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) +
         (q.rate() - p.rate()) * (a / p.rate());
}

Tensor kl_gumbel(const Gumbel& p, const Gumbel& q) {
  Tensor ratio = p.scale() / q.scale(), away = (p.loc() - q.loc()) / q.scale();
  return away - log(ratio) + ratio * kEuler + exp(lgamma(1 + ratio) - away) - (1 + kEuler);
}

Tensor kl_laplace(const Laplace& p, const Laplace& q) {
  Tensor ratio = p.scale() / q.scale(), away = abs(p.loc() - q.loc());
  return -log(ratio) + away / q.scale() + ratio * exp(-away / p.scale()) - 1;
}

Tensor kl_normal(const Normal& p, const Normal& q) {
  Tensor ratio = square(p.scale() / q.scale());
  return 0.5 * (ratio + square((p.loc() - q.loc()) / q.scale()) - 1 - log(ratio));
}

Tensor kl_multivariate_normal(const MultivariateNormal& p, const MultivariateNormal& q) {
  check(p.event_shape()[0] == q.event_shape()[0], "kl_divergence: MultivariateNormals of {} and {} dimensions",
        p.event_shape()[0], q.event_shape()[0]);
  const Dim size = p.event_shape()[0];
  Shape vectors = broadcast_shapes("kl_divergence", p.batch_shape(), q.batch_shape());
  vectors.push_back(size);
  Shape matrices = vectors;
  matrices.push_back(size);
  Tensor root = q.scale_tril().expand(matrices),
         diagonals = log(root.diagonal(0, -2, -1) / p.scale_tril().diagonal(0, -2, -1));
  Tensor spread = linalg::solve_triangular(root, p.scale_tril().expand(matrices), /*upper=*/false),
         away = linalg::solve_triangular(root, (q.loc() - p.loc()).expand(vectors).unsqueeze(-1), /*upper=*/false);
  return diagonals.sum({-1}) +
         0.5 * (square(spread).sum({-2, -1}) + square(away).sum({-2, -1}) - double(int64_t(size)));
}

Tensor kl_uniform(const Uniform& p, const Uniform& q) {
  Tensor inside = (q.low() <= p.low()) & (q.high() >= p.high());
  return where(inside, log((q.high() - q.low()) / (p.high() - p.low())), kInfinity);
}

Tensor kl_cauchy(const Cauchy& p, const Cauchy& q) {
  return log(square(p.scale() + q.scale()) + square(p.loc() - q.loc())) - log(4 * p.scale() * q.scale());
}

Tensor kl_independent(const Independent& p, const Independent& q) {
  check(p.reinterpreted_batch_ndims() == q.reinterpreted_batch_ndims(),
        "kl_divergence: Independents of {} and {} dimensions", p.reinterpreted_batch_ndims(),
        q.reinterpreted_batch_ndims());
  return sum_rightmost(kl_divergence(p.base(), q.base()), p.reinterpreted_batch_ndims());
}

Tensor kl_transformed(const TransformedDistribution& p, const TransformedDistribution& q) {
  check(p.transforms() == q.transforms(),
        "kl_divergence: two TransformedDistributions must share their transforms (the same "
        "objects, behind shared_ptrs)");
  return kl_divergence(p.base(), q.base());
}

const std::vector<Pair>& pairs_of_one_type() {
  static const std::vector<Pair> all = {
      pair(kl_bernoulli),
      pair(kl_beta),
      pair(kl_binomial),
      pair(kl_categorical),
      pair(kl_dirichlet),
      pair(kl_exponential),
      pair(kl_gamma),
      pair(kl_gumbel),
      pair(kl_laplace),
      pair(kl_normal),
      pair(kl_multivariate_normal),
      pair(kl_uniform),
      pair(kl_cauchy),
      pair(kl_independent),
      pair(kl_transformed),
      pair(+[](const Geometric& p, const Geometric& q) {
        return -p.entropy() - log1p(-q.probs()) / p.probs() - q.logits();
      }),
      pair(+[](const HalfNormal& p, const HalfNormal& q) {
        return kl_normal(Normal(0, p.scale()), Normal(0, q.scale()));
      }),
      pair(+[](const LogNormal& p, const LogNormal& q) { return kl_normal(p.base(), q.base()); }),
      pair(+[](const OneHotCategorical& p, const OneHotCategorical& q) {
        return kl_categorical(p.classes(), q.classes());
      }),
      pair(+[](const Poisson& p, const Poisson& q) {
        return p.rate() * (log(p.rate()) - log(q.rate())) - (p.rate() - q.rate());
      }),
  };
  return all;
}

// --- pairs of two types: minus the entropy of p, and the mean of -log q

// Under a normal q, from the mean of p and the mean of its square.
Tensor kl_to_normal(const Distribution& p, const Tensor& mean, const Tensor& square_mean, const Normal& q) {
  return -p.entropy() + kHalfLogTwoPi + log(q.scale()) +
         (0.5 * square_mean - q.loc() * mean + 0.5 * square(q.loc())) / square(q.scale());
}
Tensor kl_to_normal(const Distribution& p, const Normal& q) {
  return kl_to_normal(p, p.mean(), p.variance() + square(p.mean()), q);
}
// Under a gamma q, from the means of p and of its logarithm.
Tensor kl_to_gamma(const Distribution& p, const Tensor& log_mean, const Gamma& q) {
  const Tensor& c = q.concentration();
  return -p.entropy() + lgamma(c) - c * log(q.rate()) - (c - 1) * log_mean + q.rate() * p.mean();
}
Tensor kl_to_exponential(const Distribution& p, const Exponential& q) {
  return -p.entropy() - log(q.rate()) + q.rate() * p.mean();
}
// Under a Gumbel q, from the mean of exp(-x / scale).
Tensor kl_to_gumbel(const Distribution& p, const Tensor& decay, const Gumbel& q) {
  Tensor place = q.loc() / q.scale();
  return -p.entropy() + log(q.scale()) + p.mean() / q.scale() - place + exp(place) * decay;
}

Tensor log_mean_of(const Uniform& p) { return (x_log_x(p.high()) - x_log_x(p.low())) / (p.high() - p.low()) - 1; }
Tensor log_mean_of(const Beta& p) {
  return digamma(p.concentration1()) - digamma(p.concentration1() + p.concentration0());
}

Tensor kl_uniform_beta(const Uniform& p, const Beta& q) {
  const Tensor &a = q.concentration1(), &b = q.concentration0();
  Tensor log_rest = (x_log_x(1 - p.low()) - x_log_x(1 - p.high())) / (p.high() - p.low()) - 1;
  Tensor inside = lgamma(a) + lgamma(b) - lgamma(a + b) - p.entropy() - (a - 1) * log_mean_of(p) - (b - 1) * log_rest;
  return where((p.high() > 1) | (p.low() < 0), kInfinity, inside);
}

Tensor kl_normal_laplace(const Normal& p, const Laplace& q) {
  Tensor away = p.loc() - q.loc(), relative = away / p.scale() * std::sqrt(0.5);
  Tensor distance = std::sqrt(2 / kPi) * p.scale() * exp(-square(relative)) + away * erf(relative);
  return -p.entropy() + log(2 * q.scale()) + distance / q.scale();
}

const std::vector<Pair>& pairs_of_two_types() {
  static const std::vector<Pair> all = {
      pair(+[](const Bernoulli& p, const Poisson& q) { return -p.entropy() - (p.probs() * log(q.rate()) - q.rate()); }),
      pair(+[](const Beta& p, const Exponential& q) { return kl_to_exponential(p, q); }),
      pair(+[](const Beta& p, const Gamma& q) { return kl_to_gamma(p, log_mean_of(p), q); }),
      pair(+[](const Beta& p, const Normal& q) { return kl_to_normal(p, q); }),
      pair(+[](const Beta& p, const Uniform& q) {
        return where((q.low() > 0) | (q.high() < 1), kInfinity, -p.entropy() + log(q.high() - q.low()));
      }),
      pair(+[](const Exponential& p, const Gamma& q) { return kl_to_gamma(p, -log(p.rate()) - kEuler, q); }),
      pair(+[](const Exponential& p, const Gumbel& q) {
        Tensor product = p.rate() * q.scale();
        return kl_to_gumbel(p, product / (product + 1), q);
      }),
      pair(+[](const Exponential& p, const Normal& q) { return kl_to_normal(p, q); }),
      pair(+[](const Gamma& p, const Exponential& q) { return kl_to_exponential(p, q); }),
      pair(+[](const Gamma& p, const Gumbel& q) {
        return kl_to_gumbel(p, pow(1 + 1 / (p.rate() * q.scale()), -p.concentration()), q);
      }),
      pair(+[](const Gamma& p, const Normal& q) { return kl_to_normal(p, q); }),
      pair(+[](const Gumbel& p, const Normal& q) { return kl_to_normal(p, q); }),
      pair(+[](const Laplace& p, const Normal& q) { return kl_to_normal(p, q); }),
      pair(+[](const Normal& p, const Gumbel& q) {
        return kl_to_gumbel(p, exp(0.5 * square(p.scale() / q.scale()) - p.loc() / q.scale()), q);
      }),
      pair(kl_normal_laplace),
      pair(kl_uniform_beta),
      pair(+[](const Uniform& p, const Exponential& q) {
        return where(p.low() < 0, kInfinity, kl_to_exponential(p, q));
      }),
      pair(+[](const Uniform& p, const Gamma& q) {
        return where(p.low() < 0, kInfinity, kl_to_gamma(p, log_mean_of(p), q));
      }),
      pair(+[](const Uniform& p, const Gumbel& q) {
        Tensor decay = (exp(-p.low() / q.scale()) - exp(-p.high() / q.scale())) * q.scale() / (p.high() - p.low());
        return kl_to_gumbel(p, decay, q);
      }),
      pair(+[](const Uniform& p, const Normal& q) { return kl_to_normal(p, q); }),
      infinite<Poisson, Bernoulli>(),
      infinite<Poisson, Binomial>(),
      infinite<Exponential, Beta>(),
      infinite<Exponential, Uniform>(),
      infinite<Gamma, Beta>(),
      infinite<Gamma, Uniform>(),
      infinite<Gumbel, Beta>(),
      infinite<Gumbel, Exponential>(),
      infinite<Gumbel, Gamma>(),
      infinite<Gumbel, Uniform>(),
      infinite<Laplace, Beta>(),
      infinite<Laplace, Exponential>(),
      infinite<Laplace, Gamma>(),
      infinite<Laplace, Uniform>(),
      infinite<Normal, Beta>(),
      infinite<Normal, Exponential>(),
      infinite<Normal, Gamma>(),
      infinite<Normal, Uniform>(),
  };
  return all;
}

}  // namespace

Tensor kl_divergence(const Distribution& p, const Distribution& q) {
  for (auto* pairs : {&pairs_of_one_type(), &pairs_of_two_types()})
    for (auto& divergence : *pairs)
      if (Tensor out = divergence(p, q); out.defined()) return out;
  throw_error(format(
      "kl_divergence: there is no formula for a {} and a {}; take the mean of p.log_prob(x) - q.log_prob(x) over "
      "draws of p",
      p.name(), q.name()));
}

}  // namespace sinter::distributions
