// Gradients of compiled functions equal eager's, whichever side of the call backward() is on.
#include "common.h"

namespace sinter {
namespace {

// The value and the gradients of all leaves, eager and compiled, twice.
template <class F>
void expect_same_gradients(F f, const TensorList& leaves, const TensorList& others = {}, double tolerance = 1e-4) {
  auto fast = compile([f](const TensorList& a, const TensorList& b) { return f(a, b); });
  for (auto& leaf : leaves) leaf.requires_grad_();
  auto gradients = [&](auto&& function) {
    for (auto& leaf : leaves) leaf.set_grad({});
    manual_seed(5);
    Tensor y = function(leaves, others);
    (y * wave(y.sizes(), 1)).sum().backward();
    TensorList out{y.detach()};
    for (auto& leaf : leaves) out.push_back(leaf.grad().defined() ? leaf.grad().clone() : Tensor());
    return out;
  };
  TensorList want = gradients(f);
  for (int call = 0; call < 2; ++call) {
    TensorList got = gradients(fast);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(close(got[i], want[i], tolerance)) << (i ? "gradient " : "value ") << i;
  }
  EXPECT_EQ(programs_of(fast), 1);
}

TEST(CompiledAutograd, Mlp) {
  expect_same_gradients(
      [](const TensorList& p, const TensorList& x) { return matmul(gelu(matmul(x[0], p[0]) + p[1]), p[2]) + p[3]; },
      {wave({4, 16}), wave({16}, 1), wave({16, 3}, 2), wave({3}, 3)}, {wave({8, 4}, 4)});
}

TEST(CompiledAutograd, LayerNorm) {
  expect_same_gradients([](const TensorList& p, const TensorList&) { return layer_norm(p[0], {8}, p[1], p[2]); },
                        {wave({5, 8}), wave({8}, 1), wave({8}, 2)});
}

TEST(CompiledAutograd, Attention) {
  expect_same_gradients(
      [](const TensorList& p, const TensorList& x) {
        auto split = [](const Tensor& t) { return t.view({2, 6, 2, 4}).transpose(1, 2); };
        Tensor q = split(matmul(x[0], p[0])), k = split(matmul(x[0], p[1])), v = split(matmul(x[0], p[2]));
        Tensor y = scaled_dot_product_attention(q, k, v, {}, 0, true);
        return matmul(y.transpose(1, 2).reshape({2, 6, 8}), p[3]) + x[0];
      },
      {wave({8, 8}), wave({8, 8}, 1), wave({8, 8}, 2), wave({8, 8}, 3)}, {wave({2, 6, 8}, 4)});
}

TEST(CompiledAutograd, Dropout) {
  expect_same_gradients([](const TensorList& p, const TensorList&) { return dropout(tanh(p[0]), 0.5) * p[0]; },
                        {wave({64})});
}

TEST(CompiledAutograd, CrossEntropy) {
  expect_same_gradients(
      [](const TensorList& p, const TensorList& x) { return cross_entropy(matmul(x[0], p[0]), x[1]); }, {wave({4, 5})},
      {wave({6, 4}, 1), tensor({0, 1, 2, 3, 4, 0})});
}

TEST(CompiledAutograd, BatchNormTraining) {
  nn::BatchNorm1d eager(4), layer(4);
  auto f = compile(layer);
  for (int i = 0; i < 3; ++i) {
    Tensor x = wave({8, 4}, i), y = x.clone();
    x.requires_grad_();
    y.requires_grad_();
    Tensor weight = wave({8, 4}, 7);
    (f(x) * weight).sum().backward();
    (eager(y) * weight).sum().backward();
    EXPECT_TRUE(close(x.grad(), y.grad(), 1e-4));
    EXPECT_TRUE(close(layer->weight.grad(), eager->weight.grad(), 1e-4));
    EXPECT_TRUE(close(layer->bias.grad(), eager->bias.grad(), 1e-4));
  }
}

TEST(CompiledAutograd, TransformerLayer) {
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
  auto f = compile(layer);
  Tensor x = wave({5, 3, 8});
  f(x).square().sum().backward();
  TensorList got;
  for (auto& p : layer->parameters()) got.push_back(p.grad().clone());
  layer->zero_grad();
  layer(x).square().sum().backward();
  auto parameters = layer->parameters();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(close(got[i], parameters[i].grad(), 1e-3)) << i;
}

TEST(CompiledAutograd, NonLeafArguments) {
  auto f = compile([](const Tensor& x) { return x * x; });
  Tensor x = wave({4}).requires_grad_();
  f(f(x * 3) + 1).sum().backward();
  Tensor got = x.grad().clone();
  x.set_grad({});
  Tensor y = (x * 3) * (x * 3) + 1;
  (y * y).sum().backward();
  EXPECT_TRUE(close(got, x.grad()));
}

TEST(CompiledAutograd, CapturedLeaves) {
  Tensor w = wave({4}).requires_grad_();
  auto f = compile([&](const Tensor& x) { return (x * w).sum(); });
  Tensor x = wave({4}, 1);
  for (int i = 1; i <= 3; ++i) {
    f(x).backward();
    EXPECT_TRUE(close(w.grad(), x * i));  // accumulated
  }
}

TEST(CompiledAutograd, OnlySomeResultsUsed) {
  auto f = compile([](const Tensor& x, const Tensor& w) { return std::tuple(x * w, exp(w), x + 1); });
  Tensor x = wave({4}), w = wave({4}, 1).requires_grad_();
  auto [a, b, c] = f(x, w);
  EXPECT_FALSE(c.requires_grad());
  b.sum().backward();
  EXPECT_TRUE(close(w.grad(), exp(w)));
  w.set_grad({});
  std::get<0>(f(x, w)).sum().backward();
  EXPECT_TRUE(close(w.grad(), x));
}

TEST(CompiledAutograd, NoGradAndDetachInside) {
  expect_same_gradients(
      [](const TensorList& p, const TensorList&) {
        Tensor frozen;
        {
          NoGradGuard no_grad;
          frozen = p[0] * 2;
        }
        return p[0] * frozen + p[0].detach() * p[1] + (p[1] * 2).detach();
      },
      {wave({4}), wave({4}, 1)});
  auto f = compile([](const Tensor& x) {
    NoGradGuard no_grad;
    return x * 2;
  });
  EXPECT_FALSE(f(wave({2}).requires_grad_()).requires_grad());
  auto g = compile([](const Tensor& x) { return std::tuple(x * 2, (x * 2).detach()); });
  auto [a, b] = g(wave({2}).requires_grad_());
  EXPECT_TRUE(a.requires_grad());
  EXPECT_FALSE(b.requires_grad());
}

TEST(CompiledAutograd, InPlaceWritesInside) {
  expect_same_gradients(
      [](const TensorList& p, const TensorList&) {
        Tensor y = p[0] * 2;
        y.add_(p[1]).mul_(3);
        y.slice(0, 0, 2).add_(p[1].slice(0, 0, 2));
        y[3] = p[1][0];
        return y * y;
      },
      {wave({4}), wave({4}, 1)});
}

TEST(CompiledAutograd, DoubleBackwardInsideOneGraph) {
  auto f = compile(
      [](const Tensor& x) {
        Tensor g = autograd::grad({(x * x * x).sum()}, {x}, {}, {}, true)[0];
        return autograd::grad({g.sum()}, {x})[0];
      },
      {.fullgraph = true});
  Tensor x = wave({3}).requires_grad_();
  EXPECT_TRUE(close(f(x), x * 6));
}

TEST(CompiledAutograd, GradInsideOneGraph) {
  auto f = compile([](const Tensor& x, const Tensor& w) { return autograd::grad({tanh(matmul(x, w)).sum()}, {w})[0]; });
  Tensor x = wave({3, 4}), w = wave({4, 2}, 1).requires_grad_();
  auto told = compiler::explain(f, x, w);
  EXPECT_EQ(told.break_count(), 0);
  EXPECT_EQ(told.graph_count(), 1);
  EXPECT_TRUE(close(f(x, w), autograd::grad({tanh(matmul(x, w)).sum()}, {w})[0]));
  EXPECT_FALSE(w.grad().defined());
}

TEST(CompiledAutograd, BackwardInsideLeavesGradients) {
  auto f = compile([](const Tensor& x, const Tensor& w) {
    Tensor loss = (x * w).square().sum();
    loss.backward();
    return loss.detach();
  });
  Tensor x = wave({4}), w = wave({4}, 1).requires_grad_(), u = wave({4}, 1).requires_grad_();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(f(x, w), (x * u).square().sum().detach()));
    (x * u).square().sum().backward();
    EXPECT_TRUE(close(w.grad(), u.grad())) << i;
  }
  EXPECT_EQ(compiler::explain(f, x, w).break_count(), 0);
}

// What is held of a gradient outside sees the compiled step as it would see the eager one.
TEST(CompiledAutograd, BackwardInsideAddsInPlace) {
  Tensor w = wave({4}, 1).requires_grad_();
  auto by_argument = compile([](const Tensor& x, const Tensor& w) { (x * w).sum().backward(); });
  auto by_capture = compile([w](const Tensor& x) { (x * w).sum().backward(); });
  Tensor x = wave({4});
  auto check = [&](auto&& step) {
    w.set_grad({});
    step();
    Tensor held = w.grad();
    for (int i = 2; i < 5; ++i) {
      step();
      EXPECT_TRUE(held.is_same(w.grad()));
      EXPECT_TRUE(close(held, x * i)) << i;
    }
  };
  check([&] { by_argument(x, w); });
  check([&] { by_capture(x); });
  EXPECT_EQ(programs_of(by_argument), 2);  // the first step finds no gradient
  EXPECT_EQ(programs_of(by_capture), 2);
}

TEST(CompiledAutograd, ZeroGradInsideZeroesInPlace) {
  nn::Linear layer(3, 2);
  auto f = compile([&](const Tensor& x, bool forget) {
    layer->zero_grad(forget);
    layer(x).sum().backward();
  });
  Tensor x = wave({4, 3});
  f(x, false);
  Tensor held = layer->weight.grad(), want = held.clone();
  for (int i = 0; i < 2; ++i) {
    f(x, false);
    EXPECT_TRUE(held.is_same(layer->weight.grad()));
    EXPECT_TRUE(close(held, want));
  }
  f(x, true);
  EXPECT_FALSE(held.is_same(layer->weight.grad()));
  EXPECT_TRUE(close(layer->weight.grad(), want));
}

// Two backward() in one program, and what the program itself holds of a gradient in between.
TEST(CompiledAutograd, GradientsInsideAreMemoryOfTheirOwn) {
  auto body = [](const Tensor& x, const Tensor& y, const Tensor& g) {
    (x + y).backward(g);
    Tensor held = x.grad();
    held.mul_(10);
    (x * 3).sum().backward();
    return std::tuple(held.clone(), y.grad().clone(), g * 1);
  };
  auto f = compile(body, {.fullgraph = true});
  Tensor x = wave({3}).requires_grad_(), y = wave({3}, 1).requires_grad_();
  for (int i = 0; i < 3; ++i) {
    Tensor g = wave({3}, 2), before = g.clone();
    x.set_grad({});
    y.set_grad({});
    auto [a, b, c] = f(x, y, g);
    EXPECT_TRUE(close(a, before * 10 + 3));
    EXPECT_TRUE(close(x.grad(), before * 10 + 3));
    EXPECT_TRUE(close(b, before));
    EXPECT_TRUE(close(c, before));
    EXPECT_TRUE(same(g, before));
    EXPECT_FALSE(y.grad().is_alias_of(g));
  }
}

// A gradient may also be an argument, or a tensor that the function reaches by itself, and stop being it.
TEST(CompiledAutograd, GradientsThatAreOtherTensorsToo) {
  Tensor x = wave({3}), w = wave({3}, 1).requires_grad_();
  auto by_argument = [&](const Tensor& other) {
    (x * w).sum().backward();
    return other * 1;
  };
  auto f = compile(by_argument);
  auto set = [&](const Tensor& grad) { w.set_grad(grad); };
  for (int i = 0; i < 2; ++i) {
    Tensor grad = wave({3}, i);
    set(grad.clone());
    EXPECT_TRUE(close(f(w.grad()), grad + x)) << i;
    set(grad.clone());
    EXPECT_TRUE(close(f(grad), grad)) << i;
    EXPECT_TRUE(close(w.grad(), grad + x)) << i;
    set(grad.clone());
    EXPECT_TRUE(close(f(w.grad().view({3, 1})), (grad + x).view({3, 1}))) << i;
  }
  Tensor kept = wave({3}, 5);
  for (bool read_first : {false, true}) {
    auto g = compile([&, read_first] {
      Tensor before = read_first ? kept + 0 : x + 0;
      (x * w).sum().backward();
      return kept - before;
    });
    for (int i = 0; i < 2; ++i) {
      Tensor was = kept.clone();
      set(kept);
      EXPECT_TRUE(close(g(), read_first ? x : was)) << read_first << i;
      EXPECT_TRUE(close(kept, was + x));
      set(wave({3}, 7));
      EXPECT_TRUE(close(g(), read_first ? x * 0 : kept - x)) << read_first << i;
      EXPECT_TRUE(close(kept, was + x));
    }
  }
}

TEST(CompiledAutograd, SetGradInsideSharesMemory) {
  auto f = compile([](const Tensor& x, const Tensor& w) { w.set_grad(x.slice(0, 0, 3)); });
  Tensor x = wave({5}), w = wave({3}, 1).requires_grad_();
  for (int i = 0; i < 2; ++i) {
    w.set_grad({});
    f(x, w);
    Tensor want = x.clone();
    want.slice(0, 0, 3).add_(2);
    (w * 2).sum().backward();
    EXPECT_TRUE(close(x, want));
  }
}

TEST(CompiledAutograd, LeavesMadeInside) {
  auto body = [](const Tensor& x) {
    Tensor w = x.detach().clone().requires_grad_();
    (w * w * x).sum().backward();
    return w.grad() + w.detach();
  };
  auto f = compile(body, {.fullgraph = true});
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(close(f(ones({3}) * i), body(ones({3}) * i)));
}

// A whole step of training, gradients and update inside the compiled function.
TEST(CompiledAutograd, TrainStepEqualsEager) {
  auto make = [] {
    manual_seed(1);
    return nn::Sequential(nn::Linear(4, 16), nn::ReLU(), nn::BatchNorm1d(16), nn::Linear(16, 2));
  };
  auto step = [](nn::Sequential& net, const Tensor& x, const Tensor& y) {
    net->zero_grad();
    Tensor loss = cross_entropy(net->forward(x), y);
    loss.backward();
    NoGradGuard no_grad;
    for (auto& p : net->parameters()) p.sub_(p.grad(), 0.1);
    return loss.detach();
  };
  auto eager = make(), fast = make();
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return step(fast, x, y); });
  Tensor y = tensor({0, 1, 0, 1, 1, 0, 1, 0});
  for (int i = 0; i < 5; ++i) {
    Tensor x = wave({8, 4}, i);
    EXPECT_TRUE(close(compiled(x, y), step(eager, x, y), 1e-4)) << "step " << i;
    auto a = fast->parameters(), b = eager->parameters();
    for (size_t p = 0; p < a.size(); ++p) EXPECT_TRUE(close(a[p], b[p], 1e-4)) << "step " << i << ", parameter " << p;
  }
  auto told = compiler::explain(compiled, wave({8, 4}), y);
  EXPECT_EQ(told.break_count(), 0);
  EXPECT_EQ(told.programs.size(), 1u);
}

TEST(CompiledAutograd, OptimizerOutside) {
  auto make = [] {
    manual_seed(1);
    return nn::Sequential(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
  };
  auto eager = make(), fast = make();
  auto compiled = compile(fast);
  optim::AdamW a(eager->parameters()), b(fast->parameters());
  for (int i = 0; i < 5; ++i) {
    Tensor x = wave({8, 4}, i);
    a.zero_grad();
    b.zero_grad();
    eager(x).square().mean().backward();
    compiled(x).square().mean().backward();
    a.step();
    b.step();
  }
  auto p = fast->parameters(), q = eager->parameters();
  for (size_t i = 0; i < p.size(); ++i) EXPECT_TRUE(close(p[i], q[i], 1e-4)) << i;
  EXPECT_EQ(programs_of(compiled), 1);
}

// Between forward and backward only what cannot be computed again cheaply is kept.
TEST(CompiledAutograd, FewBytesAreSaved) {
  auto f = compile([](const Tensor& x) { return sigmoid(tanh(exp(sin(x * 2) + 1) * 0.1)).sum(); });
  Tensor x = wave({1024}).requires_grad_();
  f(x);
  auto segment = f.function().entries().at(0)->root;
  ASSERT_TRUE(segment->backward);
  EXPECT_LE(segment->saved_outputs, 1u) << segment->backward->text;
}

TEST(CompiledAutograd, OverwrittenSavedValueIsAnError) {
  auto f = compile([](const Tensor& x, const Tensor& w) { return (x * w).sum(); });
  Tensor x = wave({4}), w = wave({4}, 1).requires_grad_();
  Tensor y = f(x, w);
  x.add_(1);
  EXPECT_TRUE(has(error_of([&] { y.backward(); }), "in-place"));
  w.set_grad({});
  f(x, w).backward();
  EXPECT_TRUE(close(w.grad(), x));
}

TEST(CompiledAutograd, BackwardTwiceIsAnError) {
  auto f = compile([](const Tensor& x) { return (x * x).sum(); });
  Tensor x = wave({4}).requires_grad_();
  Tensor y = f(x);
  y.backward({}, true);
  y.backward();
  EXPECT_TRUE(close(x.grad(), x * 4));
  error_of([&] { y.backward(); });
}

// They are one op while gradients are taken; what it is made of would give these strides.
TEST(NormLayouts, NormsLieAsTheirOperands) {
  Tensor turned = randn({6, 4}).t(), image = randn({2, 3, 4, 5}).contiguous(MemoryFormat::kChannelsLast);
  auto rows = [](const Tensor& x) { return TensorList{rms_norm(x, {6}), layer_norm(x, {6})}; };
  auto channels = [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true); };
  TensorList want = rows(turned), got = compile(rows)(turned);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i].strides(), want[i].strides()) << i;
  EXPECT_EQ(compile(channels)(image).strides(), channels(image).strides());
}

}  // namespace
}  // namespace sinter
