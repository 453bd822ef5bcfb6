// The traps of capturing by calling: each of them a mistake that users make.
#include <sstream>
#include <thread>

#include "common.h"

namespace sinter {
namespace {

TEST(Traps, SideEffectsHappenWhenTraced) {
  int count = 0;
  auto f = compile([&](const Tensor& x) {
    ++count;
    return x + 1;
  });
  for (int i = 0; i < 5; ++i) f(ones({2}));
  EXPECT_EQ(count, 1);
}

// A text that shows no values is printed when the function is traced, as any side effect.
TEST(Traps, PrintingHostText) {
  std::ostringstream out;
  auto f = compile([&](const Tensor& x) {
    out << "shape " << x.sizes() << "\n";
    return x + 1;
  });
  for (int i = 0; i < 3; ++i) f(ones({2, 3}));
  EXPECT_EQ(out.str(), "shape " + to_string(Shape{2, 3}) + "\n");
}

// Values are printed in every call, and are the right ones.
TEST(Traps, PrintingValues) {
  std::ostringstream out;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x * 2;
    out << y.sum().item() << " ";
    return y;
  });
  for (double v : {1.0, 2.0, 3.0, 1.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, 2 * v)));
  std::ostringstream want;
  for (double v : {1.0, 2.0, 3.0, 1.0}) want << Scalar(4 * v) << " ";
  EXPECT_EQ(out.str(), want.str());
}

TEST(Traps, CapturedTensorChangedInPlace) {
  Tensor w = ones({2});
  auto f = compile([w](const Tensor& x) { return x * w; });
  EXPECT_TRUE(close(f(ones({2})), ones({2})));
  w.fill_(5);
  EXPECT_TRUE(close(f(ones({2})), full({2}, 5.0)));
  w.data_ptr<float>()[0] = 7;
  EXPECT_TRUE(close(f(ones({2})), tensor({7.0, 5.0})));
}

// A handle that is held by reference and assigned anew is not seen by the guards: `recheck` tells.
TEST(Traps, CapturedTensorReplaced) {
  Tensor w = ones({2});
  auto f = compile([&w](const Tensor& x) { return x * w; }, {.options = {{"recheck", int64_t(1)}}});
  EXPECT_TRUE(close(f(ones({2})), ones({2})));
  EXPECT_TRUE(close(f(ones({2})), ones({2})));
  w = full({2}, 5.0);
  EXPECT_TRUE(has(error_of([&] { f(ones({2})); }), "another tensor at " __FILE__));
  compiler::reset();
  EXPECT_TRUE(close(f(ones({2})), full({2}, 5.0)));
}

TEST(Traps, ModuleParameterAssignedAnew) {
  nn::Linear layer(2, 2);
  auto f = compile(layer);
  Tensor x = wave({3, 2});
  f(x);
  NamedTensors state{{"weight", wave({2, 2}, 9)}, {"bias", wave({2}, 8)}};
  layer->load_state_dict(state, {.assign = true});
  EXPECT_TRUE(close(f(x), layer(x)));
  EXPECT_TRUE(close(f(x), matmul(x, wave({2, 2}, 9).t()) + wave({2}, 8)));
  layer->load_state_dict({{"weight", wave({2, 2}, 3)}, {"bias", wave({2}, 2)}});
  EXPECT_TRUE(close(f(x), matmul(x, wave({2, 2}, 3).t()) + wave({2}, 2)));
}

TEST(Traps, NondeterministicTracingNamesTheLine) {
  int call = 0;
  std::string line;
  auto f = compile(
      [&](const Tensor& x) {
        Tensor y = x + double(call++);
        line = line_before();
        if (y.sum().item() > 0.0) return y * 2;
        return y * 3;
      },
      {.name = "fickle"});
  f(ones({2}));
  std::string message = error_of([&] { f(full({2}, -100.0)); });  // a new branch traces the prefix again
  EXPECT_TRUE(has(message, "fickle"));
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));  // what was captured still runs
}

TEST(Traps, ExceptionWhileTracing) {
  bool fail = true;
  Tensor state = zeros({1});
  auto f = compile([&](const Tensor& x) {
    state.add_(1);
    if (fail) throw std::invalid_argument("no");
    return x + state;
  });
  EXPECT_THROW(f(ones({1})), std::invalid_argument);
  EXPECT_FALSE(compiler::is_compiling());
  EXPECT_TRUE(close(state, ones({1})));
  fail = false;
  for (int i = 2; i < 5; ++i) EXPECT_TRUE(close(f(ones({1})), full({1}, 1.0 + i)));
}

TEST(Traps, RecursionIntoAnotherCompiledFunction) {
  auto g = compile([](const Tensor& x) { return x.sum().item() > 0.0 ? x * 2 : x * 3; });
  auto f = compile([&](const Tensor& x) { return g(x) + g(-x); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(ones({2})), full({2}, -1.0)));
    EXPECT_TRUE(close(f(-ones({2})), full({2}, -1.0)));
    EXPECT_TRUE(close(g(ones({2})), full({2}, 2.0)));
  }
}

TEST(Traps, RecursionIntoItself) {
  std::function<Tensor(const Tensor&, int64_t)> self;
  auto f =
      compile([&](const Tensor& x, int64_t depth) -> Tensor { return depth == 0 ? x : self(x + 1, depth - 1) * 2; });
  self = f;
  EXPECT_TRUE(close(f(zeros({1}), 3), full({1}, 24.0)));
  EXPECT_TRUE(close(f(zeros({1}), 3), full({1}, 24.0)));
  EXPECT_EQ(programs_of(f), 1);
}

TEST(Traps, ThreadsWhileCompiling) {
  auto f = compile([](const Tensor& x, int64_t n) {
    Tensor y = x + n;
    if (y.sum().item() > 0.0) return y * 2;
    return y * 3;
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        int64_t n = (t + i) % 4;
        double sign = (t + i) % 3 ? 10 : -10;
        Tensor x = full({2 + i % 3}, sign);
        double v = sign + double(n);
        wrong += !close(f(x, n), full({2 + i % 3}, v > 0 ? v * 2 : v * 3));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Traps, ThreadsFollow) {
  auto f = compile([](const Tensor& x) {
    double first = (x * 2).to_vector<double>()[0];
    return x + first;
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) wrong += !close(f(full({2}, double(t))), full({2}, 3.0 * t));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// There is no second device here: a tensor that changes its dtype in place stands for one that moves.
TEST(Traps, MovedTensor) {
  struct HolderImpl : nn::Module {
    Tensor table;
    HolderImpl() { table = register_buffer("table", wave({4})); }
    Tensor forward(const Tensor& x) { return x * table; }
  };
  HolderImpl module;
  auto f = compile(module);
  Tensor x = wave({4}, 1);
  EXPECT_EQ(f(x).dtype(), kFloat32);
  module.to(kFloat64);
  EXPECT_EQ(f(x).dtype(), kFloat64);
  EXPECT_TRUE(close(f(x), x * module.table));
  module.to(kFloat32);
  EXPECT_EQ(f(x).dtype(), kFloat32);
}

TEST(Traps, EscapedTensorIsAClearError) {
  Tensor escaped;
  Scalar number;
  auto f = compile([&](const Tensor& x) {
    escaped = x * 2;
    number = x.sum().item();
    return x + 1;
  });
  f(ones({2}));
  for (auto use : std::vector<std::function<void()>>{[&] { escaped + 1; }, [&] { escaped.to_vector<float>(); },
                                                     [&] { escaped.item(); }, [&] { f(escaped); },
                                                     [&] { escaped.add_(1); }, [&] { to_string(escaped.sum()); }})
    EXPECT_TRUE(has(error_of(use), "return it from the captured"));
  EXPECT_TRUE(has(error_of([&] { number.to_double(); }), "capture"));
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
}

TEST(Traps, EscapedTensorInAnotherCapture) {
  Tensor escaped;
  auto f = compile([&](const Tensor& x) {
    escaped = x * 2;
    return x + 1;
  });
  f(ones({2}));
  auto g = compile([&](const Tensor& x) { return x + escaped; });
  EXPECT_TRUE(has(error_of([&] { g(ones({2})); }), "traced tensor"));
}

TEST(Traps, CapturedLeafNeedsGradientLater) {
  Tensor w = ones({2});
  auto f = compile([w](const Tensor& x) { return (x * w).sum(); });
  EXPECT_FALSE(f(ones({2})).requires_grad());
  w.requires_grad_();
  f(ones({2})).backward();
  EXPECT_TRUE(close(w.grad(), ones({2})));
}

TEST(Traps, CapturedTensorGoesOutOfScope) {
  auto make = [] {
    Tensor w = wave({4});
    return compile([w](const Tensor& x) { return x + w; });
  };
  auto f = make();
  EXPECT_TRUE(close(f(ones({4})), wave({4}) + 1));
  auto g = compile([](const Tensor& x) { return x + wave({4}); });
  EXPECT_TRUE(close(g(ones({4})), wave({4}) + 1));
  EXPECT_TRUE(close(g(ones({4})), wave({4}) + 1));
}

TEST(Traps, CompiledFunctionsAreCopies) {
  auto f = compile([](const Tensor& x) { return x + 1; });
  auto g = f;
  f(ones({2}));
  g(ones({2}));
  EXPECT_EQ(programs_of(g), 1);  // copies share what was captured
}

}  // namespace
}  // namespace sinter
