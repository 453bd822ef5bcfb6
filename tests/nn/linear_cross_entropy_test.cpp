// The loss of a linear layer in pieces of rows: nn::functional::linear_cross_entropy, and what compiled steps do by themselves.
#include "sinter/engine/report.h"
#include "tests/nn/common.h"

namespace sinter {
namespace {

namespace F = nn::functional;

// More rows than a piece has, the last piece shorter; some classes ignored.
struct Head {
  Tensor x = sin(ramp({3, 217, 6}, 0, 900)).requires_grad_(), weight = (cos(ramp({70000, 6}, 0, 5000)) * 0.5).requires_grad_(),
         bias = (sin(ramp({70000}, 0, 70)) * 0.1).requires_grad_();
  Tensor classes;

  Head() {
    manual_seed(7);
    classes = randint(0, 70000, {3, 217});
    classes.index_put_({0, Slice(3, 9)}, -100);
  }
  Tensor whole(Reduction reduction, double smoothing) const {
    Tensor loss = cross_entropy(linear(x, weight, bias).view({-1, 70000}), classes.view({-1}), {}, reduction, -100, smoothing);
    return reduction == Reduction::kNone ? loss.view({3, 217}) : loss;
  }
  TensorList gradients(const Tensor& loss) const {
    return autograd::grad({loss * (loss.dim() ? ramp({3, 217}, 1, 2) : tensor(2.0))}, {x, weight, bias},
                          {ones(loss.sizes(), loss.options())});
  }
};

TEST(LinearCrossEntropy, IsThatOfTheLogits) {
  Head head;
  for (auto [reduction, smoothing] : {std::pair(Reduction::kMean, 0.0), {Reduction::kSum, 0.1}, {Reduction::kNone, 0.0}}) {
    Tensor want = head.whole(reduction, smoothing);
    Tensor got = F::linear_cross_entropy(head.x, head.weight, head.classes, head.bias, {}, reduction, -100, smoothing);
    EXPECT_TRUE(allclose(got, want, 1e-5, 1e-6)) << got << want;
    auto wanted = head.gradients(want), given = head.gradients(got);
    for (size_t g = 0; g < wanted.size(); ++g) EXPECT_TRUE(allclose(given[g], wanted[g], 1e-4, 1e-6)) << g;
  }
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  Head head;
  EXPECT_NE(error_of([&] { F::linear_cross_entropy(head.x, head.weight, head.classes.view({-1})); }).find("classes [3, 217]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { F::linear_cross_entropy(head.x, head.weight, head.x.select(2, 0)); }).find("integer classes"),
            std::string::npos);
}

// A whole step: the logits, 182 MB, are computed in four pieces, and the gradients with them.
TEST(LinearCrossEntropy, WholeStepsNeverHoldAllLogits) {
  Head head;
  Tensor x = head.x.detach().view({-1, 6}), classes = head.classes.view({-1});
  auto run = [&](bool compiled, int64_t* peak) {
    Tensor weight = head.weight.detach().clone().requires_grad_(), bias = head.bias.detach().clone().requires_grad_();
    optim::AdamW adam({weight, bias}, 1e-2);
    auto step = [&](const Tensor& x, const Tensor& classes) {
      adam.zero_grad();
      Tensor loss = cross_entropy(linear(x, weight, bias), classes);
      loss.backward();
      adam.step();
      return loss.detach();
    };
    auto fast = compile(step, {.fullgraph = true});
    std::vector<double> losses;
    for (int n = 0; n < 3; ++n) losses.push_back((compiled ? fast(x, classes) : step(x, classes)).item<double>());
    if (peak) *peak = compiler::explain(fast, x, classes).programs.back().reports[0]->arena_bytes;
    return losses;
  };
  int64_t peak = 0;
  auto want = run(false, nullptr), got = run(true, &peak);
  for (size_t n = 0; n < want.size(); ++n) EXPECT_NEAR(got[n], want[n], 2e-5 * want[n]);
  EXPECT_LT(peak, 651 * 70000 * 4);
}

}  // namespace
}  // namespace sinter
