#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/autograd/common.h"

namespace sinter {
namespace {

TEST(Backward, ChainOfOps) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = (x * x + x).sum();
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  y.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 5, 7}));
  EXPECT_FALSE(y.grad().defined());
}

TEST(Backward, SumsBroadcastDimensionsAndCastsToTheOperand) {
  Tensor x = leaf({1, 2});
  Tensor w = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, kFloat64).requires_grad_();
  Tensor s = tensor(2.0, kFloat32).requires_grad_();
  (x * w * s).sum().backward();
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{18, 24}));
  EXPECT_EQ(w.grad().dtype(), kFloat64);
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2, 4, 2, 4, 2, 4}));
  EXPECT_EQ(s.grad().dim(), 0);
  EXPECT_EQ(s.grad().item<float>(), 1 + 4 + 3 + 8 + 5 + 12);
}

TEST(Backward, AccumulatesIntoLeaves) {
  Tensor x = leaf({1, 2});
  (x * 3).sum().backward();
  Tensor held = x.grad();
  (x * 4).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{7, 7}));
  EXPECT_TRUE(held.is_same(x.grad()));
  EXPECT_EQ(held.to_vector<float>(), (Floats{7, 7}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, GradientsOfTwoLeavesDoNotShareMemory) {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  (x + y).sum().backward();
  x.grad().mul_(10);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{10, 10}));
  EXPECT_EQ(y.grad().to_vector<float>(), (Floats{1, 1}));
}

TEST(Backward, GivenGradientIsNotTaken) {
  Tensor x = leaf({1, 2}), g = tensor({5.0, 6.0});
  (x + 1).backward(g);
  x.grad().zero_();
  EXPECT_EQ(g.to_vector<float>(), (Floats{5, 6}));
}

TEST(Backward, AGradientSetByTheUserIsAddedTo) {
  Tensor x = leaf({1, 2}), given = tensor({10.0, 20.0});
  x.set_grad(given);
  (x * x).sum().backward();
  EXPECT_EQ(given.to_vector<float>(), (Floats{12, 24}));
}

TEST(Backward, WhatAHookKeepsIsNotTaken) {
  Tensor x = leaf({1, 2}), seen, replaced = tensor({3.0, 4.0});
  bool replace = false;
  x.register_hook([&](const Tensor& g) {
    seen = g;
    return replace ? replaced : Tensor();
  });
  for (int i = 0; i < 2; ++i) (x * 2).sum().backward();
  EXPECT_EQ(seen.to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{4, 4}));
  x.set_grad({});
  replace = true;
  for (int i = 0; i < 2; ++i) (x * 2).sum().backward();
  EXPECT_EQ(replaced.to_vector<float>(), (Floats{3, 4}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{6, 8}));
}

TEST(Backward, ADifferentiableGradientIsMadeAnew) {
  Tensor x = leaf({2});
  (x * x).sum().backward();
  Tensor held = x.grad();
  (x * x * x).sum().backward({}, false, true);
  EXPECT_EQ(held.item<float>(), 4);
  EXPECT_EQ(x.grad().item<float>(), 16);
  EXPECT_EQ(autograd::grad({x.grad()}, {x})[0].item<float>(), 12);  // 6 x

  // A gradient that only passes through is a copy too.
  Tensor y = leaf({5}), given = tensor({1.0}).requires_grad_();
  autograd::backward({y + 0}, {given}, {}, true);
  EXPECT_FALSE(y.grad().is_alias_of(given));
  EXPECT_EQ(autograd::grad({y.grad() * 3}, {given})[0].item<float>(), 3);
}

TEST(Backward, GradientsLieAsTheirLeaves) {
  auto strides = [](const Tensor& leaf) {
    leaf.requires_grad_();
    (leaf * 2).sum().backward();
    Tensor first = leaf.grad();
    (leaf * leaf.detach().contiguous()).sum().backward();
    EXPECT_TRUE(first.is_same(leaf.grad()));
    EXPECT_EQ(leaf.grad().to_vector<float>(), (leaf.detach() + 2).to_vector<float>());
    return leaf.grad().strides();
  };
  EXPECT_EQ(strides(ones({2, 3, 4, 5}).contiguous(kChannelsLast)), (IntList{60, 1, 15, 3}));
  EXPECT_EQ(strides(ones({3, 4}).t()), (IntList{1, 4}));
  EXPECT_EQ(strides(ones({3, 8}).slice(1, 0, 8, 2)), (IntList{4, 1}));  // gaps: row by row
  EXPECT_EQ(strides(ones({3, 1}).expand({3, 4})), (IntList{4, 1}));
}

TEST(Backward, ZeroGradForgetsOrZeroesInPlace) {
  Tensor x = leaf({1, 2}), y = leaf({3});
  (x * 2).sum().backward();
  Tensor held = x.grad();
  autograd::zero_grad({x, y}, false);
  EXPECT_TRUE(held.is_same(x.grad()));
  EXPECT_EQ(held.to_vector<float>(), (Floats{0, 0}));
  EXPECT_FALSE(y.grad().defined());
  (x * 3).sum().backward();
  EXPECT_EQ(held.to_vector<float>(), (Floats{3, 3}));
  autograd::zero_grad({x});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(held.to_vector<float>(), (Floats{3, 3}));

  (x * x).sum().backward({}, false, true);
  EXPECT_TRUE(x.grad().requires_grad());
  autograd::zero_grad({x}, false);
  EXPECT_FALSE(x.grad().requires_grad());
}

TEST(Backward, UsedTwiceSumsBothPaths) {
  Tensor x = leaf({2});
  Tensor y = x * x;
  (y * y + y).sum().backward();
  EXPECT_EQ(x.grad().item<float>(), 4 * 8 + 2 * 2);
}

TEST(Backward, Matmul) {
  Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}}).requires_grad_(), b = tensor({{5.0}, {6.0}}).requires_grad_();
  matmul(a, b).sum().backward();
  EXPECT_EQ(a.grad().to_vector<float>(), (Floats{5, 6, 5, 6}));
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{4, 6}));
}

TEST(Backward, SecondTimeNeedsRetainGraph) {
  Tensor x = leaf({3});
  Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(x.grad().item<float>(), 12);
  expect_has(error_of([&] { y.backward(); }), "retain_graph = true");
}

TEST(Backward, FreesWhatItKept) {
  bool freed = false;
  static float memory[2] = {1, 2};
  Tensor x = leaf({3, 4});
  Tensor y = (x * from_blob(memory, {2}, {}, [&] { freed = true; })).sum();
  EXPECT_FALSE(freed);
  y.backward();
  EXPECT_TRUE(freed);
}

TEST(Backward, ErrorsSayWhatToDo) {
  Tensor x = leaf({1, 2});
  expect_has(error_of([&] { (x * 2).backward(); }), "has shape [2]");
  expect_has(error_of([&] { (x * 2).backward(tensor({1.0})); }), "has shape [1], the output [2]");
  expect_has(error_of([&] { tensor({1.0}).backward(); }), "does not depend on a tensor that requires a gradient");
  expect_has(error_of([&] { tensor({1, 2}).requires_grad_(); }), "only floating-point");
  expect_has(error_of([&] { (x * 2).requires_grad_(false); }), "detach()");
}

struct Jump : Pointwise<Jump> {
  static constexpr auto name = "jump";
  SINTER_BODY((x), select(gt(x, lit(0)), lit(1), lit(0)))
  static constexpr NotDifferentiable grad{"it has jumps"};
};

TEST(Backward, OpWithoutGradientSaysWhy) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  Tensor x = tracer.add_input({.dtype = kFloat32, .shape = {}, .device = {}}).requires_grad_();
  EXPECT_FALSE((x > 1).requires_grad());
  expect_has(error_of([&] { call<Jump>({x}).backward(); }), "it has jumps");
}

TEST(Backward, NoGradRecordsNothing) {
  Tensor x = leaf({1});
  {
    NoGradGuard off;
    EXPECT_FALSE((x * 2).requires_grad());
    EnableGradGuard on;
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
  AutoGradMode off(false);
  EXPECT_FALSE(autograd::grad_enabled());
}

TEST(Backward, DetachStopsTheFlowAndSharesMemory) {
  Tensor x = leaf({2, 3});
  Tensor d = x.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_alias_of(x));
  (x * (x * 1).detach()).sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 3}));
}

TEST(Backward, LongChainsAreFreedWithoutRecursion) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 100'000; ++i) y = y + 1;
  y = {};  // never run backward
  Tensor z = x;
  for (int i = 0; i < 100'000; ++i) z = z + 1;
  z.backward({}, true);
  EXPECT_EQ(x.grad().item<float>(), 1);
}

TEST(Backward, HooksSeeAndReplaceTheWholeGradient) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  int calls = 0;
  x.register_hook([&](const Tensor& g) {
    ++calls;
    EXPECT_EQ(g.to_vector<float>(), (Floats{40, 40}));
    return Tensor();
  });
  y.register_hook([](const Tensor& g) {
    EXPECT_EQ(g.to_vector<float>(), (Floats{2, 2}));
    return g * 10;
  });
  (y + y).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{40, 40}));
}

TEST(Grad, GivesGradientsAndTouchesNoLeaf) {
  Tensor x = leaf({3}), w = leaf({5});
  Tensor h = x * w;
  auto grads = autograd::grad({(h * h).sum()}, {h, w});
  EXPECT_EQ(grads[0].item<float>(), 30);
  EXPECT_EQ(grads[1].item<float>(), 90);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(Grad, UnusedInputs) {
  Tensor x = leaf({3}), w = leaf({5});
  expect_has(error_of([&] { autograd::grad({x * 2}, {x, w}); }), "no output depends on input 1");
  auto grads = autograd::grad({x * 2}, {x, w}, {}, {}, false, true);
  EXPECT_EQ(grads[0].item<float>(), 2);
  EXPECT_FALSE(grads[1].defined());
}

TEST(Grad, RunsOnlyWhatTheInputsNeed) {
  Tensor x = leaf({3}), w = leaf({5});
  Tensor branch = w * 2;
  bool ran = false;
  branch.register_hook([&](const Tensor&) {
    ran = true;
    return Tensor();
  });
  autograd::grad({x * branch}, {x});
  EXPECT_FALSE(ran);
}

TEST(Grad, OfAGradient) {
  Tensor x = leaf({2});
  Tensor y = x * x * x;
  Tensor first = autograd::grad({y}, {x}, {}, {}, true)[0];
  EXPECT_EQ(first.item<float>(), 12);
  Tensor second = autograd::grad({first}, {x}, {}, {}, true)[0];
  EXPECT_EQ(second.item<float>(), 12);
  EXPECT_EQ(autograd::grad({second}, {x})[0].item<float>(), 6);
}

TEST(Grad, OfAGradientThroughASavedResult) {
  Tensor x = leaf({0.5}, kFloat64);
  Tensor y = tanh(x);
  Tensor first = autograd::grad({y}, {x}, {}, {}, true)[0];
  double t = std::tanh(0.5);
  EXPECT_NEAR(first.item<double>(), 1 - t * t, 1e-12);
  EXPECT_NEAR(autograd::grad({first}, {x})[0].item<double>(), -2 * t * (1 - t * t), 1e-12);
}

TEST(Grad, OfTracedTensorsBecomesPartOfTheGraph) {
  Type type{.dtype = kFloat32, .shape = {Dim::symbol("n"), 3}, .device = {}};
  Graph graph = trace(
      [](const TensorList& x) {
        x[0].requires_grad_();
        return autograd::grad({(x[0] * x[0]).sum()}, {x[0]});
      },
      std::span(&type, 1));
  graph.verify();
  Array in(kFloat32, {2, 3});
  for (int i = 0; i < 6; ++i) in.f[size_t(i)] = i;
  auto out = interpret(graph, std::span(&in, 1));
  EXPECT_EQ(out[0].f, (std::vector<double>{0, 2, 4, 6, 8, 10}));
}

}  // namespace
}  // namespace sinter
