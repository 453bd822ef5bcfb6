#include <sinter/sinter.h>

#include <gtest/gtest.h>

#include <thread>

#include "sinter/capture/entry.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

const Buckets kLength{.sizes = {4, 8, 16}, .dims = {{0, 1}}};

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-5)) << a << "\n" << b;
}

void expect_mentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

size_t programs(const auto& bucketed) {
  size_t count = 0;
  for (auto& [sizes, function] : bucketed.policy().functions()) count += function->entries().size();
  return count;
}

TEST(Buckets, ResultsAreThoseOfTheTrueSize) {
  Tensor w = randn({6, 5});
  auto f = [w](const Tensor& x) { return gelu(matmul(x, w)) * 2 + 1; };
  auto fast = bucketed(compile(f), kLength);
  for (int64_t n : {1, 2, 3, 4, 5, 8, 9, 16}) {
    Tensor x = randn({2, n, 6});
    expect_close(fast(x), f(x));
  }
}

TEST(Buckets, OneStaticProgramForEachBucket) {
  int calls = 0;
  auto fast = bucketed(compile(
                           [&calls](const Tensor& x) {
                             ++calls;
                             return x * 2;
                           },
                           {.dynamic = Dynamic::kTrue, .options = {{"recompile_limit", int64_t(1)}}}),
                       Buckets{.sizes = {4, 8, 16}, .dims = {{0, 1}}});
  for (int64_t n : {2, 3, 4, 5, 6, 7, 8, 9, 16, 3, 7, 12}) EXPECT_EQ(fast(ones({2, n})).size(1), n);
  // However the argument lies in memory.
  for (int64_t n : {3, 4}) EXPECT_EQ(fast(ones({n, 2}).transpose(0, 1)).size(1), n);
  EXPECT_EQ(programs(fast), 3u);
  EXPECT_EQ(calls, 4);  // each capture, and one trace
  for (auto& [sizes, function] : fast.policy().functions()) {
    auto entry = function->entries().at(0);
    EXPECT_TRUE(entry->sizes.symbols().empty());
    expect_mentions(entry->root->text, format("f32[2, {}]", sizes[0]));
  }
}

TEST(Buckets, PiecesOfOneTensorAreOneProgram) {
  auto f = [](const Tensor& q, const Tensor& k) { return q * k; };
  auto fast = bucketed(compile(f), Buckets{.sizes = {4}, .dims = {{0, 0}, {1, 0}}});
  for (int64_t n : {3, 4}) {
    Tensor both = randn({2 * n});
    expect_close(fast(both.slice(0, 0, n), both.slice(0, n)), f(both.slice(0, 0, n), both.slice(0, n)));
    expect_close(fast(ones({n}), full({n}, 3.0)), full({n}, 3.0));
  }
  EXPECT_EQ(programs(fast), 1u);
}

TEST(Buckets, OtherSizesMayVary) {
  auto fast = bucketed(compile([](const Tensor& x) { return x + 1; }), kLength);
  for (int64_t batch : {2, 3, 4, 5, 6}) expect_close(fast(ones({batch, 3})), full({batch, 3}, 2.0));
  EXPECT_EQ(programs(fast), 2u);
}

TEST(Buckets, CombiningThePaddingNamesOpAndLine) {
  Tensor seen = zeros({});
  int line = 0;
  auto fast = bucketed(compile([&](const Tensor& x) {
                         seen.add_(1);
                         line = __LINE__ + 1;
                         return softmax(x, 1);
                       }),
                       kLength);
  // Every call says so, and none has an effect.
  for (int64_t n : {3, 3, 4}) {
    std::string text = error_of([&] { fast(ones({2, n})); });
    expect_mentions(text, format("buckets_test.cpp:{}: amax", line));
    expect_mentions(text, "argument 0.size(1)");
  }
  EXPECT_EQ(seen.item<float>(), 0);
  auto averaged = bucketed(compile([](const Tensor& x) { return mean(x, {1}); }), kLength);
  expect_mentions(error_of([&] { averaged(ones({2, 3})); }), "a value of the padded size");
  auto reduced = bucketed(compile([](const Tensor& x) { return prod(x, 1); }), kLength);
  expect_mentions(error_of([&] { reduced(ones({2, 3})); }), "prod: it combines");
}

TEST(Buckets, MaskIsMadeWhereTheCallLeavesItOut) {
  auto attend = [](const Tensor& q, const Tensor& k, const Tensor& mask) {
    Tensor scores = matmul(q, k.transpose(1, 2));
    if (mask.defined()) scores = scores.masked_fill(logical_not(mask), -1e9);
    return matmul(softmax(scores, -1), k);
  };
  auto fast = bucketed(compile(attend), Buckets{.sizes = {4, 8}, .dims = {{0, 1}, {1, 1}}, .mask = 2});
  for (int64_t n : {1, 3, 4, 7}) {
    Tensor q = randn({2, n, 6}), k = randn({2, n, 6});
    expect_close(fast(q, k, {}), attend(q, k, {}));
  }
  // Without one, the same function is refused.
  auto bare = bucketed(compile(attend), Buckets{.sizes = {4, 8}, .dims = {{0, 1}, {1, 1}}});
  expect_mentions(error_of([&] { bare(randn({2, 3, 6}), randn({2, 3, 6}), {}); }), "gives wrong results");
}

TEST(Buckets, MaskOfTheCallerIsPaddedWithFalse) {
  auto f = [](const Tensor& x, const Tensor& mask) { return where(mask, x, 0).sum({1}); };
  auto fast = bucketed(compile(f), Buckets{.sizes = {4, 8}, .dims = {{0, 1}, {1, 1}}});
  Tensor x = randn({2, 5}), mask = randn({2, 5}) > 0;
  expect_close(fast(x, mask), f(x, mask));
}

TEST(Buckets, TwoSizes) {
  Tensor w = randn({3, 3});
  auto f = [w](const Tensor& x, const Tensor& rows, const Tensor& columns) {
    Tensor y = tanh(matmul(x, w));
    Tensor weight = columns.to(kFloat32).unsqueeze(-1);
    return std::tuple(y, (y * weight).sum({1}) / weight.sum(), (y.sum({2}) * rows.to(kFloat32).unsqueeze(1)).sum({0}));
  };
  auto fast = bucketed(compile(f), {Buckets{.sizes = {2, 4}, .dims = {{0, 0}}, .mask = 1},
                                    Buckets{.sizes = {4, 8}, .dims = {{0, 1}}, .mask = 2}});
  for (auto [b, n] : {std::pair(1, 3), {2, 4}, {3, 5}, {3, 3}, {4, 8}, {3, 8}}) {
    Tensor x = randn({b, n, 3});
    auto [all, means, sums] = fast(x, {}, {});
    auto [all_true, means_true, sums_true] = f(x, ones({b}, kBool), ones({n}, kBool));
    expect_close(all, all_true);
    expect_close(means, means_true);
    expect_close(sums, sums_true);
  }
  EXPECT_EQ(programs(fast), 3u);
}

TEST(Buckets, ResultsOfOtherShapes) {
  auto fast = bucketed(compile([](const Tensor& x, const Tensor& unused) {
                         Tensor y = x * 2;
                         return std::tuple(y.transpose(0, 1), y.slice(1, 1), matmul(x.transpose(0, 1), x),
                                           x.unsqueeze(0), unused, Tensor(), x.size(1) * 3 + 1);
                       }),
                       Buckets{.sizes = {4, 8}, .dims = {{0, 1}, {1, 0}}});
  for (int64_t n : {3, 6, 8}) {
    Tensor x = randn({2, n}), unused = randn({n});
    auto [turned, rest, square, itself, untouched, undefined, size] = fast(x, unused);
    expect_close(turned, (x * 2).transpose(0, 1));
    expect_close(rest, (x * 2).slice(1, 1));
    expect_close(square, matmul(x.transpose(0, 1), x));
    expect_close(itself, x.unsqueeze(0));
    expect_close(untouched, unused);
    EXPECT_FALSE(undefined.defined());
    EXPECT_EQ(size.number(), n * 3 + 1);
  }
  // What comes behind the padding cannot be cut off.
  auto joined = bucketed(compile([](const Tensor& x) { return cat({x, x}, 1); }), kLength);
  expect_mentions(error_of([&] { joined(ones({2, 3})); }), "cat");
}

TEST(Buckets, MergedPaddingIsRefused) {
  auto fast = bucketed(compile([](const Tensor& x) { return (x * 2).reshape({-1}); }), kLength);
  expect_mentions(error_of([&] { fast(ones({2, 3})); }), "merged dimension");
  auto rows =
      bucketed(compile([](const Tensor& x) { return (x * 2).reshape({-1}); }), Buckets{.sizes = {4}, .dims = {{0, 0}}});
  expect_close(rows(ones({3, 2})), full({6}, 2.0));
}

TEST(Buckets, CausalModel) {
  Tensor table = randn({20, 8}), projection = randn({8, 8}) * 0.3, scale = ones({8}), head = randn({8, 20});
  auto model = [=](const Tensor& tokens) {
    Tensor x = embedding(table, tokens);
    Dim batch = x.size(0), length = x.size(1);
    for (int layer = 0; layer < 2; ++layer) {
      Tensor q = matmul(layer_norm(x, {8}, scale), projection).reshape({batch, length, 2, 4}).transpose(1, 2);
      x = x + scaled_dot_product_attention(q, q, q, {}, 0, true).transpose(1, 2).reshape({batch, length, 8});
    }
    return matmul(x, head);
  };
  std::vector<Tensor> weights{table, projection, scale, head};
  auto gradients = [&](const Tensor& logits) { return autograd::grad({square(logits).sum()}, weights); };
  for (bool train : {false, true}) {
    for (auto& w : weights) w.requires_grad_(train);
    auto fast = bucketed(compile(model), kLength);
    for (int64_t n : {1, 3, 4, 7}) {
      Tensor tokens = randint(0, 20, {2, n});
      Tensor logits = fast(tokens), expected = model(tokens);
      expect_close(logits, expected);
      if (!train) continue;
      auto got = gradients(logits), wanted = gradients(expected);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(allclose(got[i], wanted[i], 1e-3, 1e-3)) << i;
    }
  }
}

TEST(Buckets, TrainingStep) {
  auto step = [](const Tensor& w) {
    return [w](const Tensor& x, const Tensor& mask) {
      Tensor errors = square(matmul(x, w)).sum({1});
      if (mask.defined()) errors = where(mask, errors, 0);
      Tensor loss = errors.sum();
      loss.backward();
      NoGradGuard no_grad;
      w.sub_(w.grad() * 0.01);
      return loss.detach();
    };
  };
  Tensor w = randn({4, 3}).requires_grad_(), w_true = w.detach().clone().requires_grad_();
  auto fast = bucketed(compile(step(w)), Buckets{.sizes = {4, 8}, .dims = {{0, 0}}, .mask = 1});
  for (int64_t n : {3, 4, 7}) {
    Tensor x = randn({n, 4});
    expect_close(fast(x, {}), step(w_true)(x, {}));
    expect_close(w.detach(), w_true.detach());
    expect_close(w.grad(), w_true.grad());
  }
}

TEST(Buckets, SizesAsNumbers) {
  // A size that becomes a value would be the padded one.
  auto divided = bucketed(compile([](const Tensor& x) { return x.sum({1}) / x.size(1); }), kLength);
  expect_mentions(error_of([&] { divided(ones({2, 3})); }), "buckets_test.cpp:");
  auto plain = bucketed(compile([](const Tensor& x) { return x * double(x.size(1).to_int()); }), kLength);
  std::string text = error_of([&] { plain(ones({2, 3})); });
  expect_mentions(text, "s0 == 4");
  expect_mentions(text, "buckets_test.cpp:");
  expect_close(plain(ones({2, 4})), full({2, 4}, 4.0));
  // The true one can be passed.
  auto passed = bucketed(compile([](const Tensor& x, const Scalar& n) { return x.sum({1}) / n; }), kLength);
  for (int64_t n : {3, 4, 7}) expect_close(passed(ones({2, n}), n), ones({2}));
}

TEST(Buckets, DecisionsOnTheSize) {
  auto fast = bucketed(compile([](const Tensor& x) { return x.size(1) > 6 ? x * 10 : x; }), kLength);
  expect_close(fast(ones({2, 7})), full({2, 7}, 10.0));
  expect_close(fast(ones({2, 3})), ones({2, 3}));
  std::string text = error_of([&] { fast(ones({2, 5})); });
  expect_mentions(text, "s0");
  expect_mentions(text, "buckets_test.cpp:");
}

TEST(Buckets, WritesReachTheCaller) {
  auto fast = bucketed(compile([](const Tensor& x) {
                         x.add_(1);
                         x.select(1, 0).mul_(3);
                         return x * 2;
                       }),
                       kLength);
  for (int64_t n : {3, 4}) {
    Tensor x = ones({2, n}), expected = full({2, n}, 2.0);
    expected.select(1, 0).mul_(3);
    expect_close(fast(x), expected * 2);
    expect_close(x, expected);
    // A tensor that is not contiguous, and one given twice.
    Tensor turned = ones({n, 2}).transpose(0, 1);
    fast(turned);
    expect_close(turned, expected);
  }
  auto twice = bucketed(compile([](const Tensor& a, const Tensor& b) {
                          a.add_(1);
                          return b * 2;
                        }),
                        Buckets{.sizes = {4}, .dims = {{0, 0}, {1, 0}}});
  for (int64_t n : {3, 4}) {
    Tensor x = ones({n}), both = ones({n + 1});
    expect_close(twice(x, x), full({n}, 4.0));
    expect_close(x, full({n}, 2.0));
    expect_mentions(error_of([&] { twice(both.slice(0, 0, n), both.slice(0, 1)); }), "shares memory");
  }
}

TEST(Buckets, WritesOfThePaddingIntoOthersAreRefused) {
  auto fill = [](const Tensor& cache, const Tensor& x) { cache.slice(1, 0, x.size(1)).copy_(x); };
  auto fast = bucketed(compile(fill), Buckets{.sizes = {4, 8}, .dims = {{1, 1}}});
  Tensor cache = full({2, 16}, 7.0);
  expect_mentions(error_of([&] { fast(cache, ones({2, 3})); }), "gives wrong results");
  expect_close(cache, full({2, 16}, 7.0));
}

TEST(Buckets, ContainersAndModules) {
  auto sums = [](const std::vector<Tensor>& xs) {
    std::vector<Tensor> out;
    for (auto& x : xs) out.push_back(x + xs[0]);
    return out;
  };
  auto fast = bucketed(compile(sums), Buckets{.sizes = {4, 8}, .dims = {{0, -1}}});
  auto got = fast({ones({2, 3}), full({3}, 2.0)});
  expect_close(got.at(0), full({2, 3}, 2.0));
  expect_close(got.at(1), full({2, 3}, 3.0));
  nn::Linear linear(6, 5);
  NoGradGuard no_grad;
  auto layer = bucketed(compile(linear), kLength);
  Tensor x = randn({2, 3, 6});
  expect_close(layer(x), linear(x));
}

TEST(Buckets, Gradients) {
  Tensor w = randn({6, 5}).requires_grad_(), w_true = w.detach().clone().requires_grad_();
  auto f = [](const Tensor& x, const Tensor& w) { return gelu(matmul(x, w)); };
  auto fast = bucketed(compile(f), kLength);
  Tensor x = randn({2, 3, 6}).requires_grad_(), x_true = x.detach().clone().requires_grad_();
  fast(x, w).square().sum().backward();
  f(x_true, w_true).square().sum().backward();
  expect_close(w.grad(), w_true.grad());
  expect_close(x.grad(), x_true.grad());
}

TEST(Buckets, GradientsOfThePaddingAreLookedAt) {
  // log(0) does no harm to the elements beside it, but 0 / 0 does to the gradient of w.
  Tensor w = ones({6}).requires_grad_();
  auto fast = bucketed(compile([w](const Tensor& x) { return log(x * w); }), Buckets{.sizes = {4}, .dims = {{0, 0}}});
  Tensor x = ones({3, 6});
  for (int again = 0; again < 2; ++again) expect_mentions(error_of([&] { fast(x); }), "gradients");
  NoGradGuard no_grad;
  expect_close(fast(x), zeros({3, 6}));
}

TEST(Buckets, BackwardIntoPaddedArgumentsIsRefused) {
  auto fast = bucketed(compile([](const Tensor& x) {
                         Tensor loss = square(x).sum();
                         loss.backward();
                         return loss.detach();
                       }),
                       kLength);
  for (int64_t n : {3, 4}) {
    Tensor x = ones({2, n}).requires_grad_();
    expect_mentions(error_of([&] { fast(x); }), "backward");
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(Buckets, SizesBeyondTheLargest) {
  auto f = [](const Tensor& x) { return x * 2; };
  auto fast = bucketed(compile(f), kLength);
  std::string text = error_of([&] { fast(ones({2, 17})); });
  expect_mentions(text, "17");
  expect_mentions(text, "16");
  Buckets open = kLength;
  open.pass_larger = true;
  auto larger = bucketed(compile(f), open);
  for (int64_t n : {17, 18, 19, 20}) expect_close(larger(ones({2, n})), full({2, n}, 2.0));
  EXPECT_EQ(programs(larger), 2u);  // the second is symbolic
}

TEST(Buckets, MistakesAreNamed) {
  auto f = compile([](const Tensor& a, const Tensor& b) { return a + b; });
  expect_mentions(error_of([&] { bucketed(f, Buckets{.sizes = {8, 4}, .dims = {{0, 0}}}); }), "[8, 4]");
  expect_mentions(error_of([&] { bucketed(f, Buckets{.sizes = {1, 4}, .dims = {{0, 0}}}); }), "from 2 on");
  expect_mentions(error_of([&] { bucketed(f, Buckets{.sizes = {4}}); }), "dimensions");
  auto both = bucketed(f, Buckets{.sizes = {4}, .dims = {{0, 0}, {1, 0}}});
  expect_mentions(error_of([&] { both(ones({2}), ones({3})); }), "argument 1 has size 3");
  auto again = bucketed(f, {Buckets{.sizes = {4}, .dims = {{0, 0}}}, Buckets{.sizes = {8}, .dims = {{0, -1}}}});
  expect_mentions(error_of([&] { again(ones({2}), ones({2})); }), "named twice");
  auto deep = bucketed(f, Buckets{.sizes = {4}, .dims = {{0, 2}}});
  expect_mentions(error_of([&] { deep(ones({2}), ones({2})); }), "numbered 2");
  auto masked = bucketed(f, Buckets{.sizes = {4}, .dims = {{0, 0}}, .mask = 5});
  expect_mentions(error_of([&] { masked(ones({2}), ones({2})); }), "argument 5");
  auto missing = bucketed(f, Buckets{.sizes = {4}, .dims = {{7, 0}}});
  expect_mentions(error_of([&] { missing(ones({2}), ones({2})); }), "argument 7");
  // A size that happens to fit the bucket and not the true size.
  auto half = bucketed(f, Buckets{.sizes = {4}, .dims = {{0, 0}}});
  expect_mentions(error_of([&] { half(ones({3}), ones({4})); }), "s0");
}

TEST(Buckets, BreaksAreErrors) {
  Tensor seen = zeros({});
  auto fast = bucketed(compile([seen](const Tensor& x) {
                         seen.add_(1);
                         return x.sum().item<float>() > 0 ? x : -x;
                       }),
                       kLength);
  std::string text = error_of([&] { fast(ones({2, 3})); });
  expect_mentions(text, "breaks it in two");
  expect_mentions(text, "buckets_test.cpp:");
  EXPECT_EQ(seen.item<float>(), 0);
}

TEST(Buckets, ArgumentsThatKeepChangingRunEagerly) {
  auto f = [](const Tensor& x, int64_t k) { return x * k; };
  auto fast = bucketed(compile(f, {.options = {{"recompile_limit", int64_t(2)}}}), kLength);
  for (int64_t k = 1; k < 6; ++k) expect_close(fast(ones({2, 3}), k), full({2, 3}, double(k)));
}

TEST(Buckets, ManyThreads) {
  Tensor w = randn({6, 6});
  auto f = [w](const Tensor& x) { return tanh(matmul(x, w)); };
  auto fast = bucketed(compile(f), kLength);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      NoGradGuard no_grad;
      for (int64_t n = 1; n <= 16; ++n) {
        Tensor x = full({2, n, 6}, 0.1 * t);
        Tensor y = fast(x);
        if (y.sizes() != x.sizes() || !allclose(y, f(x), 1e-5, 1e-5)) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(programs(fast), 3u);
}

TEST(Buckets, ResetCapturesAnew) {
  auto fast = bucketed(compile([](const Tensor& x) { return x * 2; }), kLength);
  fast(ones({2, 3}));
  compiler::reset();
  EXPECT_EQ(programs(fast), 0u);
  expect_close(fast(ones({2, 3})), full({2, 3}, 2.0));
  EXPECT_EQ(programs(fast), 1u);
}

}  // namespace
}  // namespace sinter
