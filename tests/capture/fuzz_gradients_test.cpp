// The same as fuzz_regressions_test.cpp for programs whose gradients or histories differed.
#include "fuzz_regressions.h"

namespace sinter {
namespace {

TEST(FuzzRegressions, ALeafMadeAndDroppedInside) {
  auto f = compile([](const Tensor& x) {
    auto slope = [&] {
      Tensor w = x.clone().requires_grad_();
      (w * w).sum().backward();
      return w.grad();
    };
    Tensor y = slope();
    return y + slope();
  });
  expect_same(f(ramp({4})), ramp({4}) * 4);
}

TEST(FuzzRegressions, ACapturedTensorWrittenBeforeTheCaptureIsNotStale) {
  Tensor scale = ramp({4});
  scale.add_(1);
  auto f = compile([scale](const Tensor& x) {
    Tensor w = x.clone().requires_grad_();
    return autograd::grad({(w * scale).sum()}, {w})[0];
  });
  expect_same(f(ramp({4})), scale);
}

TEST(FuzzRegressions, ANumberHasNoHistoryAndStaysWhatItWas) {
  auto f = compile([](const Tensor& x, const Tensor& y) {
    Scalar before = y.sum().item();
    y.add_(1);
    return x * before;
  });
  Tensor x = ramp({3}).requires_grad_(), leaf = ones({2}).requires_grad_();
  Tensor out = f(x, leaf * 1.0);
  expect_same(out, x * 2);
  out.sum().backward();
  EXPECT_FALSE(leaf.grad().defined() && leaf.grad().any().item<bool>());
}

TEST(FuzzRegressions, ALeafIsNotWrittenInPlace) {
  auto f = compile([](const Tensor& x) { return x.slice(0, 1).fill_(2.0) * 1; });
  EXPECT_THROW(f(ramp({3}).requires_grad_()), Error);
}

TEST(FuzzRegressions, AWriteThroughADetachedLookLeavesTheHistory) {
  auto f = compile([](const Tensor& x) {
    x.detach().mul_(0.5);
    return x;
  });
  Tensor leaf = ramp({3}).requires_grad_();
  f(leaf * 1.5).sum().backward();
  expect_same(leaf.grad(), full({3}, 1.5));
}

TEST(FuzzRegressions, ACapturedTensorAndItsDetachedSelf) {
  Tensor w = ramp({3}).requires_grad_();
  auto f = compile([w](const Tensor& x) { return TensorList{w.detach(), w, x}; });
  TensorList out = f(ramp({2}));
  EXPECT_FALSE(out[0].requires_grad());
  EXPECT_TRUE(out[1].requires_grad());
}

TEST(FuzzRegressions, ATensorWrittenOverForgetsItsHistory) {
  auto f = compile([](const Tensor& x) { return x.fill_(2.0); });
  Tensor leaf = ramp({3}).requires_grad_(), x = leaf * 1.5;
  f(x);
  EXPECT_FALSE(x.requires_grad());
}

TEST(FuzzRegressions, IndexAddOfOneElementHasAGradient) {
  Tensor source = ones({}).requires_grad_();
  index_add(zeros({3}), 0, tensor({0, 2}), source).sum().backward();
  expect_same(source.grad(), full({}, 2.0));
}

// What a captured tensor holds, and how it came about, is the program's once the program has written to it.
TEST(FuzzRegressions, ACapturedTensorThatWasWrittenHasTheProgramsHistory) {
  Tensor w = tensor({1.f, 2.f}).requires_grad_(), x = tensor({3.f, 4.f});
  auto with = [&](Tensor v) {
    return [v, &w](const Tensor& x) {
      Tensor y = v.copy_(w);
      return w * 0.5 + y * x;
    };
  };
  auto compiled = compile(with(zeros({2})));
  Tensor got = autograd::grad({compiled(x).sum()}, {w})[0];
  Tensor expected = autograd::grad({with(zeros({2}))(x).sum()}, {w})[0];
  EXPECT_TRUE(got.allclose(expected));
}

TEST(FuzzRegressions, ACapturedViewOfACapturedLeafCountsOnce) {
  Tensor w = tensor({1.f, 2.f}).requires_grad_(), last = w.select(0, -1), x = tensor({3.f});
  auto f = [&](const Tensor& x) { return last * (w.sum().item() * 0.25 + 1.0) * x; };
  auto compiled = compile(f);
  Tensor got = autograd::grad({compiled(x).sum()}, {w}, {}, true)[0];
  Tensor expected = autograd::grad({f(x).sum()}, {w}, {}, true)[0];
  EXPECT_TRUE(got.allclose(expected));
}

TEST(FuzzRegressions, ACapturedResultThatIsWrittenKeepsItsWayBack) {
  Tensor w = tensor({1.f, 2.f}).requires_grad_(), x = tensor({3.f, 5.f});
  auto with = [](Tensor v) {
    return [v](const Tensor& x) {
      v.sub_(v, 0.5);
      return v * x;
    };
  };
  auto compiled = compile(with(w * 3));
  Tensor got = autograd::grad({compiled(x).sum()}, {w})[0];
  Tensor expected = autograd::grad({with(w * 3)(x).sum()}, {w})[0];
  EXPECT_TRUE(got.allclose(expected));
}

TEST(FuzzRegressions, ADetachedCapturedTensorIsTheSameInEveryTrace) {
  Tensor w = ramp({4}).requires_grad_();
  auto f = [=](const Tensor& x) {
    Tensor d = w.detach() * 2;
    return x.sum().item() > 0 ? d + x : d - x;
  };
  auto compiled = compile(f);
  for (double sign : {1.0, -1.0, 1.0}) expect_same(compiled(full({4}, sign)), f(full({4}, sign)));
}

TEST(FuzzRegressions, ATensorFirstMetWithoutGradientsStillHasOne) {
  Tensor w = ramp({3}).requires_grad_();
  auto f = [=](const Tensor& x) {
    Tensor scale;
    {
      NoGradGuard none;
      scale = (w * w).sum();
    }
    return x * w / scale;
  };
  auto compiled = compile(f);
  expect_same(autograd::grad({compiled(ramp({3})).sum()}, {w})[0], autograd::grad({f(ramp({3})).sum()}, {w})[0]);
}

// The gradient of amin compares a value computed again with the one that was stored: both must have the same bits.
TEST(FuzzRegressions, AValueComputedAgainHasTheSameBits) {
  manual_seed(0);
  auto f = [](const Tensor& x) {
    Tensor mean = x.mean({0}, true);
    return (mean * (mean.square().mean({-1}, true) + 1e-5).rsqrt() + mean.sum()).amin({0}, true);
  };
  Tensor x = (rand({2, 4, 6}) * 4 - 2).requires_grad_();
  auto compiled = compile(f);
  Tensor got = autograd::grad({compiled(x).sum()}, {x})[0], expected = autograd::grad({f(x).sum()}, {x})[0];
  EXPECT_TRUE(got.allclose(expected, 1e-4, 1e-5)) << got << expected;
}

// A sum over all, padded to the size of what was summed: a kernel must not take the pad's place for the sum's.
TEST(FuzzRegressions, ARowValueIsReadInItsOwnPlaceOnly) {
  auto f = [](const Tensor& w, const Tensor& x) { return (w * -1.5).select(0, 1) - x; };
  auto compiled = compile(f);
  Tensor w = ramp({6}).requires_grad_(), x = ramp({6}).mul(0.5).requires_grad_();
  Tensor want = f(w, x), got = compiled(w, x);
  expect_same(got, want);
  Tensor weights = cos(ramp({6}));
  auto want_grads = autograd::grad({(want * weights).sum()}, {w, x}), got_grads = autograd::grad({(got * weights).sum()}, {w, x});
  for (size_t i = 0; i < 2; ++i) expect_same(got_grads[i], want_grads[i]);
}

// Zeros would let an optimiser decay a parameter that the loss does not depend on.
TEST(FuzzRegressions, WhatNothingFlowsIntoHasNoGradient) {
  Tensor w = ramp({3}).requires_grad_(), unused = ramp({3}).requires_grad_();
  auto f = compile([=](const Tensor& x) {
    NoGradGuard none;
    unused.mul_(0.5);
    AutoGradMode on(true);
    return TensorList{x * w, unused * 2};
  });
  f(ramp({3}))[0].sum().backward();
  EXPECT_TRUE(w.grad().defined());
  EXPECT_FALSE(unused.grad().defined());
}

TEST(FuzzRegressions, AGradientOfZerosIsOne) {
  auto f = [](const Tensor& x) {
    x.detach().add_(1);
    return floor(x) * 2;
  };
  Tensor x = ramp({3}).requires_grad_(), y = ramp({3}).requires_grad_();
  f(x).sum().backward();
  compile(f)(y).sum().backward();
  ASSERT_TRUE(y.grad().defined());
  expect_same(y.grad(), x.grad());
}

// Neither the sum nor the gradient may read an element of what has none.
TEST(FuzzRegressions, SumsOfNothing) {
  auto f = [](const Tensor& x) {
    Tensor none = x.repeat({0});
    return TensorList{none.view({4, 0}).abs().sum({1}), scatter_add(x, 0, none.to(kInt64), none), none.view({0, 3}).tanh().mean({0})};
  };
  auto compiled = compile(f);
  Tensor x = ramp({6}).requires_grad_(), y = ramp({6}).requires_grad_();
  TensorList want = f(x), got = compiled(y);
  for (size_t i = 0; i < 2; ++i) expect_same(got[i], want[i]);
  EXPECT_TRUE(got[2].isnan().all().item<bool>());
  (want[0].sum() + want[1].sum()).backward();
  (got[0].sum() + got[1].sum()).backward();
  expect_same(y.grad(), x.grad());
}

TEST(FuzzRegressions, ASizeThatComesToOneHasAGradient) {
  auto f = [](const Tensor& x) {
    Tensor y = x.slice(0, 1);
    if (x.sum().item() > 1e9) return y.sum();
    return (x * y.slice(0, 0, 1) * y.slice(0, 0, x.size(0) - 1).slice(0, 0, 1)).sum();
  };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t n : {4, 2, 3, 2}) {
    Tensor a = ramp({n, 3}).requires_grad_(), b = ramp({n, 3}).requires_grad_();
    compiled(a).backward();
    f(b).backward();
    expect_same(a.grad(), b.grad());
  }
}

TEST(FuzzRegressions, ACapturedTensorWrittenThroughItsDetachedSelf) {
  auto check = [](auto body) {
    Tensor w = ramp({4}).requires_grad_(), v = ramp({4}).requires_grad_();
    Tensor t = w * 2, s = v * 2;
    auto f = compile([t, body](const Tensor& x) { return body(t, x); });
    for (int i = 0; i < 3; ++i) {
      Tensor x = ramp({4}) + i;
      Tensor got = f(x), want = body(s, x);
      expect_same(got, want);
      EXPECT_EQ(t.requires_grad(), s.requires_grad());
      EXPECT_EQ(got.requires_grad(), want.requires_grad());
      expect_same(t, s);
    }
    t.sum().backward();
    s.sum().backward();
    expect_same(w.grad(), v.grad());
  };
  check([](const Tensor& t, const Tensor& x) {
    t.detach().add_(x);
    return x + 1;
  });
  check([](const Tensor& t, const Tensor& x) {
    t.detach().add_(x);
    return t.detach() * x;
  });
  check([](const Tensor& t, const Tensor& x) {
    t.detach().add_(x);
    return t + x;
  });
  check([](const Tensor& t, const Tensor& x) {
    Tensor y = t * x;
    t.detach().mul_(2);
    return y.detach() + t;
  });
  check([](const Tensor& t, const Tensor& x) {
    t.detach().mul_(2);
    if (x.sum().item() > 1e9) return x;
    t.detach().add_(1);
    return t.detach() + t;
  });
}

// The question about a size ends the segment before the slice is recorded: its result has a history all the same.
TEST(FuzzRegressions, AGradientBehindAQuestionAboutASizeOfTheData) {
  auto f = [](const Tensor& x, const Tensor& m) { return masked_select(x, m).slice(0, 0, 1).abs(); };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor x = (ramp({6}) - i).requires_grad_(), y = (ramp({6}) - i).requires_grad_();
    Tensor want = f(x, x.detach() > 1), got = compiled(y, y.detach() > 1);
    ASSERT_TRUE(got.requires_grad());
    want.sum().backward();
    got.sum().backward();
    expect_same(y.grad(), x.grad());
  }
}

TEST(FuzzRegressions, AResultWhoseSizeTheDataDecidesHasItsHistory) {
  auto f = [](const Tensor& x) { return std::get<0>(unique(x)); };
  auto compiled = compile(f);
  auto error_of_backward = [](const Tensor& y) {
    EXPECT_TRUE(y.requires_grad());
    return error_of([&] { y.sum().backward(); });
  };
  for (int i = 0; i < 3; ++i) {
    Tensor x = (ramp({4}) + i).requires_grad_();
    std::string why = "no gradient can be taken: which elements are equal";
    EXPECT_TRUE(has(error_of_backward(f(x)), why));
    EXPECT_TRUE(has(error_of_backward(compiled(x)), why));
  }
}

// Steps, gradients and random draws that come before an exception have happened.
TEST(FuzzRegressions, WhatComesBeforeAnExceptionPersists) {
  struct Model {
    Tensor w = ramp({4}).requires_grad_(), v = ramp({4}).requires_grad_();
    optim::AdamW optimizer{{w}, optim::AdamWOptions(0.1)};
    optim::StepLR schedule{optimizer, 2, 0.5};
    Tensor step(const Tensor& x, bool fails) {
      (rand({4}) * v).sum().backward();
      optimizer.zero_grad(false);
      square(w * x.sum()).sum().backward();
      optimizer.step();
      schedule.step();
      check(!fails, "stop");
      return x * 2;
    }
  } eager, fast;
  auto compiled = compile([&](const Tensor& x, bool fails) { return fast.step(x, fails); });
  auto run = [](auto&& f) {
    manual_seed(3);
    try {
      f();
    } catch (const Error&) {
    }
    return rand({2});
  };
  for (auto [size, fails] : {std::pair{3, true}, {3, false}, {5, true}, {5, false}, {3, true}, {3, false}}) {
    Tensor x = ramp({size});
    Tensor want = run([&] { eager.step(x, fails); }), got = run([&] { compiled(x, fails); });
    expect_same(got, want);
    expect_same(fast.w.grad(), eager.w.grad());
    expect_same(fast.v.grad(), eager.v.grad());
    EXPECT_EQ(fast.optimizer.lr(), eager.optimizer.lr());
    fast.optimizer.step();
    eager.optimizer.step();
    expect_same(fast.w, eager.w);
  }
}

// Behind a schedule's step the rate is what the schedule says, not what it was when the function was captured.
TEST(FuzzRegressions, ARateThatIsReadBehindAScheduleIsReadInEveryCall) {
  struct Model {
    optim::SGD optimizer{{ramp({2}).requires_grad_()}, 0.02};
    optim::CosineAnnealingLR schedule{optimizer, 4};
    Tensor step(const Tensor& x) {
      schedule.step();
      optimizer.set_lr(optimizer.lr() * 0.5);
      return x * 2;
    }
  } eager, fast;
  auto compiled = compile([&](const Tensor& x) { return fast.step(x); });
  for (int i = 0; i < 8; ++i) {
    eager.step(ramp({2}));
    compiled(ramp({2}));
    EXPECT_EQ(fast.optimizer.lr(), eager.optimizer.lr()) << i;
  }
}

// The second answer calls the function again, when the segments before it have dropped the history already.
TEST(FuzzRegressions, AHistoryThatALaterSegmentDrops) {
  auto f = [](const Tensor& w, const Scalar& s) {
    Tensor x = w * 0.5;
    if ((x > 100).any().item<bool>()) return x;
    x.fill_(0.25);
    if (x.sum().item() * s > 1.0) return x + w;
    return x * w;
  };
  auto compiled = compile(f);
  for (double s : {0.5, 2.5, 0.5, 2.5}) {
    Tensor w = ramp({3}).requires_grad_(), v = ramp({3}).requires_grad_();
    Tensor want = f(w, s), got = compiled(v, s);
    expect_same(got, want);
    want.sum().backward();
    got.sum().backward();
    expect_same(v.grad(), w.grad());
  }
}

TEST(FuzzRegressions, ACapturedTensorThatGainsAHistory) {
  auto run = [](bool compiled) {
    Tensor w = ramp({4}), x = ramp({4}).requires_grad_();
    std::function<Tensor(const Tensor&)> f = [w](const Tensor& y) {
      Tensor result = w * 2;
      w.lerp_(y, 0.5);
      return result;
    };
    if (compiled) f = compile(f);
    f(x);
    for (int i = 0; i < 3; ++i) f(x).sum().backward({}, true);
    return x.grad();
  };
  expect_same(run(true), run(false));
}

// A capture that has to begin anew has drawn nothing.
TEST(FuzzRegressions, RandomNumbersBeforeALeafThatCrossesABreak) {
  auto f = [](const Tensor& x) {
    Tensor noise = rand({4}), w = (x.detach() + noise).requires_grad_();
    if (x.sum().item() > 1e9) return x;
    (w * noise).sum().backward();
    return w.grad() + rand({4});
  };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    manual_seed(5);
    Tensor want = f(ramp({4}));
    manual_seed(5);
    expect_same(compiled(ramp({4})), want);
  }
}

// As in PyTorch: what is left of the view's history gives zeros.
TEST(FuzzRegressions, AViewThatIsOverwrittenKeepsItsHistory) {
  auto f = [](const Tensor& x) {
    Tensor part = x.clone().slice(0, 1).fill_(2);
    return part.requires_grad() ? part * 3 : part;
  };
  Tensor x = ramp({4}).requires_grad_(), y = ramp({4}).requires_grad_();
  Tensor want = f(x), got = compile(f)(y);
  expect_same(got.detach(), want.detach());
  ASSERT_TRUE(want.requires_grad() && got.requires_grad());
  want.sum().backward();
  got.sum().backward();
  expect_same(x.grad(), zeros({4}));
  expect_same(y.grad(), zeros({4}));
}

// The gradient asks about the same size, from the other side.
TEST(FuzzRegressions, AGradientOfWhatBroadcastsWithAsManyAsTheDataDecides) {
  auto f = [](const Tensor& x, const Tensor& y) { return masked_select(x, x.detach() > 0) * y; };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor x = (ramp({6}) + i).requires_grad_(), y = ramp({3 + i}).requires_grad_();
    Tensor a = x.detach().requires_grad_(), b = y.detach().requires_grad_();
    f(x, y).sum().backward();
    compiled(a, b).sum().backward();
    expect_same(a.grad(), x.grad());
    expect_same(b.grad(), y.grad());
  }
}

// What a NoGradGuard covers looks the same in the graph as what it does not.
TEST(FuzzRegressions, BranchesThatComputeTheSameRecordDifferentHistories) {
  auto f = [](const Tensor& x, const Scalar& s) {
    Tensor y;
    if (x.sum().item() > 0) {
      NoGradGuard none;
      y = x * 3;
    } else {
      y = x * 3;
    }
    return s > 0.5 ? x * y : x - y;
  };
  auto within = [](const Tensor& x, const Scalar& s) {
    AutoGradMode mode(x.sum().item() > 0);
    Tensor y = x * 3;
    EnableGradGuard again;
    return s > 0.5 ? x * y : x - y;
  };
  auto check = [](auto f) {
    auto compiled = compile(f);
    for (double value : {1.0, -1.0, 2.0, -2.0}) {
      Tensor v = full({3}, value).requires_grad_(), w = full({3}, value).requires_grad_();
      compiled(v, 1.0).sum().backward();
      f(w, 1.0).sum().backward();
      expect_same(v.grad(), w.grad());
    }
  };
  check(f);
  check(within);
}

TEST(FuzzRegressions, AViewOfACapturedTensorsDetachedSelfIsWritten) {
  for (const Shape& shape : {Shape{}, Shape{2, 3}}) {
    Tensor w = rand(shape).requires_grad_(), v = w.detach().clone().requires_grad_();
    auto with = [](Tensor w) {
      return [w] {
        Tensor d = w.detach();
        d.transpose(0, -1).add_(1);
        return w * 2;
      };
    };
    expect_same(compile(with(w))(), with(v)());
    expect_same(w, v);
  }
}

// The loop over nothing is not entered, and nothing is read before it.
TEST(FuzzRegressions, AGatherOfNothingThatIsSummedReadsNothing) {
  auto f = [](const Tensor& x, const Tensor& w) {
    Tensor where = nonzero(x);
    Tensor values = w.reshape({-1}).repeat({where.numel()}).view(where.sizes());
    return sigmoid(scatter_add(zeros({5, 2}), 0, where % 5, values));
  };
  auto compiled = compile(f);
  for (double value : {1.0, 0.0, 1.0, 0.0}) {
    Tensor x = full({3, 2}, value), v = ramp({1, 1}).requires_grad_(), w = ramp({1, 1}).requires_grad_();
    compiled(x, v).sum().backward();
    f(x, w).sum().backward();
    expect_same(v.grad(), w.grad());
  }
}

TEST(FuzzRegressions, AConditionalsGradientAtASizeThatIsKnownByNow) {
  auto f = [](const Tensor& x) {
    Tensor y = cond(x.sum() > 0.5, [](const Tensor& u) { return u * 2; }, [](const Tensor& u) { return sin(u); }, x);
    return y * ramp({4});
  };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  for (double value : {1.0, -1.0}) {
    Tensor v = full({4}, value).requires_grad_(), w = full({4}, value).requires_grad_();
    compiled(v).sum().backward();
    f(w).sum().backward();
    expect_same(v.grad(), w.grad());
  }
}

TEST(FuzzRegressions, ALeafThatWasWrittenBeforeABreakIsOneBehindIt) {
  Tensor scale = full({4}, 2.0);
  auto f = [=](const Tensor& x) {
    x.detach().add_(1);
    return x * scale.mean().item<double>();
  };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor v = ramp({4}).requires_grad_(), w = ramp({4}).requires_grad_();
    compiled(v).sum().backward();
    f(w).sum().backward();
    expect_same(v.grad(), w.grad());
    expect_same(v.detach(), w.detach());
  }
  // A captured one, too.
  Tensor v = ramp({4}).requires_grad_(), w = ramp({4}).requires_grad_();
  auto with = [=](Tensor leaf) {
    return [=](const Tensor& x) {
      leaf.detach().add_(1);
      return leaf * x.mean().item<double>();
    };
  };
  auto captures = compile(with(v));
  for (int i = 0; i < 3; ++i) {
    captures(scale).sum().backward();
    with(w)(scale).sum().backward();
    expect_same(v.grad(), w.grad());
  }
}

TEST(FuzzRegressions, ALeafThatIsWrittenBehindABackwardKeepsItsGradient) {
  auto f = [](const Tensor& x) {
    square(x).sum().backward();
    x.detach().add_(1);
    Tensor before = x.grad().clone();
    (x * 2).sum().backward();
    return before;
  };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor v = ramp({4}).requires_grad_(), w = ramp({4}).requires_grad_();
    expect_same(compiled(v), f(w));
    expect_same(v.grad(), w.grad());
    expect_same(v.detach(), w.detach());
  }
}

// What was computed of rounded numbers is not found among what is computed anew of numbers that are not.
TEST(FuzzRegressions, TheLargestOfHalfPrecisionNumbersIsFoundByItsGradient) {
  auto f = [](const Tensor& x) {
    Tensor y = acosh(sigmoid(x.to(kBFloat16)) * 4.0 + 1.0);
    return std::tuple{y, (y + 2).amax({0}, true)};
  };
  auto compiled = compile(f);
  for (int i = 0; i < 4; ++i) {
    manual_seed(uint64_t(i));
    Tensor x = (rand({4, 60}) * 4 - 2).requires_grad_();
    auto [y, largest] = compiled(x);
    largest.to(kFloat32).sum().backward();
    EXPECT_EQ((x.grad().sum(0) > 0).sum().item<int64_t>(), 60);
  }
}

// The gradient has a size of 3, the indices one of s1 / 2, which a guard tells to be 3.
TEST(FuzzRegressions, AGradientOfMaximaMayHaveOtherWordsForItsSizes) {
  auto f = [](const Tensor& x, const Tensor& w) { return (max_pool2d(x.unsqueeze(0), 2).squeeze(0) * w).sum(); };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t rows : {4, 8, 6}) {
    Tensor v = ramp({rows, 6}).requires_grad_(), w = ramp({rows, 6}).requires_grad_(), weights = ramp({3});
    compiled(v, weights).backward();
    f(w, weights).backward();
    expect_same(v.grad(), w.grad());
  }
}

// Eagerly a value with a history that is drawn over keeps it, with a gradient of zero.
TEST(FuzzRegressions, WhatIsWrittenOverKeepsItsHistory) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.lerp_(y, 0.5);
    x.bernoulli_(0.5);
    return y * 2;
  };
  auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) {
    Tensor v = ramp({4}), w = ramp({4}), y = ramp({4}).requires_grad_();
    manual_seed(uint64_t(i));
    f(v, y);
    manual_seed(uint64_t(i));
    compiled(w, y);
    EXPECT_TRUE(v.requires_grad());
    EXPECT_TRUE(w.requires_grad());
    expect_same(w.detach(), v.detach());
    w.sum().backward();
    expect_same(y.grad(), zeros({4}));
  }
}

// A bound that the host reads is a number eagerly and an operand in the program: no gradient flows at it in either.
TEST(FuzzRegressions, BoundsThatAreReadAreNumbers) {
  auto f = [](const Tensor& x) { return clamp(x, -x.abs().max().item<double>(), -1.5).sum() + clamp_max(x, x.max().item()).sum(); };
  auto compiled = compile(f);
  for (int i = 1; i < 4; ++i) {
    Tensor v = (ramp({5}) * -i - 1.0).detach().requires_grad_(), w = v.detach().clone().requires_grad_();
    compiled(v).backward();
    f(w).backward();
    expect_same(v.grad(), w.grad());
  }
}

}  // namespace
}  // namespace sinter
