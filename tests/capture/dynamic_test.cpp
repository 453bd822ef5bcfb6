// Symbolic sizes: when they come about, what they promise, when they give way.
#include "common.h"

namespace sinter {
namespace {

TEST(Dynamic, TheSecondValueMakesASizeSymbolic) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return softmax(x * 2, -1).sum({0});
  });
  for (int64_t n : {3, 5, 7, 9, 2, 100}) {
    Tensor x = wave({n, 4});
    EXPECT_TRUE(close(f(x), softmax(x * 2, -1).sum({0})));
  }
  EXPECT_EQ(traces, 2);
}

TEST(Dynamic, TwoSizesInTurn) {
  int traces = 0;
  auto f = compile([&](const Tensor& a, const Tensor& b) {
    ++traces;
    return matmul(a, b);
  });
  f(wave({3, 4}), wave({4, 5}));
  f(wave({6, 4}), wave({4, 5}));
  f(wave({7, 4}), wave({4, 8}));
  EXPECT_EQ(traces, 3);
  for (int64_t n : {9, 10, 11}) {
    Tensor a = wave({n, 4}), b = wave({4, n + 3}, 1);
    EXPECT_TRUE(close(f(a, b), matmul(a, b)));
  }
  EXPECT_EQ(traces, 3);
}

TEST(Dynamic, TrueIsSymbolicFromTheStart) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x.reshape({-1}) + 1;
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {3, 5, 8}) EXPECT_TRUE(close(f(wave({n, n + 1})), wave({n * (n + 1)}) + 1));
  EXPECT_EQ(traces, 1);
}

TEST(Dynamic, FalseNeverIs) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x + 1;
      },
      {.dynamic = Dynamic::kFalse});
  for (int64_t n : {3, 5, 8, 3, 5, 8}) EXPECT_TRUE(close(f(wave({n})), wave({n}) + 1));
  EXPECT_EQ(traces, 3);
}

TEST(Dynamic, MarkedDynamic) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x.sum({0}) * 2;
  });
  for (int64_t n : {4, 8, 16}) {
    Tensor x = wave({n, 3});
    compiler::mark_dynamic(x, 0);
    EXPECT_TRUE(close(f(x), x.sum({0}) * 2));
  }
  EXPECT_EQ(traces, 1);
  f(wave({9, 3}));  // unmarked, it fits all the same
  EXPECT_EQ(traces, 1);
}

TEST(Dynamic, OutsideTheRangeIsAnotherProgram) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  Tensor x = wave({8});
  compiler::mark_dynamic(x, 0, {.min = 4, .max = 16});
  f(x);
  for (int64_t n : {4, 16, 10}) EXPECT_TRUE(close(f(wave({n})), wave({n}) + 1));
  EXPECT_EQ(traces, 1);
  for (int64_t n : {3, 17}) EXPECT_TRUE(close(f(wave({n})), wave({n}) + 1));
  EXPECT_GE(traces, 2);
  std::string message = error_of([] { compiler::mark_dynamic(wave({3}), 0, {.min = 4, .max = 16}); });
  EXPECT_TRUE(has(message, "outside [4, 16]"));
}

// A comparison that the range answers is no guard.
TEST(Dynamic, RangesAnswerComparisons) {
  auto f = compile([](const Tensor& x) { return x.size(0) >= 4 && x.size(0) < 100 ? x + 1 : x - 1; });
  Tensor x = wave({8});
  compiler::mark_dynamic(x, 0, {.min = 4, .max = 16});
  auto told = compiler::explain(f, x);
  for (auto& guard : told.programs.at(0).guards) EXPECT_EQ(guard.where, "") << guard.text;
  EXPECT_TRUE(close(f(wave({12})), wave({12}) + 1));
}

TEST(Dynamic, MarkedStatic) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  for (int64_t n : {3, 5, 7}) {
    Tensor x = wave({n});
    compiler::mark_static(x, 0);
    EXPECT_TRUE(close(f(x), x + 1));
  }
  EXPECT_EQ(traces, 3);
}

TEST(Dynamic, DimArguments) {
  int traces = 0;
  auto f = compile([&](const Tensor& x, const Dim& n) {
    ++traces;
    return x.slice(0, 0, n) * n;
  });
  Tensor x = wave({32});
  for (int64_t n : {3, 5, 7, 11}) EXPECT_TRUE(close(f(x, n), x.slice(0, 0, n) * n));
  EXPECT_EQ(traces, 2);
}

TEST(Dynamic, ComparisonsAreGuards) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x.size(0) > 10 ? x.sum() : x.amax();
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {4, 5, 6}) EXPECT_TRUE(close(f(wave({n})), wave({n}).amax()));
  EXPECT_EQ(traces, 1);
  for (int64_t n : {11, 12, 13}) EXPECT_TRUE(close(f(wave({n})), wave({n}).sum()));
  EXPECT_EQ(traces, 2);
  EXPECT_TRUE(close(f(wave({7})), wave({7}).amax()));
  EXPECT_EQ(traces, 2);
}

TEST(Dynamic, ZeroAndOneAreProgramsOfTheirOwn) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x, const Tensor& y) {
        ++traces;
        return x + y;
      },
      {.dynamic = Dynamic::kTrue});
  Tensor y = wave({1, 3});
  EXPECT_TRUE(close(f(wave({4, 3}), y), wave({4, 3}) + y));
  EXPECT_TRUE(close(f(wave({5, 3}), y), wave({5, 3}) + y));
  EXPECT_EQ(traces, 1);
  EXPECT_TRUE(close(f(wave({1, 3}), y), wave({1, 3}) + y));
  EXPECT_EQ(traces, 2);
  EXPECT_EQ(f(zeros({0, 3}), y).size(0).to_int(), 0);
  EXPECT_EQ(traces, 3);
}

TEST(Dynamic, Divisibility) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x.view({-1, 4}).sum({1});
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {8, 12, 40}) EXPECT_TRUE(close(f(wave({n})), wave({n}).view({-1, 4}).sum({1})));
  EXPECT_EQ(traces, 1);
  EXPECT_TRUE(has(error_of([&] { f(wave({10})); }), "view"));
  EXPECT_TRUE(close(f(wave({16})), wave({16}).view({-1, 4}).sum({1})));
}

TEST(Dynamic, EqualSizesThenDifferent) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& a, const Tensor& b) {
        ++traces;
        return a.unsqueeze(1) * b.unsqueeze(0);
      },
      {.dynamic = Dynamic::kTrue});
  auto expect = [&](int64_t n, int64_t m) {
    Tensor a = wave({n}), b = wave({m}, 1);
    EXPECT_TRUE(close(f(a, b), a.unsqueeze(1) * b.unsqueeze(0)));
  };
  expect(4, 4);
  expect(6, 6);
  EXPECT_EQ(traces, 1);
  expect(4, 6);
  expect(3, 9);
  EXPECT_EQ(traces, 2);
}

TEST(Dynamic, SymbolicLayouts) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x.transpose(0, 1).reshape({-1}) + 1;
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {3, 5, 6}) {
    Tensor x = wave({n, 4});
    EXPECT_TRUE(close(f(x), x.transpose(0, 1).reshape({-1}) + 1));
  }
  EXPECT_EQ(traces, 1);
  Tensor x = wave({4, 7}).t();
  EXPECT_TRUE(close(f(x), x.transpose(0, 1).reshape({-1}) + 1));
}

TEST(Dynamic, GradientsOfSymbolicSizes) {
  auto f =
      compile([](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)).sum(); }, {.dynamic = Dynamic::kTrue});
  for (int64_t n : {3, 5, 9}) {
    Tensor x = wave({n, 4}), w = wave({4, 6}, 1), u = w.clone();
    w.requires_grad_();
    u.requires_grad_();
    f(x, w).backward();
    tanh(matmul(x, u)).sum().backward();
    EXPECT_TRUE(close(w.grad(), u.grad()));
  }
  EXPECT_EQ(programs_of(f), 1);
}

TEST(Dynamic, RecompileLimitFallsBackWithOneWarning) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x, int64_t n) {
        ++traces;
        return x + n;
      },
      {.options = {{"recompile_limit", int64_t(3)}}, .name = "restless"});
  Tensor x = zeros({2});
  ::testing::internal::CaptureStderr();
  for (int64_t n = 0; n < 8; ++n) EXPECT_TRUE(close(f(x, n), full({2}, double(n))));
  std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(text, "warning"), 1) << text;
  EXPECT_TRUE(has(text, "restless"));
  EXPECT_TRUE(has(text, "argument 1 was 2, now 3"));
  EXPECT_EQ(programs_of(f), 3);
  EXPECT_EQ(traces, 3 + 5);  // the others ran eagerly
  f(x, 1);                   // what was captured is still used
  EXPECT_EQ(traces, 3 + 5);
}

TEST(Dynamic, NumbersOfASizeSpecialise) {
  int traces = 0;
  std::string line;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        line = line_before(-1);
        int64_t n = x.size(0).to_int();
        return x * double(n);
      },
      {.dynamic = Dynamic::kTrue});
  EXPECT_TRUE(close(f(wave({4})), wave({4}) * 4));
  EXPECT_TRUE(close(f(wave({5})), wave({5}) * 5));
  EXPECT_EQ(traces, 2);
  auto told = compiler::explain(f, wave({4}));
  bool listed = false;
  for (auto& guard : told.programs.at(0).guards)
    listed = listed || (guard.where.ends_with(line) && has(guard.text, "== 4"));
  EXPECT_TRUE(listed) << told;
}

TEST(Dynamic, ImplicitConversionSpecialises) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        int64_t n = x.size(0);
        Tensor sum = x[0];
        for (int64_t i = 1; i < n; ++i) sum = sum + x[i];
        return sum;
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {3, 4, 3, 4}) EXPECT_TRUE(close(f(wave({n, 2})), wave({n, 2}).sum({0})));
  EXPECT_EQ(traces, 2);
  EXPECT_TRUE(has(compiler::explain(f, wave({3, 2})).text(), "s0 == 3"));
}

}  // namespace
}  // namespace sinter
