// {"background", true}: calls are served op by op until the compiled program is there, and are right in both phases.
#include <condition_variable>
#include <thread>

#include "common.h"
#include "sinter/graph/run.h"

namespace sinter {
namespace {

CompileOptions in_background(CompileOptions options = {}) {
  options.options["background"] = true;
  return options;
}

// A backend that compiles when it is told to, counts what it compiled and ran, and fails on request.
struct Gate {
  std::mutex mutex;
  std::condition_variable moved;
  bool open = false, fails = false;
  std::atomic<int> compiled{0}, ran{0};

  void set(bool is_open, bool does_fail = false) {
    std::lock_guard lock(mutex);
    open = is_open;
    fails = does_fail;
    compiled = ran = 0;
    moved.notify_all();
  }
  void release() {
    std::lock_guard lock(mutex);
    open = true;
    moved.notify_all();
  }
};

Gate& gate() {
  static Gate gate;
  register_once("gated", [](const Graph& graph) -> GraphFunction {
    std::unique_lock lock(gate.mutex);
    gate.moved.wait(lock, [] { return gate.open; });
    check(!gate.fails, "the gate is broken");
    ++gate.compiled;
    auto kept = std::make_shared<Graph>(Graph::parse(graph.text()));
    return [kept](std::span<const TensorArg> inputs) {
      ++gate.ran;
      return run_graph(*kept, inputs, {});
    };
  });
  return gate;
}

TEST(Background, ServesAtOnceAndSwitches) {
  gate().set(false);
  int runs = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++runs;
        return tanh(x) * 2;
      },
      in_background({.backend = "gated"}));
  Tensor x = wave({5}), want = tanh(x) * 2;
  EXPECT_TRUE(compiler::is_ready(f)) << "nothing was asked for";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(x), want));
  EXPECT_FALSE(compiler::is_ready(f));
  EXPECT_EQ(gate().ran, 0);
  EXPECT_EQ(runs, 1) << "the function is captured once, and not called to serve";
  gate().release();
  compiler::wait(f);
  EXPECT_TRUE(compiler::is_ready(f));
  EXPECT_EQ(gate().compiled, 1);
  EXPECT_TRUE(close(f(x), want));
  EXPECT_EQ(gate().ran, 1);
  EXPECT_EQ(runs, 1);
}

TEST(Background, RunsThePlanOnceItIsThere) {
  auto f = compile([](const Tensor& x) { return softmax(x * 3, -1); }, in_background());
  Tensor x = wave({4, 9}), want = softmax(x * 3, -1);
  EXPECT_TRUE(close(f(x), want));
  compiler::wait(f);
  auto before = compiler::compile_times();
  EXPECT_TRUE(close(f(x), want));
  EXPECT_EQ((compiler::compile_times() - before).total(), 0);
  EXPECT_TRUE(compiler::explain(f, x).programs.at(0).reports.at(0)) << "planned";
  // Another layout is another plan, which the background makes too.
  Tensor y = wave({9, 4}).t();
  auto g = compile([](const Tensor& x) { return softmax(x * 3, -1); }, in_background({.dynamic = Dynamic::kTrue}));
  for (int64_t n : {4, 6, 8}) {
    Tensor z = wave({n, 9});
    EXPECT_TRUE(close(g(z), softmax(z * 3, -1)));
    compiler::wait(g);
    EXPECT_TRUE(close(g(z), softmax(z * 3, -1)));
  }
  EXPECT_EQ(programs_of(g), 1);
  EXPECT_TRUE(close(f(y), softmax(y * 3, -1)));
}

// A size seen with a second value: one more program, compiled in the background as the first.
TEST(Background, DynamicSizesAndTheRecompileLimit) {
  auto f = compile([](const Tensor& x) { return x.sum(0) / x.size(0); },
                   in_background({.options = {{"recompile_limit", int64_t(2)}}}));
  for (int64_t n : {5, 7, 100, 1, 5, 7})
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(close(f(wave({n, 4})), wave({n, 4}).mean(0)));
      compiler::wait(f);
    }
  EXPECT_EQ(programs_of(f), 2);
}

TEST(Background, FourThreadsAcrossTheSwitch) {
  gate().set(false);
  auto f = compile([](const Tensor& x, const Tensor& y) { return sin(x) * y + x.sum(); }, in_background());
  auto gated = compile([](const Tensor& x) { return x * 2 + 1; }, in_background({.backend = "gated"}));
  std::atomic<int> wrong{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !over || i < 50; ++i) {
        Tensor x = wave({3 + t % 2, 6}, t + i), y = wave({6}, i);
        if (!close(f(x, y), sin(x) * y + x.sum())) ++wrong;
        if (!close(gated(x), x * 2 + 1)) ++wrong;
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate().release();
  // Every size asks for its own plan, one at a time.
  for (int i = 0; i < 20; ++i) {
    compiler::wait(f);
    compiler::wait(gated);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (gate().ran == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(gate().ran, 0);
}

// Writes, draws and gradients are the same before and after.
TEST(Background, WritesInPlace) {
  gate().set(false);
  for (const char* backend : {"gated", "sinter"}) {
    Tensor total = zeros({3});
    auto f = compile(
        [&](const Tensor& x) {
          total.add_(x);
          x.select(0, 0).mul_(2);
          return total * 1;
        },
        in_background({.backend = backend}));
    Tensor x = ones({3}), first = f(x), second = f(x);
    EXPECT_TRUE(same(first, ones({3})));
    EXPECT_TRUE(same(second, tensor({3.0, 2.0, 2.0}).to(kFloat32)));
    gate().release();
    compiler::wait(f);
    Tensor third = f(x);
    EXPECT_TRUE(same(third, tensor({7.0, 3.0, 3.0}).to(kFloat32)));
    EXPECT_TRUE(same(x, tensor({8.0, 1.0, 1.0}).to(kFloat32)));
    EXPECT_TRUE(same(first, ones({3}))) << "results are the caller's";
  }
}

TEST(Background, DrawsTheSameNumbers) {
  auto body = [](const Tensor& x) { return dropout(x, 0.5, true) + rand({8}); };
  auto f = compile(body, in_background());
  manual_seed(3);
  Tensor a = body(ones({8})), b = body(ones({8})), after = rand({2});
  manual_seed(3);
  EXPECT_TRUE(close(f(ones({8})), a));
  compiler::wait(f);
  EXPECT_TRUE(close(f(ones({8})), b));
  EXPECT_TRUE(same(rand({2}), after));
}

TEST(Background, GradientsAcrossTheSwitch) {
  Tensor w = wave({6, 6});
  w.requires_grad_();
  auto body = [&](const Tensor& x) { return gelu(matmul(x, w)).sum(-1).pow(2); };
  auto f = compile(body, in_background());
  Tensor x = wave({4, 6}, 2);
  body(x).mean().backward();
  Tensor want = w.grad().clone();
  for (int i = 0; i < 4; ++i) {
    w.grad().zero_();
    Tensor y = f(x);
    // A forward that ran op by op may meet a backward that is compiled.
    if (i % 2) compiler::wait(f);
    y.mean().backward();
    EXPECT_TRUE(close(w.grad(), want)) << i;
    if (i == 1) compiler::wait(f);
  }
}

TEST(Background, BreaksAndFunctionsThatAreCalledEveryTime) {
  auto f = compile([](const Tensor& x) { return x.sum().item() > 0 ? exp(x) : -x; }, in_background());
  std::vector<double> seen;
  auto g = compile(
      [&](const Tensor& x) {
        Tensor y = x * 2;
        seen.push_back(y.data_ptr<float>()[0]);
        return y + 1;
      },
      in_background());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(f(ones({3})), exp(ones({3}))));
    EXPECT_TRUE(close(f(-ones({3})), ones({3})));
    EXPECT_TRUE(close(g(full({3}, double(i))), full({3}, 2.0 * i + 1)));
    compiler::wait(f);
    compiler::wait(g);
  }
  EXPECT_EQ(programs_of(f), 1);
  EXPECT_EQ(seen, (std::vector<double>{0, 2, 4}));
}

TEST(Background, AFailedCompileWarnsOnceAndStaysEager) {
  gate().set(false, true);
  auto f = compile([](const Tensor& x) { return x + 1; }, in_background({.backend = "gated", .name = "doomed"}));
  std::string text = logged("", [&] {
    EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
    gate().release();
    EXPECT_TRUE(has(error_of([&] { compiler::wait(f); }), "the gate is broken"));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
  });
  EXPECT_EQ(count_of(text, "doomed"), 1) << text;
  EXPECT_TRUE(has(text, "runs op by op"));
  EXPECT_TRUE(has(error_of([&] { warmup(f, std::tuple{ones({2})}); }), "could not be compiled before"));
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
}

// Mistakes of a call are its own, whoever serves it.
TEST(Background, ErrorsOfACallReachTheCaller) {
  auto f = compile([](const Tensor& x, const Tensor& i) { return x.index_select(0, i) * 2; }, in_background());
  Tensor bad = tensor(std::vector<int64_t>{0, 9}), good = tensor(std::vector<int64_t>{0, 1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(has(error_of([&] { f(ones({3, 2}), bad); }), "9"));
    EXPECT_TRUE(close(f(ones({3, 2}), good), full({2, 2}, 2.0)));
    compiler::wait(f);
  }
  auto broken = compile([](const Tensor& x) { return x.sum().item() > 0 ? x : -x; }, in_background({.fullgraph = true}));
  EXPECT_TRUE(has(error_of([&] { broken(ones({2})); }), "fullgraph")) << "found while tracing, by the caller";
}

TEST(Background, TheFunctionMayGoWhileItIsCompiled) {
  gate().set(false);
  std::weak_ptr<capture::Function> gone;
  {
    auto f = compile([](const Tensor& x) { return x + 1; }, in_background({.backend = "gated"}));
    auto g = compile([](const Tensor& x) { return x + 2; }, in_background({.backend = "gated"}));
    f(ones({2}));
    g(ones({2}));
    for (auto& function : capture::all_functions())
      if (function.get() == &f.function()) gone = function;
    EXPECT_FALSE(gone.expired());
  }
  EXPECT_TRUE(gone.expired());
  gate().release();
  auto h = compile([](const Tensor& x) { return x + 3; }, in_background({.backend = "gated"}));
  h(ones({2}));
  compiler::wait(h);
  EXPECT_LE(gate().compiled, 2) << "what was waiting for its turn is not compiled for nobody";
}

// Reset forgets programs that are still being compiled.
TEST(Background, ResetMeanwhile) {
  gate().set(false);
  auto f = compile([](const Tensor& x) { return x + 1; }, in_background({.backend = "gated"}));
  f(ones({2}));
  f.function().reset();
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
  gate().release();
  compiler::wait(f);
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
}

TEST(Background, WarmupWaitsForNobody) {
  auto f = compile([](const Tensor& x) { return log(x + 2).sum(-1); }, in_background());
  Tensor x = wave({3, 4});
  warmup(f, std::tuple{x});
  auto before = compiler::compile_times();
  Tensor y = f(x);
  EXPECT_EQ((compiler::compile_times() - before).total(), 0);
  EXPECT_TRUE(close(y, log(x + 2).sum(-1)));
}

TEST(Background, ABucketedFunction) {
  auto f = bucketed(compile([](const Tensor& x) { return relu(x) * 2; }, in_background()),
                    Buckets{.sizes = {4, 8}, .dims = {{0, 0}}});
  for (int i = 0; i < 3; ++i) {
    for (int64_t n : {3, 7}) EXPECT_TRUE(close(f(wave({n, 2})), relu(wave({n, 2})) * 2));
    compiler::wait(f);
  }
  EXPECT_TRUE(compiler::is_ready(f));
}

TEST(Background, TakesTrueAndFalse) {
  auto f = [](const Tensor& x) { return x + 1; };
  EXPECT_FALSE(compile(f, {.options = {{"background", false}}}).function().tasks());
  EXPECT_TRUE(compile(f, {.options = {{"background", int64_t(1)}}}).function().tasks());
  EXPECT_TRUE(has(error_of([&] { compile(f, {.options = {{"background", int64_t(2)}}}); }), "true or false"));
  EXPECT_TRUE(has(error_of([&] { compile(f, {.options = {{"background", "yes"}}}); }), "true or false"));
}

// A process that ends while its background compiles waits for the task under way and drops the others.
TEST(BackgroundDeathTest, ExitWhileCompiling) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [](bool on_main) {
    auto work = [] {
      std::vector<decltype(compile(std::declval<Tensor (*)(const Tensor&)>()))> all;
      Tensor (*body)(const Tensor&) = [](const Tensor& x) { return softmax(tanh(x) * 3 + exp(x).sum(0), -1).pow(2); };
      for (int i = 0; i < 4; ++i) {
        all.push_back(compile(body, in_background()));
        all.back()(wave({3 + i, 5}));
      }
      static auto kept = std::move(all);  // destroyed as statics are
    };
    if (on_main)
      work();
    else
      std::thread(work).join();
    std::exit(0);
  };
  for (bool on_main : {true, false}) EXPECT_EXIT(run(on_main), ::testing::ExitedWithCode(0), "") << on_main;
}

}  // namespace
}  // namespace sinter
