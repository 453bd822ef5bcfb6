// checkpoint(): the gradients are those of the function, and less memory is in use until they flow.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// A chain that keeps many values: each of its ops reads what the one before has made.
Tensor chain(const Tensor& x, const Tensor& w) {
  Tensor y = x;
  for (int i = 0; i < 4; ++i) y = tanh(mm(y, w)) * sigmoid(y);
  return y;
}

// The gradients of what `f` makes of the leaves.
TensorList gradients(const std::function<Tensor(const TensorList&)>& f, const TensorList& leaves) {
  Tensor y = f(leaves);
  return autograd::grad({y.sum()}, leaves, {}, {}, false, true);
}

void expect_equal(const TensorList& a, const TensorList& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    EXPECT_TRUE(!a[i].defined() || equal(a[i], b[i])) << i;
  }
}

TensorList two_leaves() {
  manual_seed(3);
  return {randn({8, 8}).requires_grad_(), randn({8, 8}).requires_grad_()};
}

TEST(Checkpoint, GradientsAreTheSameBits) {
  auto leaves = two_leaves();
  auto plain = gradients([](auto& l) { return chain(l[0], l[1]); }, leaves);
  auto again = gradients([](auto& l) { return checkpoint(chain, l[0], l[1]); }, leaves);
  expect_equal(plain, again);
}

TEST(Checkpoint, WhatTheFunctionReachesByItselfHasItsGradient) {
  auto leaves = two_leaves();
  auto plain = gradients([](auto& l) { return chain(l[0] * 2, l[1]); }, leaves);
  auto again = gradients(
      [](auto& l) {
        return checkpoint([&l](const Tensor& x) { return chain(x, l[1]); }, l[0] * 2);
      },
      leaves);
  expect_equal(plain, again);
}

TEST(Checkpoint, KeepsOnlyTheArguments) {
  Tensor x = randn({256, 256}).requires_grad_(), w = randn({256, 256}).requires_grad_();
  const int64_t one = 256 * 256 * 4;
  auto kept_by = [&](auto f) {
    int64_t before = cpu_memory_stats().allocated;
    Tensor y = f();
    return cpu_memory_stats().allocated - before;
  };
  EXPECT_GE(kept_by([&] { return chain(x, w); }), 12 * one);
  EXPECT_LT(kept_by([&] { return checkpoint(chain, x, w); }), 2 * one);
}

TEST(Checkpoint, RunsTheFunctionTwiceAndOnlyForGradients) {
  Tensor x = randn({4}).requires_grad_();
  int runs = 0;
  auto f = [&runs](const Tensor& x) {
    ++runs;
    return exp(x) * x;
  };
  Tensor y = checkpoint(f, x);
  EXPECT_EQ(runs, 1);
  y.sum().backward();
  EXPECT_EQ(runs, 2);
  NoGradGuard no_grad;
  checkpoint(f, x);
  EXPECT_EQ(runs, 3);
}

TEST(Checkpoint, DrawsTheSameNumbersAndLeavesTheStreamWhereItWas) {
  Tensor x = ones({1000}).requires_grad_();
  manual_seed(7);
  Tensor y = checkpoint([](const Tensor& x) { return dropout(exp(x), 0.5, true); }, x);
  Tensor between = rand({3});
  y.sum().backward();
  Tensor after = rand({3});
  // y is exp(x) times the mask, and so is its gradient.
  EXPECT_TRUE(equal(x.grad(), y.detach()));
  manual_seed(7);
  dropout(x, 0.5, true);
  EXPECT_TRUE(equal(between, rand({3})));
  EXPECT_TRUE(equal(after, rand({3})));
}

TEST(Checkpoint, SeveralResultsAndArgumentsOfAnyKind) {
  auto f = [](const Tensor& x, const TensorList& more, double scale, const Tensor& mask) {
    Tensor y = tanh(x) * more[0] * scale;
    return std::make_tuple(where(mask, y, 0), y * more[1], argmax(y));
  };
  Tensor mask = randn({5}) > 0;
  auto run = [&](auto call) {
    manual_seed(2);
    Tensor x = randn({5}).requires_grad_(), a = randn({5}).requires_grad_(), b = randn({5});
    auto [y, z, at] = call(x, TensorList{exp(a), b}, 1.5, mask);
    EXPECT_FALSE(at.requires_grad());
    (y.sum() + (z * z).sum()).backward();
    return TensorList{x.grad(), a.grad()};
  };
  expect_equal(run(f), run([&](const auto&... args) { return checkpoint(f, args...); }));
}

TEST(Checkpoint, Nests) {
  auto leaves = two_leaves();
  auto inner = [](const Tensor& x, const Tensor& w) { return checkpoint(chain, exp(x * 0.1), w) + x; };
  auto outer = [&](const Tensor& x, const Tensor& w) { return checkpoint(inner, checkpoint(inner, x, w), w) * x; };
  auto plain = gradients([](auto& l) {
    auto inner = [&](const Tensor& x) { return chain(exp(x * 0.1), l[1]) + x; };
    return inner(inner(l[0])) * l[0];
  }, leaves);
  expect_equal(plain, gradients([&](auto& l) { return outer(l[0], l[1]); }, leaves));
  expect_equal(plain, gradients([&](auto& l) { return checkpoint(outer, l[0], l[1]); }, leaves));
}

TEST(Checkpoint, NestedCallsKeepNothingOfTheirOwn) {
  Tensor x = randn({256, 256}).requires_grad_(), w = randn({256, 256}).requires_grad_();
  const int64_t one = 256 * 256 * 4;
  int64_t before = cpu_memory_stats().allocated;
  Tensor y = checkpoint(
      [](const Tensor& x, const Tensor& w) {
        Tensor y = x;
        for (int i = 0; i < 6; ++i) y = checkpoint(chain, y, w);
        return y;
      },
      x, w);
  EXPECT_LT(cpu_memory_stats().allocated - before, 2 * one);
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST(Checkpoint, BlocksNeedOneBlockAtATime) {
  manual_seed(1);
  Tensor x = randn({256, 256}).requires_grad_(), w = randn({256, 256}).requires_grad_();
  auto peak_of = [&](auto block) {
    reset_cpu_memory_peak();
    int64_t before = cpu_memory_stats().allocated;
    Tensor y = x;
    for (int i = 0; i < 8; ++i) y = block(y);
    y.sum().backward();
    autograd::zero_grad({x, w});
    return cpu_memory_stats().peak - before;
  };
  int64_t plain = peak_of([&](const Tensor& y) { return chain(y, w); });
  int64_t less = peak_of([&](const Tensor& y) { return checkpoint(chain, y, w); });
  EXPECT_LT(less, plain / 2);
}

TEST(Checkpoint, AutocastIsAsItWas) {
  manual_seed(4);
  Tensor x = randn({8, 8}), w = randn({8, 8}).requires_grad_();
  auto f = [&w](const Tensor& x) { return tanh(mm(tanh(mm(x, w)), w)); };
  auto run = [&](bool checkpointed) {
    w.set_grad({});
    Tensor loss;
    {
      AutocastGuard autocast(kCPU, kBFloat16);
      Tensor h = mm(x, w);  // converts the weight before
      loss = (checkpointed ? checkpoint(f, h) : f(h)).to(kFloat32).sum() + mm(x, w).to(kFloat32).sum();
    }
    loss.backward();
    return w.grad();
  };
  EXPECT_TRUE(allclose(run(false), run(true), 2e-2, 2e-2));
  EXPECT_EQ(run(true).dtype(), kFloat32);
}

TEST(Checkpoint, StatisticsAreUpdatedOnce) {
  nn::BatchNorm1d norm(4);
  norm->train();
  Tensor x = randn({16, 4}).requires_grad_();
  Tensor y = checkpoint([&](const Tensor& x) { return norm->forward(x); }, x);
  Tensor mean = norm->running_mean.clone();
  y.sum().backward();
  EXPECT_TRUE(equal(norm->running_mean, mean));
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(Checkpoint, GradientsOfGradients) {
  auto second = [](auto f) {
    manual_seed(5);
    Tensor x = randn({6}).requires_grad_();
    Tensor g = autograd::grad({f(x).sum()}, {x}, {}, true, true)[0];
    (g * g).sum().backward();
    return x.grad();
  };
  auto f = [](const Tensor& x) { return tanh(x) * exp(x * 0.5); };
  EXPECT_TRUE(equal(second(f), second([&](const Tensor& x) { return checkpoint(f, x); })));
}

TEST(Checkpoint, TheGraphIsFreedAndMayBeRetained) {
  Tensor x = randn({4}).requires_grad_();
  Tensor y = checkpoint([](const Tensor& x) { return exp(x) * x; }, x).sum();
  y.backward({}, true);
  Tensor once = x.grad().clone();
  y.backward();
  EXPECT_TRUE(allclose(x.grad(), once * 2));
  EXPECT_NE(error_of([&] { y.backward(); }).find("freed"), std::string::npos);
}

TEST(Checkpoint, FunctionsThatDoSomethingElseAreRefused) {
  Tensor x = randn({4}).requires_grad_();
  int runs = 0;
  Tensor longer = checkpoint([&](const Tensor& x) { return runs++ ? exp(tanh(x)) : exp(x); }, x).sum();
  EXPECT_NE(error_of([&] { longer.backward(); }).find("must do the same both times"), std::string::npos);
  runs = 0;
  Tensor other = checkpoint([&](const Tensor& x) { return runs++ ? tanh(x) : exp(x); }, x).sum();
  EXPECT_NE(error_of([&] { other.backward(); }).find("must do the same both times"), std::string::npos);
}

TEST(Checkpoint, ArgumentsMustNotChangeInBetween) {
  Tensor x = randn({4}), w = randn({4}).requires_grad_();
  Tensor y = checkpoint([&](const Tensor& x) { return exp(x * w); }, x).sum();
  x.add_(1);
  EXPECT_NE(error_of([&] { y.backward(); }).find("in-place write"), std::string::npos);
}

TEST(Checkpoint, ErrorsLeaveNothingBehind) {
  Tensor x = randn({4}).requires_grad_();
  EXPECT_NE(error_of([&] { checkpoint([](const Tensor& x) { return mm(x, x); }, x); }), "");
  Tensor y = exp(x) * x;
  y.sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

}  // namespace
}  // namespace sinter
