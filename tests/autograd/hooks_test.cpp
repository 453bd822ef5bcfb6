// Hooks, retained gradients, the recorded graph as users see it, and functions with gradients of their own.
#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/autograd/common.h"

namespace sinter {
namespace {

TEST(Hooks, AreRemovedByTheirNumbers) {
  Tensor x = leaf({1, 2});
  int calls = 0;
  unsigned first = x.register_hook([&](const Tensor&) { ++calls; });
  x.register_hook([](const Tensor& g) { return g * 2; });
  (x * 3).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{6, 6}));
  x.remove_hook(first);
  (x * 3).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{12, 12}));
  expect_has(error_of([&] { x.remove_hook(7); }), "no hook of number 7");
}

TEST(Hooks, ChangeNoShape) {
  Tensor x = leaf({1, 2});
  x.register_hook([](const Tensor& g) { return g.sum(); });
  expect_has(error_of([&] { (x * 3).sum().backward(); }), "register_hook");
}

TEST(Hooks, AfterAGradientHasGrown) {
  Tensor x = leaf({1, 2});
  int calls = 0;
  x.register_post_accumulate_grad_hook([&](const Tensor& leaf) {
    ++calls;
    EXPECT_EQ(leaf.grad().to_vector<float>(), (Floats{5, 5}));
    leaf.set_grad({});
  });
  (x * 2 + x * 3).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
  expect_has(error_of([&] { (x * 2).register_post_accumulate_grad_hook([](const Tensor&) {}); }), "only a leaf");
}

TEST(Hooks, OfALeafInsideACompiledFunction) {
  Tensor x = leaf({1, 2});
  auto f = compile([](const Tensor& x) { return (x * 3).sum(); });
  auto step = compile([](const Tensor& x) { (x * 3).sum().backward(); return x * 1; });
  f(x).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 3}));
  unsigned hook = x.register_hook([](const Tensor& g) { return g * 10; });
  x.set_grad({});
  f(x).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{30, 30}));
  x.set_grad({});
  step(x);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{30, 30}));
  x.remove_hook(hook);
  x.set_grad({});
  step(x);
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 3}));
}

TEST(Hooks, InsideACompiledFunctionAreCaptured) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x * 2;
    y.register_hook([](const Tensor& g) { return g * 10; });
    return (y * y).sum();
  });
  for (int i = 0; i < 3; ++i) {
    Tensor x = leaf({1, 2});
    f(x).backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{80, 160}));
  }
}

TEST(RetainGrad, KeepsAndAddsUp) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  EXPECT_FALSE(y.retains_grad());
  y.retain_grad();
  EXPECT_TRUE(y.retains_grad());
  Tensor z = (y * y).sum();
  z.backward({}, true);
  EXPECT_EQ(y.grad().to_vector<float>(), (Floats{4, 8}));
  z.backward();
  EXPECT_EQ(y.grad().to_vector<float>(), (Floats{8, 16}));
}

TEST(Backward, ToSomeInputsAlone) {
  Tensor x = leaf({1}), w = leaf({2});
  Tensor y = x * w;
  y.backward({}, {}, false, TensorList{w});
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(w.grad().item<float>(), 1);
}

TEST(GradFn, NamesOpsAndTheirOperands) {
  Tensor x = leaf({1, 2});
  Tensor y = exp(x) * 2;
  EXPECT_EQ(y.grad_fn().name(), "mul");
  expect_has(y.grad_fn().text(), "hooks_test.cpp");
  auto next = y.grad_fn().next_functions();
  EXPECT_EQ(next[0].name(), "exp");
  EXPECT_FALSE(next[1].defined());
  EXPECT_EQ(next[0].next_functions()[0].name(), "AccumulateGrad");
  EXPECT_FALSE(x.grad_fn().defined());
}

TEST(Detach, InPlace) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2;
  y.detach_();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(y.is_leaf());
  Tensor z = x * 3;
  expect_has(error_of([&] { z.view({2, 1}).detach_(); }), "view");
}

TEST(Anomaly, NamesTheOpAndItsLine) {
  Tensor x = leaf({0});
  Tensor y = (sqrt(x) * 0).sum();
  autograd::DetectAnomalyGuard guard;
  std::string error = error_of([&] { y.backward(); });
  expect_has(error, "sqrt");
  expect_has(error, "hooks_test.cpp");
}

TEST(GradMode, Switches) {
  Tensor x = leaf({1});
  {
    InferenceMode inference;
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_FALSE(GradMode::is_enabled());
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE(GradMode::is_enabled());
}

// --- Function

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * x * scale;
  }
  static TensorList backward(autograd::AutogradContext* ctx, TensorList grads) {
    Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * ctx->saved_data["scale"].toDouble() * x * x, Tensor()};
  }
};

TEST(Function, HasItsOwnGradientTwice) {
  Tensor x = leaf({2});
  Tensor y = Cube::apply(x, 2.0);
  expect_has(y.grad_fn().name(), "Cube");
  Tensor first = autograd::grad({y}, {x}, {}, {}, true)[0];
  EXPECT_EQ(first.item<float>(), 24);
  EXPECT_EQ(autograd::grad({first}, {x})[0].item<float>(), 24);
}

TEST(Function, Compiled) {
  auto f = compile([](const Tensor& x) { return Cube::apply(exp(x), 2.0).sum(); });
  for (double at : {0.0, 0.5}) {
    Tensor x = leaf({at});
    f(x).backward();
    EXPECT_NEAR(x.grad().item<float>(), 6 * std::exp(3 * at), 1e-4);
  }
}

struct TwoResults : autograd::Function<TwoResults> {
  static TensorList forward(autograd::AutogradContext* ctx, const Tensor& x, const TensorList& more) {
    Tensor result = exp(x);
    ctx->save_for_backward({result});
    Tensor flag = x * 0;
    ctx->mark_non_differentiable({flag});
    return {result, flag, more[0] + more[1]};
  }
  static TensorList backward(autograd::AutogradContext* ctx, TensorList grads) {
    EXPECT_TRUE(grads[2].defined());
    EXPECT_FALSE(ctx->needs_input_grad(2));
    return {grads[0] * ctx->get_saved_variables()[0], grads[2], Tensor()};
  }
};

TEST(Function, ListsAndResultsWithoutGradient) {
  Tensor x = leaf({0}), y = leaf({1});
  auto out = TwoResults::apply(x, TensorList{y, ones({1})});
  EXPECT_FALSE(out[1].requires_grad());
  (out[0] * 5).sum().backward();
  EXPECT_EQ(x.grad().item<float>(), 5);
  EXPECT_EQ(y.grad().item<float>(), 0);
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static TensorList backward(autograd::AutogradContext*, TensorList grads) { return {grads[0] * 2}; }
};

TEST(Function, WritesItsArgument) {
  Tensor x = leaf({3});
  Tensor y = x * 1;
  DoubleInPlace::apply(y);
  EXPECT_EQ(y.item<float>(), 6);
  (y * 5).sum().backward();
  EXPECT_EQ(x.grad().item<float>(), 10);
}

}  // namespace
}  // namespace sinter
