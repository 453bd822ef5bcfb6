#include "tests/distributions/cases.h"

#include "sinter/ops/view.h"

namespace sinter::testing {

using namespace distributions;  // NOLINT

namespace {

using X = const TensorList&;

Tensor symmetric(const Tensor& m) { return 0.5 * (m + m.transpose(-2, -1)); }

template <class D>
Make of_one() {
  return [](X x) { return of(D(x[0])); };
}
template <class D>
Make of_two() {
  return [](X x) { return of(D(x[0], x[1])); };
}

template <class... T>
Make transformed_normal(T... transforms) {
  return [=](X x) { return of(TransformedDistribution(Normal(x[0], x[1]), transforms...)); };
}

DistributionPtr rooted(X x) { return of(MultivariateNormal::from_scale_tril(x[0], tril(x[1]))); }
DistributionPtr independent(X x) { return of(Independent(Normal(x[0], x[1]), 1)); }
DistributionPtr six_trials(X x) { return of(Binomial(6, x[0])); }

}  // namespace

const std::map<std::string, Make>& recorded_distributions() {
  static const std::map<std::string, Make> all = {
      {"normal", of_two<Normal>()},
      {"normal_far", of_two<Normal>()},
      {"log_normal", of_two<LogNormal>()},
      {"half_normal", of_one<HalfNormal>()},
      {"uniform", of_two<Uniform>()},
      {"exponential", of_one<Exponential>()},
      {"laplace", of_two<Laplace>()},
      {"cauchy", of_two<Cauchy>()},
      {"gumbel", of_two<Gumbel>()},
      {"gamma", of_two<Gamma>()},
      {"gamma_large", of_two<Gamma>()},
      {"chi2", of_one<Chi2>()},
      {"student_t", [](X x) { return of(StudentT(x[0], x[1], x[2])); }},
      {"student_t_wide", [](X x) { return of(StudentT(x[0], x[1], x[2])); }},
      {"beta", of_two<Beta>()},
      {"beta_mode", of_two<Beta>()},
      {"dirichlet", of_one<Dirichlet>()},
      {"dirichlet_mode", of_one<Dirichlet>()},
      {"bernoulli", of_one<Bernoulli>()},
      {"bernoulli_logits", [](X x) { return of(Bernoulli::from_logits(x[0])); }},
      {"bernoulli_ends", of_one<Bernoulli>()},
      {"geometric", of_one<Geometric>()},
      {"geometric_logits", [](X x) { return of(Geometric::from_logits(x[0])); }},
      {"binomial", six_trials},
      {"binomial_logits", [](X x) { return of(Binomial::from_logits(6, x[0])); }},
      {"poisson", of_one<Poisson>()},
      {"categorical", of_one<Categorical>()},
      {"categorical_logits", [](X x) { return of(Categorical::from_logits(x[0])); }},
      {"one_hot_categorical", of_one<OneHotCategorical>()},
      {"multinomial", [](X x) { return of(Multinomial(5, x[0])); }},
      {"multinomial_logits", [](X x) { return of(Multinomial::from_logits(5, x[0])); }},
      {"multivariate_normal", [](X x) { return of(MultivariateNormal(x[0], symmetric(x[1]))); }},
      {"multivariate_normal_precision",
       [](X x) { return of(MultivariateNormal::from_precision(x[0], symmetric(x[1]))); }},
      {"multivariate_normal_root", rooted},
      {"independent", independent},
      {"transformed_affine_exp", transformed_normal(AffineTransform(0.5, -2.0), ExpTransform())},
      {"transformed_sigmoid", transformed_normal(SigmoidTransform())},
      {"transformed_tanh", transformed_normal(TanhTransform())},
      {"transformed_power",
       [](X x) { return of(TransformedDistribution(LogNormal(x[0], x[1]), PowerTransform(2.0))); }},
  };
  return all;
}

const std::map<std::string, RecordedPair>& recorded_pairs() {
  static const auto all = [] {
    struct Kind {
      Make make;
      size_t parameters;
    };
    const std::map<std::string, Kind> kinds = {
        {"normal", {of_two<Normal>(), 2}},
        {"log_normal", {of_two<LogNormal>(), 2}},
        {"half_normal", {of_one<HalfNormal>(), 1}},
        {"uniform", {of_two<Uniform>(), 2}},
        {"exponential", {of_one<Exponential>(), 1}},
        {"laplace", {of_two<Laplace>(), 2}},
        {"cauchy", {of_two<Cauchy>(), 2}},
        {"gumbel", {of_two<Gumbel>(), 2}},
        {"gamma", {of_two<Gamma>(), 2}},
        {"beta", {of_two<Beta>(), 2}},
        {"dirichlet", {of_one<Dirichlet>(), 1}},
        {"bernoulli", {of_one<Bernoulli>(), 1}},
        {"geometric", {of_one<Geometric>(), 1}},
        {"poisson", {of_one<Poisson>(), 1}},
        {"binomial", {six_trials, 1}},
        {"categorical", {of_one<Categorical>(), 1}},
        {"one_hot_categorical", {of_one<OneHotCategorical>(), 1}},
        {"multivariate_normal", {rooted, 2}},
        {"independent", {independent, 2}},
    };
    // "kl_P_Q" of any two of them.
    std::map<std::string, RecordedPair> pairs;
    for (auto& [p, first] : kinds)
      for (auto& [q, second] : kinds) pairs["kl_" + p + "_" + q] = {first.make, second.make, first.parameters};
    return pairs;
  }();
  return all;
}

}  // namespace sinter::testing
