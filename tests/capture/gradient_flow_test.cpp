// Gradients that leave the piece of a program in which they are asked for: across breaks, out of the function, and twice.
#include "common.h"

namespace sinter {
namespace {

// --- gradients of gradients ------------------------------------------------------------------------------------------

// The gradient of the norm of a gradient.
template <class F>
std::pair<Tensor, Tensor> twice(F&& f, const Tensor& x) {
  Tensor y = f(x);
  Tensor first = autograd::grad({(y * y).sum()}, {x}, {}, {}, true)[0];
  Tensor second = autograd::grad({(first * first).sum()}, {x})[0];
  return {first.detach(), second};
}

template <class F>
void expect_twice(F&& body, CompileOptions options = {}) {
  auto f = compile(body, options);
  for (int64_t n : {3, 5, 6}) {
    Tensor x = wave({n, 4}, double(n)).requires_grad_();
    auto [first, second] = twice(f, x);
    auto [want_first, want_second] = twice(body, x);
    EXPECT_TRUE(close(first, want_first));
    EXPECT_TRUE(close(second, want_second, 1e-4));
  }
}

TEST(GradientFlow, ACompiledFunctionIsDifferentiatedTwice) {
  expect_twice([](const Tensor& x) { return exp(x) * sin(x); });
  expect_twice([](const Tensor& x) { return softmax(x.matmul(x.t()), -1) + 1; });
  expect_twice([](const Tensor& x) { return x.view({-1}) * 2; });
}

TEST(GradientFlow, TwiceWithSymbolicSizes) {
  expect_twice([](const Tensor& x) { return tanh(x.slice(0, 1)) * double(2) + x.sum(0); }, {.dynamic = Dynamic::kTrue});
}

TEST(GradientFlow, TwiceThroughABreak) {
  expect_twice([](const Tensor& x) {
    Tensor y = x * x;
    if (y.sum().item() > 0.0) return exp(y) + y;
    return y;
  });
}

TEST(GradientFlow, TwiceWithRandomNumbers) {
  auto body = [](const Tensor& x) { return dropout(exp(x), 0.5, true); };
  auto f = compile(body);
  Tensor x = wave({4, 8}).requires_grad_();
  manual_seed(3);
  auto [first, second] = twice(f, x);
  manual_seed(3);
  auto [want_first, want_second] = twice(body, x);
  EXPECT_TRUE(close(first, want_first));
  EXPECT_TRUE(close(second, want_second, 1e-4));
}

TEST(GradientFlow, AGradientPenalty) {
  auto train = [](bool compiled) {
    manual_seed(1);
    nn::Sequential net(nn::Linear(3, 8), nn::Tanh(), nn::Linear(8, 1));
    auto f = compile(net);
    std::vector<double> norms;
    for (int i = 0; i < 3; ++i) {
      Tensor x = wave({5, 3}, i).requires_grad_();
      Tensor y = compiled ? f(x) : net->forward(x);
      Tensor slope = autograd::grad({y.sum()}, {x}, {}, {}, true)[0];
      net->zero_grad();
      (y.square().mean() + (slope.square().sum(1) - 1).square().mean()).backward();
      NoGradGuard no_history;
      for (auto& p : net->parameters()) {
        p.sub_(p.grad() * 0.1);
        norms.push_back(p.square().sum().item<double>());
      }
    }
    return norms;
  };
  auto got = train(true), want = train(false);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4 * (1 + want[i])) << i;
}

TEST(GradientFlow, TwiceAfterAWriteIsAnErrorThatSaysSo) {
  auto f = compile([](const Tensor& x) { return exp(x); });
  Tensor w = wave({3}).requires_grad_(), x = w * 1;
  Tensor y = f(x);
  x.detach().add_(1);
  EXPECT_TRUE(has(error_of([&] { autograd::grad({y.sum()}, {w}, {}, {}, true); }), "changed by an in-place write"));
}

// --- across breaks and out of the function ---------------------------------------------------------------------------

template <class F>
void expect_flow(F&& body) {
  auto f = compile(body);
  for (int i = 0; i < 4; ++i) {
    Tensor a = wave({4}, i).requires_grad_(), b = wave({4}, i).requires_grad_();
    if (i == 3) {
      a.set_grad(ones({4}));
      b.set_grad(ones({4}));
    }
    Tensor got = f(a), want = body(b);
    EXPECT_TRUE(close(got, want)) << i;
    EXPECT_TRUE(close(a.grad(), b.grad())) << i;
  }
}

TEST(GradientFlow, GradAcrossABreak) {
  expect_flow([](const Tensor& x) {
    Tensor y = x * x;
    if (y.sum().item() > 1e9) return y;
    return autograd::grad({exp(y).sum()}, {x})[0] * 2;
  });
}

TEST(GradientFlow, GradOfAValueBeforeTheBreak) {
  expect_flow([](const Tensor& x) {
    Tensor y = x * x, z = x * 3;
    if (y.sum().item() > 1e9) return y;
    return autograd::grad({(exp(z) * y).sum()}, {y}, {}, true)[0] + z.detach();
  });
  // The way from y to z lies inside the first segment.
  auto f = compile([](const Tensor& x) {
    Tensor y = x * x, z = y * 3;
    if (y.sum().item() > 1e9) return y;
    return autograd::grad({(exp(z) * y).sum()}, {y})[0];
  });
  EXPECT_TRUE(has(error_of([&] { f(wave({4}).requires_grad_()); }), "from before a break"));
}

TEST(GradientFlow, AnUnusedInputAcrossABreak) {
  expect_flow([](const Tensor& x) {
    Tensor y = x * x;
    if (y.sum().item() > 1e9) return y;
    Tensor grad = autograd::grad({exp(y).sum()}, {x}, {}, {}, false, true)[0];
    return grad.defined() ? grad : zeros({4});
  });
}

TEST(GradientFlow, BackwardAcrossABreak) {
  expect_flow([](const Tensor& x) {
    Tensor y = x * x;
    if (y.sum().item() > 1e9) return y.detach();
    exp(y).sum().backward();
    return x.grad() * 2;
  });
}

TEST(GradientFlow, BackwardBeforeAndAcrossABreak) {
  expect_flow([](const Tensor& x) {
    (x * 3).sum().backward();
    Tensor y = x * x;
    if (y.sum().item() > 1e9) return y.detach();
    exp(y).sum().backward();
    (x * 2).sum().backward();
    return x.grad() + 1;
  });
}

TEST(GradientFlow, BackwardOutOfTheFunction) {
  Tensor w = wave({4}).requires_grad_(), v = wave({4}).requires_grad_();
  auto body = [](const Tensor& x) {
    Tensor y = x * x;
    y.sum().backward();
    return y.detach() + 1;
  };
  auto f = compile(body);
  for (int i = 0; i < 3; ++i) {
    Tensor got = f(w * 2), want = body(v * 2);
    EXPECT_TRUE(close(got, want));
    EXPECT_TRUE(close(w.grad(), v.grad()));
  }
}

TEST(GradientFlow, BackwardInsideAndAnotherOutside) {
  expect_flow([](const Tensor& x) {
    Tensor inner = (x * x).sum(), outer = exp(x).sum();
    inner.backward();
    return outer.detach();
  });
  auto body = [](const Tensor& x) {
    Tensor inner = (x * x).sum(), outer = exp(x);
    inner.backward();
    return outer;
  };
  auto f = compile(body);
  for (int i = 0; i < 3; ++i) {
    Tensor a = wave({4}, i).requires_grad_(), b = wave({4}, i).requires_grad_();
    f(a).sum().backward();
    body(b).sum().backward();
    EXPECT_TRUE(close(a.grad(), b.grad())) << i;
  }
}

TEST(GradientFlow, BackwardInsideAndAnotherOutsideAcrossABreak) {
  auto body = [](const Tensor& x) {
    Tensor inner = x * x, outer = exp(x);
    if (inner.sum().item() > 1e9) return inner;
    inner.sum().backward();
    return outer * 2;
  };
  auto f = compile(body);
  for (int i = 0; i < 3; ++i) {
    Tensor a = wave({4}, i).requires_grad_(), b = wave({4}, i).requires_grad_();
    f(a).sum().backward();
    body(b).sum().backward();
    EXPECT_TRUE(close(a.grad(), b.grad())) << i;
  }
}

// --- results that no gradient flows into -------------------------------------------------------------------------------

// Their gradients of zeros would be nan.
TEST(GradientFlow, AResultThatIsNotUsedTakesNoPart) {
  auto body = [](const Tensor& x) { return std::pair{x * 3, asin(x)}; };
  auto f = compile(body);
  for (auto record : {false, true}) {
    Tensor x = full({3}, 2.0).requires_grad_();
    auto [used, unused] = f(x);
    if (record)
      EXPECT_TRUE(close(autograd::grad({used.sum()}, {x}, {}, {}, true)[0], full({3}, 3.0)));
    else
      used.sum().backward();
    if (!record) {
      EXPECT_TRUE(close(x.grad(), full({3}, 3.0)));
    }
  }
}

TEST(GradientFlow, ResultsAreUsedInAnyOrder) {
  auto body = [](const Tensor& x, const Tensor& y) { return TensorList{x * x, exp(x) * y, y * 2}; };
  auto f = compile(body);
  for (int used = 1; used < 8; ++used) {
    auto run = [&](auto&& function) {
      Tensor x = wave({4}).requires_grad_(), y = wave({4}, 1).requires_grad_();
      TensorList results = function(x, y);
      for (int i = 0; i < 3; ++i)
        if (used >> i & 1) results[size_t(i)].sum().backward();
      return std::pair{x.grad(), y.grad()};
    };
    auto [x, y] = run(f);
    auto [want_x, want_y] = run(body);
    ASSERT_EQ(x.defined(), want_x.defined()) << used;
    ASSERT_EQ(y.defined(), want_y.defined()) << used;
    if (x.defined()) {
      EXPECT_TRUE(close(x, want_x)) << used;
    }
    if (y.defined()) {
      EXPECT_TRUE(close(y, want_y)) << used;
    }
  }
}

TEST(GradientFlow, AResultWithoutAGradientLeavesTheOthersTheirs) {
  auto body = [](const Tensor& x) {
    Tensor loss = square(x).mean();
    loss.backward();
    return std::pair{loss, exp(x)};
  };
  Tensor a = wave({4}).requires_grad_(), b = wave({4}).requires_grad_();
  auto [loss, result] = compile(body)(a);
  result.sum().backward();
  body(b).second.sum().backward();
  EXPECT_TRUE(close(a.grad(), b.grad()));
  EXPECT_THROW(loss.backward(), Error);
}

// --- leaves that the program makes ------------------------------------------------------------------------------------

// What the function gives, and the gradient that it leaves in a leaf outside, which the argument is or comes from.
template <class F>
void expect_leaf(F&& body, CompileOptions options = {}) {
  auto f = compile(body, options);
  for (bool is_leaf : {true, false})
    for (int64_t n : {3, 5, 5}) {
      auto run = [&](auto&& function) {
        Tensor outside = wave({n}, double(n)).requires_grad_();
        Tensor result = function(is_leaf ? outside : outside * 1.5);
        return std::pair{result, outside.grad()};
      };
      auto [want, want_grad] = run(body);
      auto [got, got_grad] = run(f);
      ASSERT_TRUE(got.defined());
      EXPECT_TRUE(close(got, want)) << is_leaf << n;
      ASSERT_EQ(got_grad.defined(), want_grad.defined());
      if (want_grad.defined()) {
        EXPECT_TRUE(close(got_grad, want_grad)) << is_leaf << n;
      }
    }
}

Tensor leaf_of(const Tensor& x) { return x.detach().clone().requires_grad_(); }

TEST(GradientFlow, ALeafMadeInsideBesideHistoryOutside) {
  expect_leaf([](const Tensor& x) {
    Tensor w = leaf_of(x);
    (w * x).sum().backward();
    return w.grad();
  });
  expect_leaf([](const Tensor& x) {
    Tensor w = leaf_of(x);
    square(w).sum().backward();
    (w * x).sum().backward();
    return w.grad();
  });
  expect_leaf([](const Tensor& x) {
    Tensor w = leaf_of(x);
    return autograd::grad({(w * x).sum()}, {w})[0];
  });
}

TEST(GradientFlow, ALeafMadeInsideBeforeABreak) {
  expect_leaf([](const Tensor& x) {
    Tensor w = leaf_of(x);
    if (x.sum().item() > 1e9) w = w * 2;
    (w * w).sum().backward();
    return w.grad();
  });
  expect_leaf([](const Tensor& x) {
    Tensor w = leaf_of(x), u = w * x;
    if (x.sum().item() > 1e9) w = w * 2;
    (u * w).sum().backward();
    return w.grad();
  });
}

TEST(GradientFlow, LeavesMadeInsideAroundBreaks) {
  // An attack: each step's gradient is taken with the loss looked at in between.
  expect_leaf([](const Tensor& x) {
    Tensor delta = zeros_like(x);
    for (int step = 0; step < 3; ++step) {
      Tensor w = delta.detach().clone().requires_grad_();
      Tensor loss = square(sin(x.detach() + w)).sum();
      if (loss.item() > 1e9) return delta;
      loss.backward();
      delta = delta + sign(w.grad()) * 0.1;
    }
    return delta;
  });
}

TEST(GradientFlow, ALeafThatSomeCallsMakeBeforeABreak) {
  bool makes = false;
  std::vector<Tensor> seen;  // makes the function be called every time
  auto body = [&](const Tensor& x) {
    Tensor w = makes ? leaf_of(x) : x.detach() * 2;
    seen.push_back(w.detach().clone());
    if ((w * x.detach()).sum().item() > 1e9) return x.detach();
    if (!makes) return w;
    (w * w).sum().backward();
    return w.grad();
  };
  auto f = compile(body);
  for (bool with_leaf : {false, false, true, false, true}) {
    makes = with_leaf;
    Tensor x = wave({4});
    EXPECT_TRUE(close(f(x), body(x))) << with_leaf;
  }
}

TEST(GradientFlow, ALeafMadeInsideStaysInOneGraph) {
  auto body = [](const Tensor& x) {
    Tensor w = leaf_of(x);
    (w * w * x).sum().backward();
    return w.grad();
  };
  auto f = compile(body, {.fullgraph = true});
  Tensor x = wave({4});
  EXPECT_TRUE(close(f(x), body(x)));
}

TEST(GradientFlow, BackwardOfALossThatWasLookedAt) {
  expect_leaf([](const Tensor& x) {
    Tensor loss = (x * x).sum();
    if (loss.item() > 1e9) return x;
    loss.backward();
    return loss.detach();
  });
}

// --- ties under rounding ---------------------------------------------------------------------------------------------

TEST(GradientFlow, ExtremesOfRoundedValues) {
  for (auto backend : {"sinter", "interpreter", "eager"})
    for (DType dtype : {kFloat32, kBFloat16}) {
      auto body = [dtype](const Tensor& x) { return amax(x.to(dtype) * 0.3 + 0.1, {1}) + amin(tanh(x.to(dtype)), {1}); };
      auto f = compile(body, {.backend = backend});
      Tensor a = wave({6, 40}).requires_grad_(), b = wave({6, 40}).requires_grad_();
      f(a).to(kFloat32).sum().backward();
      body(b).to(kFloat32).sum().backward();
      // Which elements are equal depends on where bf16 is rounded; what they share does not.
      EXPECT_TRUE(close(a.grad().sum(1), b.grad().sum(1), 1e-2)) << backend << dtype;
      if (dtype == kFloat32) {
        EXPECT_TRUE(close(a.grad(), b.grad())) << backend;
      }
    }
}

// Rounded in one kernel and not in another, no element equals the extreme any more.
TEST(GradientFlow, ExtremesOfWhatIsComputedAgain) {
  auto body = [](const Tensor& x) {
    Tensor y = x.tanh_().to(kFloat64);
    return scatter_reduce(x.to(kFloat64), 0, arange(y.size(0)).floor_divide(2), y, "amin");
  };
  auto f = compile(body);
  Tensor a = wave({16}).to(kBFloat16).requires_grad_(), b = a.detach().requires_grad_();
  f(a * 1.5).sum().backward();
  body(b * 1.5).sum().backward();
  EXPECT_TRUE(close(a.grad().to(kFloat32), b.grad().to(kFloat32), 1e-2));
}

// A parameter that the program writes to has no history that leads back to it.
TEST(GradientFlow, AParameterIsFreedAfterATrainingStep) {
  static float memory[4] = {1, 2, 3, 4};
  bool freed = false;
  {
    Tensor w = from_blob(memory, {4}, {}, [&] { freed = true; }).requires_grad_();
    auto f = compile([w](const Tensor& x) {
      w.set_grad({});
      (x * w).sum().backward();
      NoGradGuard none;
      w.sub_(w.grad(), 0.1);
      return x * 2;
    });
    for (int i = 0; i < 3; ++i) f(wave({4}));
  }
  EXPECT_TRUE(freed);
}

}  // namespace
}  // namespace sinter
