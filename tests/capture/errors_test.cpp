// Mistakes: each gives a clear Error, and the compiled function stays usable. And the switches of compiler::.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common.h"

namespace sinter {
namespace {

TEST(CompileErrors, WrongShapesNameTheUsersLine) {
  std::string line;
  auto f = compile([&](const Tensor& x, const Tensor& w) {
    line = line_before(-1);
    return matmul(x, w);
  });
  Tensor w = wave({4, 4});
  f(wave({2, 4}), w);
  std::string message = error_of([&] { f(wave({2, 5}), w); });
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(has(message, "5"));
  EXPECT_TRUE(has(message, "4"));
  error_of([&] { f(wave({4}), wave({3, 3})); });
  EXPECT_TRUE(close(f(wave({2, 4}), w), matmul(wave({2, 4}), w)));
  EXPECT_EQ(programs_of(f), 1);
  EXPECT_FALSE(compiler::is_compiling());
}

TEST(CompileErrors, WrongDType) {
  auto f = compile([](const Tensor& x) { return embedding(wave({4, 2}), x); });
  f(tensor({1, 2}));
  error_of([&] { f(wave({2})); });
  EXPECT_TRUE(close(f(tensor({1, 2})), embedding(wave({4, 2}), tensor({1, 2}))));
}

TEST(CompileErrors, UndefinedAndMovedFrom) {
  std::string line;
  auto f = compile([&](const Tensor& x) {
    line = line_before(-1);
    return x + 1;
  });
  std::string message = error_of([&] { f(Tensor()); });
  EXPECT_TRUE(has(message, "undefined"));
  EXPECT_TRUE(has(message, line));
  Tensor x = ones({2}), taken = std::move(x);
  EXPECT_TRUE(has(error_of([&] { f(x); }), "undefined"));  // NOLINT: that it is moved from is the point
  EXPECT_TRUE(close(f(taken), full({2}, 2.0)));
}

TEST(CompileErrors, LeafWrittenInPlace) {
  Tensor w = ones({2}).requires_grad_();
  auto f = compile([](const Tensor& w) {
    w.add_(1);
    return w * 2;
  });
  EXPECT_TRUE(has(error_of([&] { f(w); }), "NoGradGuard"));
  EXPECT_TRUE(close(w, ones({2})));
  NoGradGuard no_grad;
  EXPECT_TRUE(close(f(w), full({2}, 4.0)));
}

TEST(CompileErrors, ErrorInsideALaterSegment) {
  std::string line;
  auto f = compile([&](const Tensor& x, const Tensor& w) {
    if (x.sum().item() > 0.0) return x;
    line = line_before(-1);
    return matmul(x, w);
  });
  Tensor bad = wave({3, 3});
  f(ones({2, 2}), bad);
  EXPECT_TRUE(has(error_of([&] { f(-ones({2, 2}), bad); }), line));
  EXPECT_TRUE(close(f(ones({2, 2}), bad), ones({2, 2})));
}

TEST(CompileErrors, BackendThatThrows) {
  static bool broken;
  broken = true;
  register_once("broken", [](const Graph&) -> GraphFunction {
    if (broken) throw_error("the backend is broken");
    return [](std::span<const TensorArg> inputs) { return TensorList{inputs[0].tensor() + 1}; };
  });
  auto f = compile([](const Tensor& x) { return x + 1; }, {.backend = "broken"});
  EXPECT_TRUE(has(error_of([&] { f(ones({2})); }), "the backend is broken"));
  broken = false;
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
}

TEST(CompileErrors, BackendFunctionThatThrows) {
  static bool broken;
  broken = false;
  register_once("breaking", [](const Graph&) -> GraphFunction {
    return [](std::span<const TensorArg> inputs) {
      check(!broken, "the device is lost");
      return TensorList{inputs[0].tensor() + 1};
    };
  });
  auto f = compile([](const Tensor& x) { return x + 1; }, {.backend = "breaking"});
  f(ones({2}));
  broken = true;
  EXPECT_TRUE(has(error_of([&] { f(ones({2})); }), "the device is lost"));
  broken = false;
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
}

TEST(CompileErrors, UnknownOptionBackendMode) {
  auto make = [](const CompileOptions& options) {
    return [options] { compile([](const Tensor& x) { return x; }, options); };
  };
  std::string message = error_of(make({.options = {{"recompile", int64_t(3)}}}));
  EXPECT_TRUE(has(message, "'recompile'"));
  EXPECT_TRUE(has(message, "recompile_limit"));
  EXPECT_TRUE(has(message, "errors_test.cpp:"));
  message = error_of(make({.backend = "inductor"}));
  EXPECT_TRUE(has(message, "'inductor'"));
  EXPECT_TRUE(has(message, "interpreter"));
  message = error_of(make({.options = {{"recheck", std::string("often")}}}));
  EXPECT_TRUE(has(message, "whole number"));
  ::setenv("SINTER_MODE", "fastest", 1);
  message = error_of(make({}));
  ::unsetenv("SINTER_MODE");
  EXPECT_TRUE(has(message, "'fastest'"));
  EXPECT_TRUE(has(message, "max-autotune"));
  make({})();
}

TEST(CompileErrors, ModeFromTheEnvironment) {
  ::setenv("SINTER_MODE", "reduce-overhead", 1);
  auto f = compile([](const Tensor& x) { return x; });
  auto g = compile([](const Tensor& x) { return x; }, {.mode = Mode::kMaxAutotune});
  ::unsetenv("SINTER_MODE");
  EXPECT_EQ(f.function().options().mode, Mode::kReduceOverhead);
  EXPECT_EQ(g.function().options().mode, Mode::kMaxAutotune);
}

TEST(CompileErrors, NullModule) {
  std::shared_ptr<nn::LinearImpl> none;
  EXPECT_TRUE(has(error_of([&] { compile(none); }), "null"));
  nn::Linear empty{nullptr};
  auto f = compile(empty);
  EXPECT_TRUE(has(error_of([&] { f(ones({2, 2})); }), "empty"));
}

// --- compiler:: ------------------------------------------------------------------------------------------------------

TEST(Compiler, Reset) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  f(ones({2}));
  f(ones({2}));
  compiler::reset();
  EXPECT_EQ(programs_of(f), 0);
  f(ones({2}));
  EXPECT_EQ(traces, 2);
}

TEST(Compiler, IsCompiling) {
  bool inside = false;
  auto f = compile([&](const Tensor& x) {
    inside = compiler::is_compiling();
    return x;
  });
  EXPECT_FALSE(compiler::is_compiling());
  f(ones({1}));
  EXPECT_TRUE(inside);
  EXPECT_FALSE(compiler::is_compiling());
}

TEST(Compiler, Disable) {
  int calls = 0;
  auto plain = compiler::disable([&](const Tensor& x) {
    ++calls;
    return std::tuple(x + 1, 2.0);
  });
  auto [y, two] = plain(ones({2}));
  EXPECT_TRUE(close(y, full({2}, 2.0)));
  auto f = compile([&](const Tensor& x) {
    auto [up, factor] = plain(x * 3);
    return up * factor;
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(full({2}, double(i))), full({2}, 6.0 * i + 2)));
  EXPECT_EQ(calls, 4);
}

TEST(Compiler, DisabledHookOfAModule) {
  nn::Linear layer(2, 2);
  std::vector<double> sums;
  auto look = compiler::disable([&](const Tensor& t) { sums.push_back(t.sum().item<double>()); });
  layer->register_forward_hook([&](nn::Module&, const TensorList&, TensorList& out) { look(out[0]); });
  auto f = compile(layer);
  std::vector<double> want;
  for (int i = 0; i < 3; ++i) want.push_back(f(wave({3, 2}, i)).sum().item<double>());
  ASSERT_EQ(sums.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(sums[i], want[i], 1e-4);
}

TEST(Compiler, GradientsThroughADisabledFunction) {
  auto square = compiler::disable([](const Tensor& x) { return x * x; });
  auto f = compile([&](const Tensor& x) { return square(x * 2) * 3; });
  Tensor x = wave({3}).requires_grad_();
  for (int i = 0; i < 2; ++i) {
    x.set_grad({});
    f(x).sum().backward();
    EXPECT_TRUE(close(x.grad(), x * 24));
  }
}

TEST(Compiler, Backends) {
  auto names = compiler::list_backends();
  for (auto* name : {"sinter", "eager", "interpreter"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1);
    auto f = compile([](const Tensor& x, const Tensor& w) { return softmax(matmul(x, w), -1); }, {.backend = name});
    Tensor x = wave({3, 4}), w = wave({4, 5}, 1).requires_grad_();
    EXPECT_TRUE(close(f(x, w), softmax(matmul(x, w), -1))) << name;
    f(x, w)[0][1].backward();
    Tensor got = w.grad();
    w.set_grad({});
    softmax(matmul(x, w), -1)[0][1].backward();
    EXPECT_TRUE(close(got, w.grad())) << name;
  }
}

TEST(Compiler, RegisteredBackendReceivesTheGraph) {
  static std::string text;
  register_once("reader", [](const Graph& graph) -> GraphFunction {
    text = graph.text();
    return [](std::span<const TensorArg> inputs) { return TensorList{tanh(inputs[0].tensor()) * 2}; };
  });
  auto names = compiler::list_backends();
  EXPECT_EQ(std::count(names.begin(), names.end(), "reader"), 1);
  auto f = compile([](const Tensor& x) { return tanh(x) * 2; }, {.backend = "reader"});
  EXPECT_TRUE(close(f(wave({3})), tanh(wave({3})) * 2));
  EXPECT_TRUE(has(text, "tanh"));
  EXPECT_TRUE(has(text, "mul"));
  error_of([] { register_backend("reader", {}); });
}

TEST(Compiler, Stances) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        return x + 1;
      },
      {.dynamic = Dynamic::kFalse, .name = "posed"});
  struct Restore {
    ~Restore() { compiler::set_stance("default"); }
  } restore;
  f(ones({2}));
  EXPECT_EQ(traces, 1);
  compiler::set_stance("force_eager");
  f(ones({2}));
  EXPECT_EQ(traces, 2);
  compiler::set_stance("eager_on_recompile");
  f(ones({2}));
  EXPECT_EQ(traces, 2);
  EXPECT_TRUE(close(f(ones({3})), full({3}, 2.0)));
  EXPECT_TRUE(close(f(ones({3})), full({3}, 2.0)));
  EXPECT_EQ(traces, 4);
  EXPECT_EQ(programs_of(f), 1);
  compiler::set_stance("fail_on_recompile");
  f(ones({2}));
  std::string message = error_of([&] { f(ones({3})); });
  EXPECT_TRUE(has(message, "posed"));
  EXPECT_TRUE(has(message, "argument 0.size(0) was 2, now 3"));
  compiler::set_stance("default");
  f(ones({3}));
  EXPECT_EQ(programs_of(f), 2);
  EXPECT_TRUE(has(error_of([] { compiler::set_stance("lazy"); }), "force_eager"));
}

TEST(Compiler, Explain) {
  std::string line;
  auto body = [&](const Tensor& x) {
    Tensor y = tanh(x) + 1;
    line = line_before(-1);
    if (y.sum().item() > 0.0) return y * 2;
    return y * 3;
  };
  auto told = compiler::explain(body, wave({4}));
  EXPECT_EQ(told.programs.size(), 1u);
  EXPECT_EQ(told.graph_count(), 2);
  EXPECT_EQ(told.break_count(), 1);
  EXPECT_GE(told.op_count(), 5);  // tanh, add, sum, a comparison, mul
  auto& found = told.programs.at(0).breaks.at(0);
  EXPECT_TRUE(found.where.ends_with(line)) << found.where;
  EXPECT_TRUE(has(found.advice, "cond()"));
  std::string text = told.text();
  for (auto* part :
       {"guards:", "argument 0 == f32, rank 1, cpu", "argument 0.size(0) == 4", "break:", "tanh", "errors_test.cpp:"})
    EXPECT_TRUE(has(text, part));
  std::ostringstream out;
  out << told;
  EXPECT_EQ(out.str(), text);
}

// --- SINTER_DEBUG, which is read once: in a process of its own ---------------------------------------------------------

TEST(DebugFiles, DISABLED_Child) {
  auto f = compile([](const Tensor& x) { return (tanh(x) * 2).sum(); }, {.name = "shown"});
  f(wave({4}).requires_grad_());
}

TEST(DebugFiles, EveryStageIsAFile) {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("sinter_debug_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  std::string self = fs::read_symlink("/proc/self/exe").string();
  std::string command = "SINTER_DEBUG=" + folder.string() + " " + self +
                        " --gtest_also_run_disabled_tests --gtest_filter='DebugFiles.DISABLED_Child' >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string names;
  for (auto& file : fs::directory_iterator(folder)) names += file.path().filename().string() + "\n";
  for (auto* part : {"shown.0.captured.txt", "shown.0.plan.txt", "shown.0.backward.plan.txt"})
    EXPECT_TRUE(has(names, part));
  std::stringstream text;
  text << std::ifstream(folder / "shown.0.captured.txt").rdbuf();
  EXPECT_TRUE(has(text.str(), "tanh"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sinter
