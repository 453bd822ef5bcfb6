// Mixed precision: which ops run in which type, what is converted how often, and what compiled functions make of it.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

TEST(Autocast, ProductsRunInTheLowerType) {
  Tensor a = randn({4, 8}), b = randn({8, 3}), w = randn({3, 8}), bias = randn({3}), image = randn({1, 2, 5, 5}),
         filter = randn({4, 2, 3, 3});
  AutocastGuard autocast(kCPU, kBFloat16);
  EXPECT_EQ(mm(a, b).dtype(), kBFloat16);
  EXPECT_EQ(matmul(a, b).dtype(), kBFloat16);
  EXPECT_EQ(linear(a, w, bias).dtype(), kBFloat16);
  EXPECT_EQ(addmm(randn({4, 3}), a, b).dtype(), kBFloat16);
  EXPECT_EQ(conv2d(image, filter, randn({4})).dtype(), kBFloat16);
  Tensor q = randn({1, 2, 4, 8});
  EXPECT_EQ(scaled_dot_product_attention(q, q, q).dtype(), kBFloat16);
  EXPECT_TRUE(equal(mm(a, b), mm(a.to(kBFloat16), b.to(kBFloat16))));
}

TEST(Autocast, LossesAreWideAndOtherOpsTakeWhatTheyGet) {
  Tensor x = randn({4, 8}).to(kBFloat16), classes = arange(4);
  AutocastGuard autocast(kCPU, kBFloat16);
  EXPECT_EQ(cross_entropy(x, classes).dtype(), kFloat32);
  EXPECT_EQ(mse_loss(x, x).dtype(), kFloat32);
  EXPECT_EQ(prod(x).dtype(), kFloat32);
  // On a CPU these keep their type.
  EXPECT_EQ(softmax(x, 1).dtype(), kBFloat16);
  EXPECT_EQ(exp(x).dtype(), kBFloat16);
  EXPECT_EQ(layer_norm(x, {8}).dtype(), kBFloat16);
  EXPECT_EQ((x + randn({4, 8})).dtype(), kFloat32);
}

TEST(Autocast, LeavesDoublesIntegersAndOtherDevicesAlone) {
  Tensor d = randn({3, 3}, kFloat64), i = arange(9).view({3, 3}), x = randn({3, 3});
  {
    AutocastGuard autocast(kCPU, kBFloat16);
    EXPECT_EQ(mm(d, d).dtype(), kFloat64);
    EXPECT_EQ(mm(i, i).dtype(), kInt64);
  }
  AutocastGuard elsewhere(kCUDA, kBFloat16);
  EXPECT_EQ(mm(x, x).dtype(), kFloat32);
}

TEST(Autocast, GuardsNestAndEnd) {
  Tensor x = randn({3, 3});
  {
    AutocastGuard outer(kCPU, kBFloat16);
    {
      AutocastGuard off(kCPU, kBFloat16, false);
      EXPECT_EQ(mm(x, x).dtype(), kFloat32);
    }
    {
      AutocastGuard inner(kCPU, kFloat16);
      EXPECT_EQ(mm(x, x).dtype(), kFloat16);
    }
    EXPECT_EQ(mm(x, x).dtype(), kBFloat16);
  }
  EXPECT_EQ(mm(x, x).dtype(), kFloat32);
  EXPECT_NE(error_of([] { AutocastGuard wrong(kCPU, kFloat32); }).find("bf16 or f16"), std::string::npos);
}

TEST(Autocast, GradientsOfParametersAreWide) {
  nn::Sequential net(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 3));
  Tensor x = randn({4, 8}), y = arange(4) % 3, loss;
  {
    AutocastGuard autocast(kCPU, kBFloat16);
    loss = cross_entropy(net(x), y);
  }
  loss.backward();
  TensorList low;
  for (auto& p : net->parameters()) {
    EXPECT_EQ(p.grad().dtype(), kFloat32);
    low.push_back(p.grad().clone());
  }
  net->zero_grad();
  cross_entropy(net(x), y).backward();
  for (size_t i = 0; i < low.size(); ++i)
    EXPECT_LT((low[i] - net->parameters()[i].grad()).abs().amax().item<double>(), 0.02);
}

// As torch.autocast does: a parameter that is used twice is converted once, and again after it has changed.
TEST(Autocast, WeightsAreConvertedOnce) {
  Tensor w = randn({8, 8}).requires_grad_(), x = randn({4, 8});
  AutocastGuard autocast(kCPU, kBFloat16);
  Profile profile;
  Tensor y = linear(linear(x, w), w);
  profile.stop();
  int64_t conversions = 0;
  for (auto& row : profile.kernels())
    if (row.name == "_to_copy") conversions += row.calls;
  EXPECT_EQ(conversions, 2);  // x, and the weight once
  {
    NoGradGuard no_grad;
    w.zero_();
  }
  EXPECT_TRUE((linear(x, w) == 0).all().item<bool>());
}

// Several backward passes, and a look without gradients before them, while one guard is alive.
TEST(Autocast, GradientsAddUpInsideOneGuard) {
  Tensor w = randn({8, 8}).requires_grad_(), x = randn({4, 8});
  AutocastGuard autocast(kCPU, kBFloat16);
  {
    NoGradGuard no_grad;
    linear(x, w);
  }
  linear(x, w).sum().backward();
  Tensor once = w.grad().clone();
  linear(x, w).sum().backward();
  EXPECT_TRUE(allclose(w.grad(), once * 2));
  EXPECT_GT(once.abs().amax().item<double>(), 0);
}

TEST(Autocast, CompiledAsEager) {
  nn::Sequential net(nn::Linear(8, 16), nn::GELU(), nn::Linear(16, 3));
  Tensor x = randn({4, 8}), y = arange(4) % 3;
  auto inside = [&](const Tensor& x, const Tensor& y) {
    AutocastGuard autocast(kCPU, kBFloat16);
    return cross_entropy(net(x), y);
  };
  auto gradients = [&](auto loss) {
    net->zero_grad();
    loss(x, y).backward();
    TensorList out;
    for (auto& p : net->parameters()) out.push_back(p.grad().clone());
    return out;
  };
  TensorList want = gradients(inside), got = gradients(compile(inside));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), kFloat32);
    EXPECT_LT((got[i] - want[i]).abs().amax().item<double>(), 0.01);
  }
}

// The state of the caller is guarded.
TEST(Autocast, AroundACompiledFunction) {
  Tensor x = randn({4, 8}), w = randn({8, 3});
  auto f = compile([](const Tensor& x, const Tensor& w) { return mm(x, w); });
  EXPECT_EQ(f(x, w).dtype(), kFloat32);
  {
    AutocastGuard autocast(kCPU, kBFloat16);
    EXPECT_EQ(f(x, w).dtype(), kBFloat16);
    EXPECT_EQ(f(x, w).dtype(), kBFloat16);
  }
  EXPECT_EQ(f(x, w).dtype(), kFloat32);
}

TEST(Autocast, AWholeStep) {
  nn::Linear net(8, 3);
  optim::AdamW adam(net->parameters(), optim::AdamWOptions(1e-2));
  Tensor x = randn({16, 8}), y = arange(16) % 3;
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    Tensor loss;
    {
      AutocastGuard autocast(kCPU, kBFloat16);
      loss = cross_entropy(net(x), y);
    }
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    adam.step();
    return loss;
  });
  double first = step(x, y).item<double>(), last = 0;
  for (int i = 0; i < 50; ++i) last = step(x, y).item<double>();
  EXPECT_LT(last, first * 0.8);
  for (auto& p : net->parameters()) EXPECT_EQ(p.dtype(), kFloat32);
}

}  // namespace
}  // namespace sinter
