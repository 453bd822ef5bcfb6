// warmup(): everything is compiled before the first call, and nothing else happens.
#include <thread>

#include "common.h"

namespace sinter {
namespace {

// What f spends on compiling.
template <class F>
StageTimes compiled_by(F&& f) {
  auto before = compiler::compile_times();
  f();
  return compiler::compile_times() - before;
}

template <class F>
::testing::AssertionResult compiles_nothing(F&& f) {
  auto spent = compiled_by(f);
  if (spent.total() == 0 && spent.kernels == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << spent.text();
}

TEST(Warmup, TheFirstCallCompilesNothing) {
  int runs = 0;
  auto f = compile([&](const Tensor& x, const Tensor& w) {
    ++runs;
    return softmax(gelu(matmul(x, w)) + x.mean(0), -1).t();
  });
  Tensor x = wave({6, 8}), w = wave({8, 8}, 3);
  EXPECT_GT(compiled_by([&] { warmup(f, std::tuple{x, w}); }).kernels, 0);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(programs_of(f), 1);
  Tensor y;
  EXPECT_TRUE(compiles_nothing([&] { y = f(x, w); }));
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(close(y, softmax(gelu(matmul(x, w)) + x.mean(0), -1).t()));
  EXPECT_TRUE(compiles_nothing([&] { warmup(f, std::tuple{x, w}); })) << "a second time there is nothing to do";
}

TEST(Warmup, SeveralExamples) {
  auto one = compile([](const Tensor& x) { return x * 2 + 1; }, {.dynamic = Dynamic::kFalse});
  warmup(one, {{ones({3})}, {ones({4, 5})}});
  EXPECT_EQ(programs_of(one), 2);
  auto two = compile([](const Tensor& x, const Tensor& y) { return x * 2 + y; });
  warmup(two, {{ones({3}), ones({3})}, {ones({2, 4}), ones({4})}});
  EXPECT_EQ(programs_of(two), 2);
  EXPECT_TRUE(compiles_nothing([&] { two(ones({3}), ones({3})), two(ones({2, 4}), ones({4})); }));
  nn::Linear layer(4, 4);
  auto module = compile(layer);
  NoGradGuard no_grad;
  warmup(module, {wave({2, 4}), wave({3, 4}, 1)});
  Tensor y;
  EXPECT_TRUE(compiles_nothing([&] { y = module(wave({3, 4})); }));
  EXPECT_TRUE(close(y, layer(wave({3, 4}))));
}

TEST(Warmup, EveryCombinationOfSizes) {
  auto f = compile([](const Tensor& x, const Tensor& y) { return (x * 2 + y.unsqueeze(0)).sum(-1); },
                   {.dynamic = Dynamic::kFalse});
  warmup(f, std::tuple{ones({2, 8}), ones({8})},
         {{.sizes = {1, 4}, .dims = {{0, 0}}}, {.sizes = {5, 8, 9}, .dims = {{0, -1}, {1, 0}}}});
  EXPECT_EQ(programs_of(f), 6);
  for (int64_t batch : {1, 4})
    for (int64_t length : {5, 8, 9}) {
      Tensor x = wave({batch, length}), y = wave({length}, 2), got;
      EXPECT_TRUE(compiles_nothing([&] { got = f(x, y); })) << batch << " " << length;
      EXPECT_TRUE(close(got, (x * 2 + y).sum(-1)));
    }
  EXPECT_TRUE(has(error_of([&] { warmup(f, std::tuple{ones({2, 8}), ones({8})}, {{.sizes = {3}, .dims = {{1, 1}}}}); }),
                  "argument 1 has 1 dimensions"));
}

// With sizes that vary: the second makes the program for all, whose plan is made for each of them.
TEST(Warmup, DynamicSizes) {
  auto f = compile([](const Tensor& x) { return relu(x - x.mean(-1, true)); });
  warmup(f, std::tuple{wave({3, 8})}, {{.sizes = {3, 5, 7}, .dims = {{0, 0}}}});
  EXPECT_EQ(programs_of(f), 2);
  for (int64_t n : {3, 5, 7}) EXPECT_TRUE(compiles_nothing([&] { f(wave({n, 8})); })) << n;
}

TEST(Warmup, LeavesArgumentsAndStateAlone) {
  Tensor counter = zeros({4}), w = wave({4}, 1);
  w.requires_grad_();
  auto f = compile([&](const Tensor& x) {
    counter.add_(1);
    x.mul_(3);
    Tensor loss = (x * w * dropout(ones({4}), 0.5, true)).sum();
    loss.backward();
    return loss.detach() + rand({1});
  });
  Tensor x = ones({4});
  manual_seed(7);
  Tensor drawn = rand({3});
  manual_seed(7);
  warmup(f, std::tuple{x});
  EXPECT_TRUE(same(rand({3}), drawn)) << "the generator is where it was";
  EXPECT_TRUE(same(x, ones({4})));
  EXPECT_TRUE(same(counter, zeros({4})));
  EXPECT_FALSE(w.grad().defined());
  Tensor got, want;
  manual_seed(11);
  EXPECT_TRUE(compiles_nothing([&] { got = f(x); }));
  EXPECT_TRUE(same(x, full({4}, 3.0)));
  EXPECT_TRUE(same(counter, ones({4})));
  Tensor grad = w.grad().clone();
  manual_seed(11);
  Tensor kept = dropout(ones({4}), 0.5, true);
  EXPECT_TRUE(close(grad, kept * 3));
}

TEST(Warmup, LeavesAnOptimizerAlone) {
  nn::Linear layer(4, 2);
  optim::SGD optimizer(layer->parameters(), 0.1);
  auto step = compile([&](const Tensor& x) {
    optimizer.zero_grad();
    Tensor loss = layer(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss;
  });
  Tensor x = wave({3, 4}), weight = layer->weight.detach().clone();
  warmup(step, std::tuple{x});
  EXPECT_TRUE(same(layer->weight.detach(), weight));
  EXPECT_FALSE(layer->weight.grad().defined());
  double first = step(x).item<double>();
  EXPECT_FALSE(same(layer->weight.detach(), weight));
  for (int i = 0; i < 20; ++i) step(x);
  EXPECT_LT(step(x).item<double>(), first * 0.8);
}

TEST(Warmup, CompilesTheBackwardOfALoss) {
  nn::Linear layer(8, 8);
  auto loss = compile([&](const Tensor& x) { return gelu(layer(x)).pow(2).mean(); });
  Tensor x = wave({4, 8});
  warmup(loss, std::tuple{x});
  // Adding up gradients is no part of the program.
  for (int i = 0; i < 2; ++i) gelu(layer(x)).pow(2).mean().backward();
  Tensor want = layer->weight.grad() / 2;
  layer->weight.grad().zero_();
  Tensor got = loss(x);
  auto before = programs_of(loss);
  EXPECT_TRUE(compiles_nothing([&] { got.backward(); }));
  EXPECT_TRUE(close(layer->weight.grad(), want));
  EXPECT_EQ(programs_of(loss), before);
}

// What follows a break depends on data: the first call goes on from there.
TEST(Warmup, StopsAtABreak) {
  int runs = 0;
  auto f = compile([&](const Tensor& x) {
    ++runs;
    Tensor y = tanh(x) * 2;
    return y.sum().item() > 0 ? y + 1 : y - 1;
  });
  warmup(f, std::tuple{ones({3})});
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(close(f(ones({3})), tanh(ones({3})) * 2 + 1));
  EXPECT_TRUE(close(f(-ones({3})), -tanh(ones({3})) * 2 - 1));
  EXPECT_EQ(programs_of(f), 1);
  int now = runs;
  EXPECT_TRUE(compiles_nothing([&] { f(ones({3})), f(-ones({3})); }));
  EXPECT_EQ(runs, now);
}

TEST(Warmup, AFunctionThatIsCalledEveryTime) {
  double seen = 0;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x * 2;
    seen = y.data_ptr<float>()[0];
    return y + 1;
  });
  warmup(f, std::tuple{ones({3})});
  EXPECT_EQ(seen, 0);
  EXPECT_TRUE(close(f(full({3}, 5.0)), full({3}, 11.0)));
  EXPECT_EQ(seen, 10);
  EXPECT_TRUE(close(f(full({3}, 2.0)), full({3}, 5.0)));
  EXPECT_EQ(seen, 4);
}

TEST(Warmup, ErrorsOfTheFunctionAndOfFullgraph) {
  auto wrong = compile([](const Tensor& x, const Tensor& y) {
    x.add_(1);
    return matmul(x, y);
  });
  Tensor x = ones({2, 3});
  EXPECT_TRUE(has(error_of([&] { warmup(wrong, std::tuple{x, ones({4, 4})}); }), "matmul"));
  EXPECT_TRUE(same(x, ones({2, 3}))) << "a call would have written before it failed";
  auto broken = compile([](const Tensor& x) { return x.sum().item() > 0 ? x : -x; }, {.fullgraph = true});
  EXPECT_TRUE(has(error_of([&] { warmup(broken, std::tuple{x}); }), "fullgraph"));
  register_once("warmup fails", [](const Graph&) -> GraphFunction { throw Error("no such machine"); });
  auto f = compile([](const Tensor& x) { return x + 1; }, {.backend = "warmup fails"});
  EXPECT_TRUE(has(error_of([&] { warmup(f, std::tuple{x}); }), "no such machine"));
}

TEST(Warmup, EveryBucket) {
  auto f = bucketed(compile([](const Tensor& x, const Tensor& mask) {
                      return (x * 2).masked_fill(mask.logical_not(), 0).sum(-1) + 1;
                    }),
                    Buckets{.sizes = {4, 8, 16}, .dims = {{0, 1}}, .mask = 1});
  warmup(f, std::tuple{ones({2, 5}), Tensor()});
  EXPECT_EQ(f.policy().functions().size(), 3u);
  for (int64_t n : {2, 7, 16}) {
    Tensor x = wave({2, n}), got;
    f(x, {});  // padding itself runs eagerly
    auto before = compiler::compile_times();
    got = f(x, {});
    EXPECT_EQ((compiler::compile_times() - before).total(), 0);
    EXPECT_TRUE(close(got, (x * 2).sum(-1) + 1));
  }
  for (auto& [sizes, function] : f.policy().functions()) EXPECT_EQ(function->entries().size(), 1u);
}

// Programs are compiled on several threads; calls of the same function go on meanwhile.
TEST(Warmup, WhileOthersCall) {
  auto f = compile([](const Tensor& x) { return (sin(x) * cos(x)).sum(0) + x.mean(); }, {.dynamic = Dynamic::kFalse});
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !over || i < 4; ++i) {
        Tensor x = wave({2 + (i + t) % 4, 3}, t);
        if (!close(f(x), (sin(x) * cos(x)).sum(0) + x.mean())) ++wrong;
      }
    });
  warmup(f, std::tuple{wave({2, 3})}, {{.sizes = {2, 3, 4, 5}, .dims = {{0, 0}}}});
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(programs_of(f), 4);
}

}  // namespace
}  // namespace sinter
