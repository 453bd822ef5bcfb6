// Draws: moments within six of their standard errors, the distance of Kolmogorov and Smirnov, gradients of rsample; the same
// numbers from any dtype's compiled function, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/distributions.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/distributions/cases.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using namespace distributions;  // NOLINT
using testing::DistributionPtr;
using testing::of;

struct Drawn {
  const char* name;
  DistributionPtr distribution;
  bool has_moments = true, has_cdf = true;
};
void PrintTo(const Drawn& drawn, std::ostream* out) { *out << drawn.name; }

Tensor wide(std::initializer_list<double> values) { return tensor(values, kFloat64); }

std::vector<Drawn> all_drawn() {
  return {
      {"Normal", of(Normal(wide({-1, 3}), wide({0.5, 2})))},
      {"LogNormal", of(LogNormal(wide({-1, 1}), 0.4))},
      {"HalfNormal", of(HalfNormal(wide({0.5, 2})))},
      {"Uniform", of(Uniform(wide({-1, 0}), wide({0.5, 2})))},
      {"Exponential", of(Exponential(wide({0.5, 2})))},
      {"Laplace", of(Laplace(wide({-1, 3}), wide({0.5, 2})))},
      {"Cauchy", of(Cauchy(wide({-1, 3}), wide({0.5, 2}))), false},
      {"Gumbel", of(Gumbel(wide({-1, 3}), wide({0.5, 2})))},
      {"Gamma", of(Gamma(wide({0.05, 0.7, 1, 3, 200}), wide({2, 0.5, 1, 1, 3})))},
      {"GammaF32", of(Gamma(tensor({0.2f, 3.0f}), 2.0f))},
      {"Chi2", of(Chi2(wide({1, 7})))},
      {"StudentT", of(StudentT(wide({9, 30}), 1, 2)), true, false},
      {"Beta", of(Beta(wide({0.3, 4}), wide({0.6, 2}))), true, false},
      {"Dirichlet", of(Dirichlet(wide({0.3, 4, 1}))), true, false},
      {"Bernoulli", of(Bernoulli(wide({0.1, 0.75}))), true, false},
      {"Geometric", of(Geometric(wide({0.1, 0.75}))), true, false},
      {"Binomial", of(Binomial(wide({7, 40, 1000}), wide({0.1, 0.75, 0.4}))), true, false},
      {"OneHotCategorical", of(OneHotCategorical(wide({0.2, 0.5, 0.3}))), true, false},
      {"Multinomial", of(Multinomial(6, wide({0.2, 0.5, 0.3}))), true, false},
      {"Poisson", of(Poisson(wide({0.3, 9.5, 10.5, 3000}))), true, false},
      {"MultivariateNormal", of(MultivariateNormal(wide({1, 2}), tensor({{2.0, 0.6}, {0.6, 0.5}}, kFloat64))), true,
       false},
      {"Independent", of(Independent(Normal(wide({-1, 3}), wide({0.5, 2})), 1)), true, false},
  };
}

constexpr int64_t kDraws = 20000;

class Draws : public ::testing::TestWithParam<Drawn> {};

TEST_P(Draws, HaveTheMoments) {
  auto& d = *GetParam().distribution;
  manual_seed(11);
  Tensor x = d.sample({kDraws});
  ASSERT_EQ(x.size(0), kDraws);
  EXPECT_FALSE(x.requires_grad());
  EXPECT_TRUE(isfinite(d.log_prob(x)).all().item<bool>());
  if (!GetParam().has_moments) return;
  x = x.to(kFloat64);
  Tensor mean = d.mean().to(kFloat64), variance = d.variance().to(kFloat64), away = x - mean;
  Tensor error = x.mean({0}) - mean, bound = 6 * sqrt(variance / double(kDraws));
  EXPECT_TRUE((abs(error) <= bound + 1e-12).all().item<bool>()) << "mean " << x.mean({0}) << " of " << mean;
  Tensor spread = square(away).mean({0}), fourth = square(square(away)).mean({0});
  bound = 6 * sqrt((fourth - square(spread)) / double(kDraws));
  EXPECT_TRUE((abs(spread - variance) <= bound + 1e-12).all().item<bool>())
      << "variance " << spread << " of " << variance;
}

// The distance exceeds 2.3 / sqrt(n) once in twenty thousand times.
TEST_P(Draws, LieAsTheCdfSays) {
  if (!GetParam().has_cdf) return;
  auto& d = *GetParam().distribution;
  manual_seed(12);
  Tensor shares = std::get<0>(sort(d.cdf(d.sample({kDraws})).to(kFloat64).reshape({kDraws, -1}), 0));
  Tensor steps = (arange(kDraws, kFloat64).unsqueeze(1) + 0.5) / double(kDraws);
  EXPECT_LE(abs(shares - steps).max().item<double>(), 2.3 / std::sqrt(double(kDraws)));
}

INSTANTIATE_TEST_SUITE_P(All, Draws, ::testing::ValuesIn(all_drawn()),
                         [](const auto& info) { return info.param.name; });

TEST(DrawsOf, CompiledFunctionsAreTheEagerOnes) {
  auto draw = [](const Tensor& a) {
    return TensorList{Normal(a, 1).sample({3}),   Gamma(a, 2 * a).rsample({3}),    Beta(a, 0.5).sample(),
                      Poisson(a * 9).sample({2}), Binomial(20, a / 3).sample({2}), Categorical(a).sample({5}),
                      StudentT(a).sample(),       Multinomial(4, a).sample()};
  };
  auto compiled = compile(draw, {.fullgraph = true});
  Tensor a = tensor({0.2f, 1.0f, 2.5f});
  manual_seed(3);
  TensorList eager = draw(a);
  manual_seed(3);
  TensorList got = compiled(a);
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(allclose(got[i], eager[i], 1e-6, 1e-7)) << i << got[i] << eager[i];
}

TEST(DrawsOf, OwnGeneratorLeavesTheDefaultOneAlone) {
  Gamma gamma(tensor({0.5, 2.0}), 1);
  Generator own(5), again(5);
  manual_seed(1);
  Tensor next = rand({2});
  manual_seed(1);
  Tensor x = gamma.sample({4}, own);
  EXPECT_TRUE(equal(rand({2}), next));
  EXPECT_TRUE(equal(gamma.sample({4}, again), x));
  EXPECT_FALSE(equal(gamma.sample({4}, again), x));
  EXPECT_EQ(poisson(full({2}, 3.0), own).sizes().vec(), (std::vector<int64_t>{2}));
  EXPECT_EQ(binomial(full({2}, 3.0), full({2}, 0.5), own).max().item<double>() <= 3, true);
}

// The mean of a draw's gradient is the gradient of its mean.
TEST(DrawsOf, RsampleHasTheGradientOfTheMean) {
  struct Moving {
    const char* name;
    Tensor parameter;
    std::function<DistributionPtr(const Tensor&)> make;
  };
  const Moving all[] = {
      {"Normal", wide({0.5, 2}), [](const Tensor& a) { return of(Normal(3 * a, a)); }},
      {"LogNormal", wide({0.1, 0.4}), [](const Tensor& a) { return of(LogNormal(0, a)); }},
      {"Uniform", wide({0.5, 2}), [](const Tensor& a) { return of(Uniform(-1, a)); }},
      {"Exponential", wide({0.5, 2}), [](const Tensor& a) { return of(Exponential(a)); }},
      {"Laplace", wide({0.5, 2}), [](const Tensor& a) { return of(Laplace(a * a, a)); }},
      {"Gumbel", wide({0.5, 2}), [](const Tensor& a) { return of(Gumbel(0, a)); }},
      {"Gamma", wide({0.3, 2, 40}), [](const Tensor& a) { return of(Gamma(a, a + 1)); }},
      {"Chi2", wide({1, 12}), [](const Tensor& a) { return of(Chi2(a)); }},
      {"Beta", wide({0.4, 3}), [](const Tensor& a) { return of(Beta(a, 2)); }},
      {"StudentT", wide({8, 12}), [](const Tensor& a) { return of(StudentT(a, a, 1)); }},
      {"MultivariateNormal", wide({2, 3}), [](const Tensor& a) { return of(MultivariateNormal(a, diag_embed(a))); }},
  };
  for (auto& [name, parameter, make] : all) {
    manual_seed(21);
    Tensor a = parameter.clone().requires_grad_();
    auto d = make(a.expand({kDraws, a.size(0)}) * 1.0);
    Tensor leaves = a.expand({kDraws, a.size(0)}).detach().clone().requires_grad_();
    make(leaves)->rsample().sum().backward();
    make(a)->mean().sum().backward();
    Tensor each = leaves.grad(), error = each.mean({0}) - a.grad(),
           bound = 6 * each.std({0}) / std::sqrt(double(kDraws));
    EXPECT_TRUE((abs(error) <= bound + 1e-12).all().item<bool>()) << name << each.mean({0}) << a.grad();
  }
}

TEST(DrawsOf, DirichletMovesWithItsConcentration) {
  manual_seed(4);
  Tensor a = wide({0.4, 2, 1}), leaves = a.expand({kDraws, 3}).clone().requires_grad_();
  Tensor weights = wide({1, -2, 0.5});
  (Dirichlet(leaves).rsample() * weights).sum().backward();
  Tensor b = a.clone().requires_grad_();
  (Dirichlet(b).mean() * weights).sum().backward();
  Tensor each = leaves.grad(), error = each.mean({0}) - b.grad(), bound = 6 * each.std({0}) / std::sqrt(double(kDraws));
  EXPECT_TRUE((abs(error) <= bound).all().item<bool>()) << each.mean({0}) << b.grad();
}

TEST(Distributions, ShapesBroadcastAndExpand) {
  Normal normal(zeros({3, 1}), ones({2}));
  EXPECT_EQ(to_string(normal.batch_shape()), "[3, 2]");
  EXPECT_EQ(to_string(normal.sample({4}).sizes()), "[4, 3, 2]");
  Normal wider = normal.expand({5, 3, 2});
  EXPECT_EQ(to_string(wider.mean().sizes()), "[5, 3, 2]");
  Dirichlet dirichlet(ones({3}));
  EXPECT_EQ(to_string(dirichlet.event_shape()), "[3]");
  EXPECT_EQ(to_string(dirichlet.expand({2}).sample({4}).sizes()), "[4, 2, 3]");
  Independent rows(normal, 1);
  EXPECT_EQ(to_string(rows.log_prob(zeros({3, 2})).sizes()), "[3]");
  EXPECT_EQ(to_string(rows.expand({7, 3}).sample().sizes()), "[7, 3, 2]");
  EXPECT_EQ(to_string(Multinomial(3, ones({4, 2})).sample({5}).sizes()), "[5, 4, 2]");
  EXPECT_EQ(Normal(0, 1).log_prob(0).item<float>(), Normal(0.0, 1.0).log_prob(0.0).item<float>());
}

TEST(Distributions, SayWhatIsWrong) {
  auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says(message_of([] { Normal(0, -1.0); }), "Normal: scale must be positive");
  says(message_of([] {
         Normal(tensor({NAN, 1.0f}), 1);
       }),
       "Normal: loc must be numbers, not NaN, got a tensor of shape [2] with 1");
  says(message_of([] { Uniform(1, 0); }), "low must be less than high");
  says(message_of([] { Bernoulli(1.5); }), "Bernoulli: probs must be between 0 and 1");
  says(message_of([] { Exponential(1).log_prob(-1.0); }), "Exponential: the value must be not negative");
  says(message_of([] { Dirichlet(ones({3})).log_prob(ones({2}) / 2); }), "whose last dimensions must be [3]");
  says(message_of([] { Dirichlet(ones({3})).log_prob(ones({3})); }), "with the sum 1");
  says(message_of([] { Categorical(ones({3})).log_prob(tensor(3)); }),
       "Categorical: the value must be numbers of classes");
  says(message_of([] { MultivariateNormal(zeros({2}), ones({2, 3})); }), "must be a square matrix");
  says(message_of([] { Bernoulli(0.5).rsample(); }), "Bernoulli has no rsample");
  says(message_of([] { Poisson(1).entropy(); }), "Poisson has no entropy in closed form");
  says(message_of([] { kl_divergence(Cauchy(0, 1), Normal(0, 1)); }), "no formula for a Cauchy and a Normal");
  says(message_of([] { poisson(tensor({-1.0f})); }), "poisson: a rate is negative");
  says(message_of([] { binomial(ones({2}), full({2}, 1.5)); }), "binomial: a probability is not between 0 and 1");
  auto compiled = compile([](const Tensor& s) { return Normal(0, s).log_prob(0.5); }, {.fullgraph = true});
  EXPECT_NEAR(compiled(tensor({2.0f})).item<float>(), Normal(0, 2).log_prob(0.5).item<float>(), 1e-6);
  says(message_of([&] { compiled(tensor({-2.0f})); }), "a parameter is outside of what its distribution allows");
  Distribution::set_default_validate_args(false);
  EXPECT_TRUE(std::isnan(Normal(0, -1.0).log_prob(0).item<float>()));
  Distribution::set_default_validate_args(true);
}

// An evidence bound as a compiled training step: its gradients are the eager ones.
TEST(Distributions, AVariationalStepCompilesWhole) {
  auto bound = [](const Tensor& loc, const Tensor& log_scale, const Tensor& data) {
    Normal posterior(loc, exp(log_scale));
    Tensor z = posterior.rsample();
    return kl_divergence(posterior, Normal(0, 1)).sum() - Normal(z, 0.5).log_prob(data).sum();
  };
  auto step = [&](const Tensor& loc, const Tensor& log_scale, const Tensor& data) {
    Tensor loss = bound(loc, log_scale, data);
    TensorList grads = autograd::grad({loss}, {loc, log_scale});
    return std::tuple(loss, grads[0], grads[1]);
  };
  Tensor loc = tensor({0.5f, -1.0f}).requires_grad_(), log_scale = tensor({0.1f, 0.3f}).requires_grad_(),
         data = ones({4, 2});
  auto compiled = compile(step, {.fullgraph = true});
  manual_seed(8);
  auto [loss, g, h] = step(loc, log_scale, data);
  manual_seed(8);
  auto [loss_c, g_c, h_c] = compiled(loc, log_scale, data);
  EXPECT_TRUE(allclose(loss_c, loss, 1e-5, 1e-6));
  EXPECT_TRUE(allclose(g_c, g, 1e-5, 1e-6)) << g_c << g;
  EXPECT_TRUE(allclose(h_c, h, 1e-5, 1e-6)) << h_c << h;
}

}  // namespace
}  // namespace sinter
