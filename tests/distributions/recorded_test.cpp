// What distributions say, and the gradients of it, against what PyTorch recorded: eagerly in f64 and f32, and compiled whole.
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/distributions/cases.h"

namespace sinter {
namespace {

using testing::recorded_distributions;
using testing::recorded_pairs;

const SafeTensorsFile& recording() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/distributions.safetensors");
  return file;
}

std::vector<std::string> words(const std::string& key) {
  auto found = recording().metadata().find(key);
  if (found == recording().metadata().end()) return {};
  std::istringstream in(found->second);
  return {std::istream_iterator<std::string>(in), {}};
}

Tensor read(const std::string& name, const std::string& what) {
  const std::string key = name + "/" + what;
  return recording().contains(key) ? recording().tensor(key).clone() : Tensor();
}

// One case: its quantities in a fixed order.
struct Case {
  std::string name;
  TensorList inputs;
  Tensor share;
  std::vector<std::string> quantities, moving;

  explicit Case(const std::string& name) : name(name), share(read(name, "share")), moving(words("moving:" + name)) {
    for (Tensor x; (x = read(name, "in" + std::to_string(inputs.size()))).defined();) inputs.push_back(x);
    for (auto* key : {"log_prob", "cdf", "icdf", "entropy", "mean", "mode", "variance", "stddev", "kl"})
      if (read(name, key).defined()) quantities.push_back(key);
  }
  bool is_pair() const { return name.starts_with("kl_"); }

  TensorList results(const TensorList& x) const {
    if (is_pair()) {
      auto& pair = recorded_pairs().at(name);
      auto middle = x.begin() + int64_t(pair.parameters_of_p);
      return {kl_divergence(*pair.p({x.begin(), middle}), *pair.q({middle, x.end()}))};
    }
    auto d = recorded_distributions().at(name)({x.begin(), x.end() - 1});
    TensorList out;
    for (auto& key : quantities)
      out.push_back(key == "log_prob"   ? d->log_prob(x.back())
                    : key == "cdf"      ? d->cdf(x.back())
                    : key == "icdf"     ? d->icdf(share.to(x[0].dtype()))
                    : key == "entropy"  ? d->entropy()
                    : key == "mean"     ? d->mean()
                    : key == "mode"     ? d->mode()
                    : key == "variance" ? d->variance()
                                        : d->stddev());
    return out;
  }

  // What the recorded gradients are of.
  Tensor weighted_sum(const TensorList& results) const {
    Tensor total = zeros({}, kFloat64);
    for (size_t i = 0; i < quantities.size(); ++i) {
      if (std::find(moving.begin(), moving.end(), quantities[i]) == moving.end()) continue;
      Tensor flat = results[i].flatten();
      total = total + (cos(arange(flat.size(0), kFloat64)) * flat).sum();
    }
    return total;
  }
};

void expect_close(const std::string& what, const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(to_string(got.sizes()), to_string(want.sizes())) << what;
  EXPECT_TRUE(allclose(got.to(kFloat64), want.to(kFloat64), tolerance, tolerance, true))
      << what << ": got\n"
      << got.to(kFloat64) << "\nwant\n"
      << want;
}

class Recorded : public ::testing::TestWithParam<std::string> {};

TEST_P(Recorded, AgreesWithPyTorch) {
  Case c(GetParam());
  ASSERT_FALSE(c.quantities.empty()) << c.name << ": run tools/record_distributions.py";
  for (auto& x : c.inputs)
    if (x.is_floating_point()) x.requires_grad_();
  TensorList results = c.results(c.inputs);
  for (size_t i = 0; i < results.size(); ++i)
    expect_close(c.name + " " + c.quantities[i], results[i].detach(), read(c.name, c.quantities[i]), 1e-10);
  TensorList grads;
  if (!c.moving.empty()) c.weighted_sum(results).backward();
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (Tensor want = read(c.name, "grad" + std::to_string(i)); want.defined()) {
      ASSERT_TRUE(c.inputs[i].grad().defined()) << c.name << ", input " << i;
      expect_close(c.name + ", gradient " + std::to_string(i), c.inputs[i].grad(), want, 1e-8);
    }
}

TEST_P(Recorded, InF32) {
  // In gamma_large parts of the entropy cancel.
  if (GetParam().starts_with("kl_") || GetParam() == "gamma_large") return;
  Case c(GetParam());
  TensorList narrow;
  for (auto& x : c.inputs) narrow.push_back(x.is_floating_point() ? x.to(kFloat32) : x);
  TensorList results = c.results(narrow);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_NE(results[i].dtype(), kFloat64) << c.quantities[i];
    expect_close(c.name + " " + c.quantities[i], results[i], read(c.name, c.quantities[i]), 2e-3);
  }
}

TEST(RecordedCompiled, WholeAndEqual) {
  for (auto* name :
       {"normal", "uniform", "gamma", "beta", "bernoulli_logits", "categorical", "multinomial", "poisson",
        "student_t_wide", "multivariate_normal_root", "transformed_affine_exp", "kl_gamma_normal", "kl_beta_beta"}) {
    Case c(name);
    auto f = compile([&](const TensorList& x) { return c.results(x); }, {.fullgraph = true});
    TensorList results = f(c.inputs);
    for (size_t i = 0; i < results.size(); ++i)
      expect_close(c.name + " compiled, " + c.quantities[i], results[i], read(c.name, c.quantities[i]), 1e-10);
  }
}

TEST(Recording, HasTheSameCases) {
  int pairs = 0;
  std::map<std::string, int> seen;
  for (auto& name : words("cases")) {
    ++seen[name];
    if (name.starts_with("kl_"))
      pairs += recorded_pairs().contains(name);
    else
      EXPECT_TRUE(recorded_distributions().contains(name)) << name;
  }
  EXPECT_GE(pairs, 45);
  for (auto& [name, make] : recorded_distributions()) EXPECT_EQ(seen[name], 1) << name;
}

INSTANTIATE_TEST_SUITE_P(Distributions, Recorded, ::testing::ValuesIn(words("cases")),
                         [](const auto& info) { return info.param; });

// --- special functions

TEST(SpecialFunctions, AgreeToTheirEnds) {
  auto of = [](const char* what) { return read("special", what); };
  expect_close("lgamma", lgamma(of("x")), of("lgamma"), 1e-12);
  expect_close("digamma", digamma(of("x")), of("digamma"), 1e-12);
  expect_close("erfinv", erfinv(of("unit")), of("erfinv"), 1e-14);
  for (int n : {1, 2, 4})
    expect_close("polygamma", polygamma(n, of("polygamma_x")), of(("polygamma" + std::to_string(n)).c_str()), 1e-12);
  expect_close("mvlgamma", mvlgamma(tensor({2.5, 30.0}, kFloat64), 3), of("mvlgamma"), 1e-13);
  Tensor a = of("shape"), x = of("point");
  expect_close("gammainc", gammainc(a, x), of("gammainc"), 1e-9);
  expect_close("gammaincc", gammaincc(a, x), 1 - of("gammainc"), 1e-9);
  expect_close("the slope of a gamma quantile", _standard_gamma_grad(a, x), of("slope"), 1e-7);
}

TEST(SpecialFunctions, EndsOfIncompleteGamma) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Tensor a = tensor({0.0, 2.0, 0.0, 2.0, -1.0, 2.0, inf}, kFloat64),
         x = tensor({1.0, 0.0, 0.0, inf, 1.0, -1.0, 1.0}, kFloat64);
  expect_close("gammainc", gammainc(a, x), tensor({1.0, 0.0, nan, 1.0, nan, nan, 0.0}, kFloat64), 0);
}

}  // namespace
}  // namespace sinter
