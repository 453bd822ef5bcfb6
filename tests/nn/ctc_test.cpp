// The CTC loss against PyTorch's, and against every alignment of a short input.
#include "sinter/capture/compile.h"
#include "tests/nn/recorded_layers.h"

namespace sinter {
namespace {

struct Ctc {
  Tensor logits = (sin(ramp64({6, 4, 5}, 0, 60)) * 2).requires_grad_();
  Tensor targets = from_data(std::vector<int64_t>{1, 2, 3, 2, 2, 0, 3, 3, 3, 0, 0, 0}, {4, 3});
  Tensor lengths = tensor({6, 3, 4, 5}), target_lengths = tensor({3, 2, 3, 0});

  Tensor loss(const Tensor& x, Reduction reduction, bool zero_infinity = true, int64_t blank = 0) const {
    return ctc_loss(log_softmax(x, -1), targets, lengths, target_lengths, blank, reduction, zero_infinity);
  }
};

TEST(CtcLoss, IsPyTorchsWithItsGradient) {
  const std::vector<std::tuple<const char*, Reduction, int64_t>> cases{{"ctc_mean", Reduction::kMean, 0},
                                                                       {"ctc_sum", Reduction::kSum, 0},
                                                                       {"ctc_none", Reduction::kNone, 0},
                                                                       {"ctc_blank", Reduction::kSum, 4}};
  for (auto& [name, reduction, blank] : cases)
    for (bool compiled : {false, true}) {
      Ctc ctc;
      auto f = [&, reduction = reduction, blank = blank](const Tensor& x) {
        return ctc.loss(x, reduction, true, blank);
      };
      Tensor loss = compiled ? compile(f, {.fullgraph = true})(ctc.logits) : f(ctc.logits);
      expect_differentiated(name, {loss}, {ctc.logits}, nullptr);
    }
}

TEST(CtcLoss, ATargetThatDoesNotFitIsInfinite) {
  Ctc ctc;
  Tensor loss = ctc.loss(ctc.logits, Reduction::kNone, false), expected = recorded_layer("ctc_infinite/out0");
  EXPECT_TRUE(loss.detach().to(kFloat32).allclose(expected)) << loss << expected;
  EXPECT_TRUE(std::isinf(loss[2].item<double>()));
}

TEST(CtcLoss, TargetsMayBeJoinedOrOne) {
  Ctc ctc;
  Tensor log_probs = log_softmax(ctc.logits, -1), joined = tensor({1, 2, 3, 2, 2, 3, 3, 3});
  expect_layer("ctc_joined/out0",
               ctc_loss(log_probs, joined, ctc.lengths, ctc.target_lengths, 0, Reduction::kNone, true));
  expect_layer("ctc_single/out0", ctc_loss(log_probs.select(1, 0), ctc.targets[0], tensor(6), tensor(3)));
  // What lies behind a target is not read.
  ctc.targets.index_put_({3}, -7);
  EXPECT_TRUE(ctc.loss(ctc.logits, Reduction::kNone).detach().to(kFloat32).allclose(recorded_layer("ctc_none/out0")));
}

// Every path of four positions over three classes, its repetitions and blanks taken out.
TEST(CtcLoss, AddsUpAllAlignments) {
  Tensor log_probs = log_softmax(sin(ramp64({4, 3}, 0, 9)), -1);
  double sum = 0;
  for (int path = 0; path < 81; ++path) {
    std::vector<int> said;
    double log_p = 0;
    for (int t = 0, rest = path, before = 0; t < 4; ++t, rest /= 3) {
      int c = rest % 3;
      if (c != 0 && c != before) said.push_back(c);
      before = c;
      log_p += log_probs[t][c].item<double>();
    }
    if (said == std::vector{1, 1}) sum += std::exp(log_p);
  }
  expect_values(ctc_loss(log_probs, tensor({1, 1}), tensor(4), tensor(2), 0, Reduction::kSum), {-std::log(sum)}, 1e-12);
}

TEST(CtcLoss, HalfTypesAndMistakes) {
  Ctc ctc;
  Tensor half = log_softmax(ctc.logits, -1).detach().to(kBFloat16);
  Tensor loss = ctc_loss(half, ctc.targets, ctc.lengths, ctc.target_lengths, 0, Reduction::kSum, true);
  EXPECT_EQ(loss.dtype(), kBFloat16);
  EXPECT_NEAR(loss.item<double>(), recorded_layer("ctc_sum/out0").item<double>(), 0.3);
  EXPECT_THROW(ctc.loss(ctc.logits, Reduction::kMean, true, 5), Error);
  EXPECT_THROW(ctc.loss(ctc.logits, Reduction::kBatchMean), Error);
  EXPECT_THROW(ctc_loss(half, tensor({1, 2}), ctc.lengths, ctc.target_lengths), Error);
  EXPECT_THROW(ctc_loss(half, ctc.targets, tensor({6}), ctc.target_lengths), Error);
}

}  // namespace
}  // namespace sinter
