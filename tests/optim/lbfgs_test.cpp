// L-BFGS against PyTorch's (tools/record_training.py), and what is its own: closures, checkpoints, errors.
#include "sinter/capture/compile.h"
#include "tests/optim/recorded.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using namespace optim;

struct QuasiNewtonCase {
  const char* name;
  LBFGSOptions options;
};
void PrintTo(const QuasiNewtonCase& c, std::ostream* out) { *out << c.name; }

Tensor step_of(LBFGS& optimizer, const RecordedProblem& problem) {
  return optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = problem.loss();
    loss.backward();
    return loss;
  });
}

class QuasiNewton : public ::testing::TestWithParam<QuasiNewtonCase> {};

TEST_P(QuasiNewton, StepsAsPyTorchDoes) {
  RecordedProblem problem(kFloat64);
  LBFGS optimizer(problem.params(), GetParam().options);
  const auto losses = recorded(std::string(GetParam().name) + "/losses").to_vector<double>();
  for (int step = 1; step <= 10; ++step) {
    EXPECT_NEAR(step_of(optimizer, problem).item<double>(), losses[size_t(step - 1)], 1e-9) << "before step " << step;
    expect_recorded(problem.params(), GetParam().name, step, step == 1 ? 1e-9 : 1e-5);  // what is rounded grows from step to step
  }
}

TEST_P(QuasiNewton, GoesOnFromACheckpointBitByBit) {
  RecordedProblem problem(kFloat64), other(kFloat64);
  LBFGS optimizer(problem.params(), GetParam().options), resumed(other.params(), GetParam().options);
  for (int step = 0; step < 3; ++step) step_of(optimizer, problem);
  {
    NoGradGuard no_grad;
    for (size_t i = 0; i < problem.params().size(); ++i) other.params()[i].copy_(problem.params()[i]);
  }
  resumed.load_state_dict(optimizer.state_dict());
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(step_of(optimizer, problem).item<double>(), step_of(resumed, other).item<double>());
  for (size_t i = 0; i < problem.params().size(); ++i)
    EXPECT_EQ(problem.params()[i].to_vector<double>(), other.params()[i].to_vector<double>());
}

TEST_P(QuasiNewton, StepsAlikeWithACompiledLossAndInsideACompiledFunction) {
  RecordedProblem plain(kFloat64), compiled(kFloat64), inside(kFloat64);
  LBFGS a(plain.params(), GetParam().options), b(compiled.params(), GetParam().options), c(inside.params(), GetParam().options);
  auto loss = compile([&] { return compiled.loss(); });
  auto step = compile([&] { return step_of(c, inside); });
  for (int i = 0; i < 4; ++i) {
    const double want = step_of(a, plain).item<double>();
    EXPECT_NEAR(step().item<double>(), want, 1e-10);
    Tensor got = b.step([&] {
      b.zero_grad();
      Tensor l = loss();
      l.backward();
      return l;
    });
    EXPECT_NEAR(got.item<double>(), want, 1e-10);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, QuasiNewton,
    ::testing::Values(QuasiNewtonCase{"lbfgs", LBFGSOptions(0.5).max_iter(5).history_size(4)},
                      QuasiNewtonCase{"lbfgs_wolfe", LBFGSOptions().max_iter(7).line_search_fn("strong_wolfe")},
                      QuasiNewtonCase{"lbfgs_evaluations",
                                      LBFGSOptions(2.0).max_iter(9).max_eval(6).history_size(3).line_search_fn("strong_wolfe")}),
    [](auto& info) { return std::string(info.param.name); });

TEST(Lbfgs, FindsTheMinimumOfRosenbrocksValley) {
  Tensor p = tensor({-1.2, 1.0}, kFloat64).requires_grad_();
  LBFGS optimizer({p}, LBFGSOptions(1).max_iter(100).line_search_fn("strong_wolfe"));
  optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = (1 - p[0]).square() + 100 * (p[1] - p[0].square()).square();
    loss.backward();
    return loss;
  });
  // PyTorch stops at the same place, where the loss changes by less than 1e-9.
  EXPECT_NEAR(p[0].item<double>() - 1, -1.857892086e-5, 1e-10);
  EXPECT_NEAR(p[1].item<double>() - 1, -3.803481890e-5, 1e-10);
}

TEST(Lbfgs, AParameterWithoutAGradientStays) {
  Tensor p = ones({3}, kFloat64).requires_grad_(), still = ones({2, 2}, kFloat64).requires_grad_();
  LBFGS optimizer({still, p}, LBFGSOptions(1));
  optimizer.step([&] {
    optimizer.zero_grad();
    Tensor loss = p.square().sum();
    loss.backward();
    return loss;
  });
  EXPECT_LT(p.abs().max().item<double>(), 1e-6);
  EXPECT_EQ(still.to_vector<double>(), std::vector<double>(4, 1.0));
}

TEST(Lbfgs, SaysWhatItCannotDo) {
  Tensor p = ones({3}).requires_grad_(), q = ones({3}).requires_grad_();
  LBFGS optimizer({p});
  EXPECT_NE(error_of([&] { static_cast<Optimizer&>(optimizer).step(); }).find("closure"), std::string::npos);
  EXPECT_NE(error_of([&] { LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup({p}), OptimizerParamGroup({q})}, LBFGSOptions(1)); }).find("one group"), std::string::npos);
  EXPECT_NE(error_of([&] { LBFGS({p}, LBFGSOptions(1).line_search_fn("armijo")); }).find("'armijo'"), std::string::npos);
  RecordedProblem problem(kFloat64);
  LBFGS larger(problem.params());
  step_of(larger, problem);
  EXPECT_NE(error_of([&] { optimizer.load_state_dict(larger.state_dict()); }).find("the parameters have 3 elements"), std::string::npos);
}

}  // namespace
}  // namespace sinter
