// Programs that the fuzzer of tests/fuzz has found to differ under compile(), as small as they get.
#include "common.h"

namespace sinter {
namespace {

void expect_same(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(got.impl().sizes, want.impl().sizes);
  EXPECT_EQ(got.impl().strides, want.impl().strides);
  EXPECT_TRUE(allclose(got.detach(), want.detach())) << got << "\ninstead of\n" << want;
}

Tensor ramp(const Shape& shape) { return (arange(shape.numel(), kFloat32) - 2.5).view(shape); }

TEST(FuzzRegressions, ContiguousIsNewMemoryInEveryCall) {
  auto f = compile([](const Tensor& x) { return x.t().contiguous(); });
  Tensor x = ramp({2, 3});
  Tensor first = f(x), second = f(x * 2);
  EXPECT_FALSE(first.is_alias_of(second));
  expect_same(first, x.t().contiguous());
  expect_same(second, (x * 2).t().contiguous());
}

TEST(FuzzRegressions, ContiguousBeforeABranch) {
  auto f = [](const Tensor& x) {
    Tensor y = x.t().contiguous();
    if (x.sum().item<float>() > 0) x.add_(1);
    return y;
  };
  auto compiled = compile(f);
  for (double sign : {1.0, -1.0, 1.0}) {
    Tensor x = ramp({2, 4}) * sign;
    expect_same(compiled(x.clone()), f(x.clone()));
  }
}

TEST(FuzzRegressions, AFailureOfASegmentIsTheOnlyOne) {
  auto f = compile([](const Tensor& x, const Tensor& index) {
    x.add_(1);
    return index_select(x, 0, index);
  });
  EXPECT_THROW(f(ramp({3}), tensor({7})), Error);
}

TEST(FuzzRegressions, TheEagerBackendViewsWhatIsNotRowMajor) {
  auto f = compile([](const Tensor& x) { return x.reshape({-1}) + 1; }, {.backend = "eager"});
  expect_same(f(ramp({2, 3}).t()), ramp({2, 3}).t().reshape({-1}) + 1);
}

TEST(FuzzRegressions, AnExpandedArgumentIsWrittenEagerly) {
  auto f = compile([](const Tensor& x) { return x.diagonal().fill_(2.0).clone(); });
  Tensor x = ramp({1, 3}).expand({3, 3});
  f(x);
  expect_same(x.clone(), full({3, 3}, 2.0));
}

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

TEST(FuzzRegressions, AnotherBranchAfterASizeThatTheDataDecides) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor found = nonzero(x);
    return y.sum().item() > 0 ? found + 1 : found * 2;
  };
  auto compiled = compile(f);
  for (int64_t sign : {1, -1, 1}) {
    Tensor x = tensor({0, 1, sign > 0 ? 1 : 0, 1}), y = full({2}, double(sign));
    expect_same(compiled(x, y), f(x, y));
  }
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

TEST(FuzzRegressions, ChecksOfSymbolicSizesAreGuards) {
  auto f = compile([](const Tensor& x) { return std::get<0>(topk(x, 3)); }, {.dynamic = Dynamic::kTrue});
  expect_same(f(ramp({5})), std::get<0>(topk(ramp({5}), 3)));
  EXPECT_THROW(f(ramp({2})), Error);
}

TEST(FuzzRegressions, ASizeThatComesToOneBroadcasts) {
  auto f = [](const Tensor& x) { return x + x.slice(0, 1, -1); };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  expect_same(compiled(ramp({3})), f(ramp({3})));
}

TEST(FuzzRegressions, ReshapeOfSizesThatBecomeEqualIsAView) {
  auto f = compile([](const Tensor& x) { return x.reshape({-1, x.size(0)}); }, {.dynamic = Dynamic::kTrue});
  f(ramp({3, 4}).t());
  Tensor x = ramp({3, 3}).t();
  EXPECT_TRUE(f(x).is_alias_of(x));
}

TEST(FuzzRegressions, TheResultOfAnExpandedElementIsContiguous) {
  EXPECT_TRUE((ones({1}).expand({1}) * 2).is_contiguous());
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

TEST(FuzzRegressions, AWriteToAReshapeDependsOnTheSizes) {
  // One row: the half is in order and its reshape a look at it; of several rows it is a copy.
  auto f = [](const Tensor& x) {
    Tensor half = x.chunk(2, -1).at(1);
    half.reshape({-1}).add_(1);
    return half + 0;
  };
  auto compiled = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t rows : {3, 1, 2}) expect_same(compiled(ramp({rows, 4})), f(ramp({rows, 4})));
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

// Kernels that run side by side must not overwrite what another one of them reads: the gradient of the norm's weight was
// computed from what the gradient of the convolution had replaced.
TEST(FuzzRegressions, SiblingKernelsLeaveTheirCommonOperand) {
  nn::Sequential net(nn::Conv2d(2, 3, 2), nn::BatchNorm2d(3), nn::GELU(), nn::Flatten(), nn::Linear(48, 2));
  net->eval();
  Tensor x = sin(ramp({2, 2, 5, 5})), weights = cos(ramp({2, 2}));
  auto gradients = [&](auto f) { return autograd::grad({(f(x) * weights).sum()}, net->parameters()); };
  TensorList want = gradients(net), got = gradients(compile(net));
  for (size_t i = 0; i < want.size(); ++i) expect_same(got[i], want[i]);
}

// The same of every argument, eagerly and compiled: the result, and the argument afterwards.
template <class F>
void expect_same_calls(F f, const TensorList& arguments, CompileOptions options = {}) {
  auto compiled = compile(f, options);
  for (auto& argument : arguments) {
    Tensor x = argument.clone(), y = argument.clone();
    Tensor got = compiled(x), want = f(y);
    expect_same(got, want);
    expect_same(x, y);
    EXPECT_EQ(got.is_alias_of(x), want.is_alias_of(y)) << x.sizes();
  }
}

TEST(FuzzRegressions, AWriteAsksForSizesOfTheData) {
  expect_same_calls([](const Tensor& x) { return nonzero(x > 0).view_as(zeros({2, 3})).fill_(1); },
                    {ramp({2, 3}), ramp({2, 3}) * 2, ramp({2, 3})});
  expect_same_calls([](const Tensor& x) { return nonzero(x > 0).transpose(0, 1).reshape({-1}).fill_(1); },
                    {ramp({2, 3}), ramp({2, 3}) - 1, ramp({2, 3})});
}

TEST(FuzzRegressions, ASizeThatComesToOneBroadcastsAfterABreak) {
  TensorList sizes = {ramp({4, 3}), ramp({2, 3}), ramp({3, 3}), ramp({2, 3})};
  auto after_break = [](const Tensor& x) {
    Tensor y = x.slice(0, 1);
    if (x.sum().item() > 1e9) return y;
    return x.clone().copy_(y.slice(0, 0, 1)) + y.slice(0, 0, 1);
  };
  expect_same_calls(after_break, sizes, {.dynamic = Dynamic::kTrue});
  // Eager broadcasts at two rows alone.
  auto two_rows = [](const Tensor& x) {
    Tensor y = x.slice(0, 1);
    if (x.sum().item() > 1e9 || x.size(0) != 2) return y * 2;
    return x.clone().copy_(y) * y + y.expand(x.sizes());
  };
  expect_same_calls(two_rows, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls(two_rows, sizes);
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

TEST(FuzzRegressions, ASizeOfTheDataThatComesToOneBroadcasts) {
  auto f = [](const Tensor& x) {
    Tensor kept = masked_select(x.select(0, 0), x.select(0, 0) > 0);
    return x.clone().copy_(kept.view({-1, 1})) + kept.view({-1, 1});
  };
  // Three rows: one value kept, or three.
  expect_same_calls(f, {tensor({{1.0, -1.0, -1.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
                        tensor({{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
                        tensor({{-1.0, -1.0, 7.0}, {1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}})});
}

TEST(FuzzRegressions, ATruthValueAsAnIndexIsWrittenTo) {
  for (bool truth : {true, false})
    expect_same_calls(
        [truth](const Tensor& x) {
          Tensor y = x.index({x.sum() > (truth ? -100 : 100)}).view({-1}).mul_(2);
          return y + 1;
        },
        {ramp({2, 3}), ramp({2, 3}) * 2, ramp({2, 3})});
}

TEST(FuzzRegressions, ResultsOfAViewThatIsDenseAtSomeSizesOnly) {
  TensorList sizes = {ramp({5, 3}), ramp({4, 3}), ramp({6, 3}), ramp({5, 3}), ramp({7, 3})};
  for (auto& size : TensorList(sizes)) sizes.push_back(size.t());
  auto f = [](const Tensor& x) { return unfold(x.transpose(0, -1), 0, 2, 2) * 0.5; };
  auto g = [](const Tensor& x) { return unfold(x, 0, 2, 2).t() * 0.5; };
  expect_same_calls(f, {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 7}), ramp({3, 4})}, {.dynamic = Dynamic::kTrue});
  expect_same_calls(f, {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 7}), ramp({3, 4})});
  expect_same_calls(g, {ramp({5}), ramp({4}), ramp({6}), ramp({7}), ramp({4})}, {.dynamic = Dynamic::kTrue});
}

TEST(FuzzRegressions, ContiguousIsACopyAtSomeSizesOnly) {
  TensorList sizes = {ramp({3, 5}), ramp({3, 4}), ramp({3, 6}), ramp({3, 3}), ramp({2, 4}), ramp({3, 4})};
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).contiguous(); }, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).contiguous().add_(1).sum(); }, sizes,
                    {.dynamic = Dynamic::kTrue});
  expect_same_calls([](const Tensor& x) { return x.slice(1, 0, 4).reshape({-1}).add_(1).sum(); }, sizes,
                    {.dynamic = Dynamic::kTrue});
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

// At some sizes a dimension of the pool's result is 1, and lies in memory where it likes.
TEST(FuzzRegressions, ABreakAtSizesWhoseResultsLieOtherwise) {
  auto f = [](const Tensor& x) {
    Tensor pooled = max_pool2d(x, {3, 2}, {2, 3}, {1, 1}, {2, 1}, true);
    return x.mean().item<double>() < 0.5 ? -x + pooled.sum() : x * 2;
  };
  auto compiled = compile(f);
  for (auto [rows, columns] : {std::pair{4, 6}, {5, 7}, {3, 3}, {3, 3}, {4, 3}})
    for (double shift : {0.0, 2.0, -1.0}) {
      Tensor x = cos(ramp({1, 2, rows, columns})) + shift;
      expect_same(compiled(x), f(x));
    }
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

// It finds what halving finds.
TEST(FuzzRegressions, ASearchInASequenceThatIsNotSortedIsTheSameInTheInterpreter) {
  Tensor sequence = cos(ramp({2, 7}) * 3), values = sin(ramp({2, 5}));
  for (bool right : {false, true}) {
    auto f = [=](const Tensor& a, const Tensor& b) { return searchsorted(a, b, right); };
    expect_same(compile(f, {.backend = "interpreter"})(sequence, values), f(sequence, values));
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

TEST(FuzzRegressions, QuestionsAboutOneSizeOfTheDataAreToldApart) {
  auto f = [](const Tensor& x) {
    Tensor found = nonzero(x), copy = x.clone();
    copy.data_ptr<float>();  // from here on the function is called every time
    Dim count = found.size(0);
    return x * (count == 2 ? 1 : 10) + (2 < count ? 100 : 0) + (2 <= count ? 1000 : 0);
  };
  expect_same_calls(f, {tensor({1.0, 0.0, 2.0, 3.0}), tensor({1.0, 0.0, 2.0, 0.0}), tensor({1.0, 0.0, 0.0, 0.0}),
                        tensor({1.0, 0.0, 2.0, 3.0})});
}

TEST(FuzzRegressions, TheHostReadsALookWhosePathHasSizes) {
  auto f = [](const Tensor& x) { return x + double(x.t().chunk(2, 0).at(1).data_ptr<float>()[0]); };
  auto g = [](const Tensor& x) { return x + from_data(x.flatten().to_vector<float>(), {x.numel()}).view(x.sizes()); };
  TensorList sizes = {ramp({3, 4}), ramp({5, 7}), ramp({2, 3}), ramp({6, 4})};
  expect_same_calls(f, sizes, {.dynamic = Dynamic::kTrue});
  expect_same_calls(g, sizes, {.dynamic = Dynamic::kTrue});
}

TEST(FuzzRegressions, ADimensionThatWasOfSizeOneStaysInItsPlace) {
  auto f = [](const Tensor& x) { return cumprod(unfold(x, 1, 4, 1), 1); };
  auto g = [](const Tensor& x) { return conv1d(x.slice(0, 0, 1).repeat({1, 1, 2}).slice(2, 0, 7), x); };
  expect_same_calls(f, {ramp({2, 4}), ramp({2, 5}), ramp({2, 7})}, {.dynamic = Dynamic::kTrue});
  expect_same_calls(g, {ramp({2, 4, 6}), ramp({2, 5, 7}), ramp({2, 3, 4})});
}

TEST(FuzzRegressions, OneTensorReturnedTwiceIsOneAlsoWhereItsReshapeIsACopy) {
  auto f = compile(
      [](const Tensor& x) {
        Tensor y = unfold(x, 1, 4, 1).reshape({-1, 4});
        return TensorList{y, y};
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {4, 5, 6, 4}) {
    TensorList results = f(ramp({3, n}));
    EXPECT_TRUE(results[0].is_alias_of(results[1]));
    expect_same(results[1], unfold(ramp({3, n}), 1, 4, 1).reshape({-1, 4}));
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

TEST(FuzzRegressions, ABranchOfCondTakesAViewFromBeforeABreak) {
  auto f = [](const Tensor& x) {
    Tensor y = x.slice(0, 1), z = x * 2;
    if (x.sum().item<double>() > 1e9) return x;
    return cond(x.any(), [&](const Tensor& u) { return u * y.mean(); }, [&](const Tensor& u) { return u - z[0]; }, x);
  };
  expect_same(compile(f)(ramp({4})), f(ramp({4})));
}

// The order in which elements of one place are written would decide.
TEST(FuzzRegressions, WindowsThatOverlapAreNotWritten) {
  auto f = [](const Tensor& x) { return unfold(x, 0, 3, 2).mul_(2).sum(); };
  auto compiled = compile(f), dynamic = compile(f, {.dynamic = Dynamic::kTrue});
  for (int64_t size : {3, 4, 5, 4, 7, 3}) {
    Tensor a = ramp({size}), b = ramp({size}), c = ramp({size});
    if (size > 4) {
      for (auto call : {std::function<void()>([&] { f(a); }), {[&] { compiled(b); }}, {[&] { dynamic(c); }}}) {
        try {
          call();
          ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("share one place in memory"), std::string::npos) << error.what();
        }
      }
    } else {
      Tensor want = f(a);
      expect_same(compiled(b), want);
      expect_same(dynamic(c), want);
    }
    expect_same(b, a);
    expect_same(c, a);
  }
}

TEST(FuzzRegressions, ResultsOfControlFlowLieAsTheirFunctionsLeaveThem) {
  auto loop = [](const Tensor& x) {
    return while_loop([](const Tensor& u) { return u.abs().sum() > 1; }, [](const Tensor& u) { return u * 0.5; }, x);
  };
  auto branch = [](const Tensor& x) {
    return cond(x.sum() > 0, [&](const Tensor& u) { return u * x.mean(); }, [&](const Tensor& u) { return u - x.sum(); }, x);
  };
  auto turned = [](auto f) { return [f](const Tensor& x) { return f(x.t()); }; };
  auto windows = [](auto f) { return [f](const Tensor& x) { return f(unfold(x, 0, 2, 2)); }; };
  TensorList sizes = {ramp({4, 4}), ramp({4, 6}) * -1, ramp({5, 3}), ramp({5, 3}) * 0, ramp({6, 3})};
  for (auto dynamic : {Dynamic::kAuto, Dynamic::kTrue}) {
    expect_same_calls(turned(loop), sizes, {.dynamic = dynamic});
    expect_same_calls(turned(branch), sizes, {.dynamic = dynamic});
    expect_same_calls(windows(loop), sizes, {.dynamic = dynamic});
    expect_same_calls(windows(branch), sizes, {.dynamic = dynamic});
  }
}

// How many elements there are is known only once the program has come there.
TEST(FuzzRegressions, ExtremesOfAsManyAsTheDataDecides) {
  auto largest = [](const Tensor& x) { return masked_select(x, x > 0).amax(); };
  auto first = [](const Tensor& x) { return masked_select(x, x > 0).argmax(); };
  auto weights = [](const Tensor& x) { return softmax(masked_select(x, x > 0), 0); };
  for (auto backend : {"sinter", "eager", "interpreter"}) {
    auto fast_largest = compile(largest, {.backend = backend});
    auto fast_first = compile(first, {.backend = backend});
    auto fast_weights = compile(weights, {.backend = backend});
    for (int i = 0; i < 2; ++i) {
      expect_same(fast_largest(ramp({6})), largest(ramp({6})));
      expect_same(fast_first(ramp({6})), first(ramp({6})));
      EXPECT_THROW(fast_largest(ramp({6}) - 100), Error);
      EXPECT_THROW(fast_first(ramp({6}) - 100), Error);
      EXPECT_EQ(fast_weights(ramp({6}) - 100).numel(), 0);
    }
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

TEST(FuzzRegressions, TheFirstNoneOfASingleNumberIsItself) {
  Tensor x = ramp({}) + 7;
  for (int64_t k : {0, 1}) {
    expect_same(std::get<0>(topk(x, k)), x);
    expect_same(compile([k](const Tensor& t) { return std::get<0>(topk(t, k)); }, {.backend = "interpreter"})(x), x);
  }
}

TEST(FuzzRegressions, ADimensionThatIsOneAtSomeSizesIsSqueezedThere) {
  TensorList sizes = {ramp({4, 3}), ramp({5, 3}), ramp({2, 3}), ramp({6, 3})};
  for (auto dynamic : {Dynamic::kAuto, Dynamic::kTrue})
    expect_same_calls([](const Tensor& x) { return x.slice(0, 1).squeeze(0) * 2; }, sizes, {.dynamic = dynamic});
  auto f = [](const Tensor& x) { return std::get<0>(unique(x)).squeeze(0).transpose(0, 0) + 1; };
  auto compiled = compile(f);
  for (double scale : {1.0, 0.0, 1.0, 0.0}) expect_same(compiled(ramp({4}) * scale), f(ramp({4}) * scale));
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

}  // namespace
}  // namespace sinter
