// What compile() takes: every kind of callable, argument and result; and threads.
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "common.h"

namespace sinter {
namespace {

Tensor doubled(const Tensor& x) { return x * 2; }

struct Scaled {
  float factor = 3;
  Tensor operator()(const Tensor& x) const { return x * factor; }
};

struct Model {
  Tensor w = wave({4, 4});
  int calls = 0;
  Tensor step(const Tensor& x) {
    ++calls;
    return matmul(x, w);
  }
  Tensor peek(const Tensor& x) const { return matmul(x, w) + 1; }
};

struct NetImpl : nn::Module {
  nn::Linear first{nullptr}, second{nullptr};
  int calls = 0;
  NetImpl() {
    first = register_module("first", nn::Linear(4, 8));
    second = register_module("second", nn::Linear(8, 2));
  }
  Tensor forward(const Tensor& x) {
    ++calls;
    return second(relu(first(x)));
  }
};
SINTER_MODULE(Net);

TEST(Compile, Lambda) {
  int traces = 0;
  auto f = compile([&](const Tensor& x, const Tensor& w) {
    ++traces;
    return gelu(matmul(x, w)) + x;
  });
  Tensor x = wave({3, 4}), w = wave({4, 4}, 1);
  Tensor want = gelu(matmul(x, w)) + x;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(x, w), want));
  EXPECT_EQ(traces, 1);
  Tensor other = wave({3, 4}, 2);
  EXPECT_TRUE(close(f(other, w), gelu(matmul(other, w)) + other));
  EXPECT_EQ(traces, 1);
}

TEST(Compile, GenericLambdaIsCapturedOncePerTypes) {
  int traces = 0;
  auto f = compile([&](const auto& x, auto factor) {
    ++traces;
    return x * factor;
  });
  Tensor x = wave({3});
  EXPECT_TRUE(close(f(x, 2), x * 2));
  EXPECT_TRUE(close(f(x, 0.5), x * 0.5));
  EXPECT_EQ(traces, 2);
  EXPECT_TRUE(close(f(x, 2), x * 2));
  EXPECT_TRUE(close(f(x, 0.5), x * 0.5));
  EXPECT_EQ(traces, 2);
}

TEST(Compile, FunctionPointerAndObject) {
  Tensor x = wave({5});
  auto f = compile(doubled);
  auto g = compile(&doubled);
  auto h = compile(Scaled{});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(x), x * 2));
    EXPECT_TRUE(close(g(x), x * 2));
    EXPECT_TRUE(close(h(x), x * 3));
  }
  std::function<Tensor(const Tensor&)> erased = [](const Tensor& t) { return t + 5; };
  EXPECT_TRUE(close(compile(erased)(x), x + 5));
}

TEST(Compile, MemberFunctions) {
  Model model;
  Tensor x = wave({2, 4});
  auto step = compile(&Model::step, &model);
  auto peek = compile(&Model::peek, &model);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(step(x), matmul(x, model.w)));
    EXPECT_TRUE(close(peek(x), matmul(x, model.w) + 1));
  }
  EXPECT_EQ(model.calls, 1);
}

TEST(Compile, ModuleHolderSharedPointerReference) {
  Net net;
  Tensor x = wave({3, 4}), want = net(x);
  net->calls = 0;
  auto by_holder = compile(net);
  auto by_pointer = compile(net.ptr());
  auto by_reference = compile(*net);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(by_holder(x), want));
    EXPECT_TRUE(close(by_pointer(x), want));
    EXPECT_TRUE(close(by_reference(x), want));
  }
  EXPECT_EQ(net->calls, 3);  // one capture each
}

TEST(Compile, ModuleInPlace) {
  Net net;
  Tensor x = wave({3, 4}), want = net(x);
  net->calls = 0;
  net->compile();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(net(x), want));
  EXPECT_EQ(net->calls, 1);
  net(x).sum().backward();
  Tensor compiled_grad = net->first->weight.grad().clone();
  net->zero_grad();
  net->forward(x).sum().backward();
  EXPECT_TRUE(close(compiled_grad, net->first->weight.grad()));
}

TEST(Compile, RegionsInsideACompiledModelAreOneGraph) {
  Net net;
  Tensor x = wave({3, 4}), want = net(x);
  net->first->compile();
  auto f = compile(net);
  EXPECT_TRUE(close(f(x), want));
  auto told = compiler::explain(f, x);
  EXPECT_EQ(told.graph_count(), 1);
  EXPECT_EQ(told.break_count(), 0);
  // Eagerly called, the region alone is compiled.
  EXPECT_TRUE(close(net(x), want));
}

TEST(Compile, CompiledFunctionsInsideOneAreOneGraph) {
  int inner_traces = 0;
  auto inner = compile([&](const Tensor& x) {
    ++inner_traces;
    return tanh(x);
  });
  auto outer = compile([&](const Tensor& x) { return inner(inner(x) + 1); });
  Tensor x = wave({4});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(close(outer(x), tanh(tanh(x) + 1)));
  EXPECT_EQ(compiler::explain(outer, x).graph_count(), 1);
  EXPECT_EQ(programs_of(inner), 0);
  EXPECT_EQ(inner_traces, 2);
}

// --- arguments -------------------------------------------------------------------------------------------------------

enum class Activation { kRelu, kTanh };

struct Batch {
  Tensor hidden;
  std::optional<Tensor> mask;
  int64_t repeat = 1;
  SINTER_FIELDS(hidden, mask, repeat)
};

TEST(Compile, NumbersBoolsEnumsStrings) {
  int traces = 0;
  auto f = compile([&](const Tensor& x, int n, double scale, bool negate, Activation a, const std::string& name) {
    ++traces;
    Tensor y = x * scale + n;
    if (negate) y = -y;
    y = a == Activation::kRelu ? relu(y) : tanh(y);
    return name == "square" ? y * y : y;
  });
  Tensor x = wave({6});
  EXPECT_TRUE(close(f(x, 1, 0.5, false, Activation::kRelu, "plain"), relu(x * 0.5 + 1)));
  EXPECT_TRUE(close(f(x, 1, 0.5, true, Activation::kRelu, "plain"), relu(-(x * 0.5 + 1))));
  EXPECT_TRUE(close(f(x, 1, 0.5, true, Activation::kTanh, "plain"), tanh(-(x * 0.5 + 1))));
  EXPECT_TRUE(close(f(x, 1, 0.5, true, Activation::kTanh, "square"), square(tanh(-(x * 0.5 + 1)))));
  EXPECT_TRUE(close(f(x, 2, 0.5, true, Activation::kTanh, "square"), square(tanh(-(x * 0.5 + 2)))));
  EXPECT_TRUE(close(f(x, 2, 0.25, true, Activation::kTanh, "square"), square(tanh(-(x * 0.25 + 2)))));
  EXPECT_EQ(traces, 6);
  f(x, 2, 0.25, true, Activation::kTanh, "square");
  EXPECT_EQ(traces, 6);
}

TEST(Compile, Containers) {
  auto f = compile([](const std::vector<Tensor>& list, const std::pair<Tensor, int>& pair,
                      const std::map<std::string, Tensor>& named, const std::optional<Tensor>& maybe,
                      const std::tuple<Tensor, std::array<Tensor, 2>>& nested) {
    Tensor sum = list[0] * pair.second + pair.first;
    for (auto& t : list) sum = sum + t;
    for (auto& [name, t] : named) sum = sum + t * double(name.size());
    if (maybe) sum = sum - *maybe;
    return sum + std::get<0>(nested) * std::get<1>(nested)[1];
  });
  Tensor a = wave({3}), b = wave({3}, 1), c = wave({3}, 2);
  std::map<std::string, Tensor> named{{"x", a}, {"long", b}};
  std::tuple<Tensor, std::array<Tensor, 2>> nested{a, {b, c}};
  Tensor base = a * 4 + c + a + b + (b * 4 + a) + a * c;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f({a, b}, {c, 4}, named, std::nullopt, nested), base));
    EXPECT_TRUE(close(f({a, b}, {c, 4}, named, c, nested), base - c));
  }
  EXPECT_EQ(programs_of(f), 2);
}

TEST(Compile, StructsWithFields) {
  auto f = compile([](const Batch& in) {
    Tensor y = in.hidden * in.repeat;
    if (in.mask) y = y * *in.mask;
    return Batch{y, y + 1, in.repeat + 1};
  });
  Tensor x = wave({2, 3}), mask = wave({2, 3}, 1);
  for (int i = 0; i < 2; ++i) {
    Batch out = f({x, mask, 3});
    EXPECT_TRUE(close(out.hidden, x * 3 * mask));
    ASSERT_TRUE(out.mask.has_value());
    EXPECT_TRUE(close(*out.mask, x * 3 * mask + 1));
    EXPECT_EQ(out.repeat, 4);
  }
  EXPECT_TRUE(close(f({x, {}, 3}).hidden, x * 3));
}

TEST(Compile, DimScalarTensorArg) {
  int traces = 0;
  auto f = compile([&](const TensorArg& a, const Scalar& s, const Dim& n) {
    ++traces;
    return add(a, 1) * s + zeros({n});
  });
  Tensor x = wave({4});
  EXPECT_TRUE(close(f(x, 2.5, 4), (x + 1) * 2.5));
  EXPECT_TRUE(close(f(x, 3.5, 4), (x + 1) * 3.5));  // a Scalar is a value of the program
  EXPECT_EQ(traces, 1);
  EXPECT_TRUE(close(f(2, 1.0, 4), full({4}, 3.0)));  // a number in the place of the tensor
  EXPECT_EQ(traces, 2);
}

TEST(Compile, ArgumentsConvertToParameters) {
  auto f = compile([](const Tensor& x, double scale) { return x * scale; });
  EXPECT_TRUE(close(f(wave({2}), 2), wave({2}) * 2));
  EXPECT_EQ(programs_of(f), 1);
  f(wave({2}), 2.0f);
  EXPECT_EQ(programs_of(f), 1);
}

// --- results ---------------------------------------------------------------------------------------------------------

TEST(Compile, Results) {
  Tensor x = wave({2, 3});
  auto tuple = compile([](const Tensor& x) { return std::tuple(x + 1, x.sum(), 7, std::string("seven")); });
  auto list = compile([](const Tensor& x) { return x.unbind(0); });
  auto named = compile([](const Tensor& x) { return std::map<std::string, Tensor>{{"up", x + 1}, {"down", x - 1}}; });
  auto maybe = compile([](const Tensor& x) { return std::optional<Tensor>(x * 2); });
  auto size = compile([](const Tensor& x) { return x.size(0) * x.size(1); }, {.dynamic = Dynamic::kTrue});
  auto number = compile([](const Tensor& x) { return x.sum().item(); });
  for (int i = 0; i < 2; ++i) {
    auto [up, sum, seven, text] = tuple(x);
    EXPECT_TRUE(close(up, x + 1));
    EXPECT_TRUE(close(sum, x.sum()));
    EXPECT_EQ(seven, 7);
    EXPECT_EQ(text, "seven");
    auto rows = list(x);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_TRUE(close(rows[1], x[1]));
    EXPECT_TRUE(close(named(x).at("down"), x - 1));
    EXPECT_TRUE(close(*maybe(x), x * 2));
    EXPECT_EQ(size(x).to_int(), 6);
    EXPECT_NEAR(number(x).to_double(), x.sum().item<double>(), 1e-5);
  }
  EXPECT_EQ(size(wave({5, 4})).to_int(), 20);
  EXPECT_EQ(programs_of(size), 1);
  EXPECT_EQ(compiler::explain(number, x).break_count(), 0);
}

TEST(Compile, VoidAndUndefinedResults) {
  Tensor log = zeros({2});
  auto f = compile([&](const Tensor& x) { log.add_(x); });
  for (int i = 0; i < 3; ++i) f(ones({2}));
  EXPECT_TRUE(close(log, full({2}, 3.0)));
  auto g = compile([](const Tensor& x) { return std::pair<Tensor, Tensor>(x + 1, Tensor()); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(g(log).first.defined());
    EXPECT_FALSE(g(log).second.defined());
  }
}

TEST(Compile, ResultsAreTheCallersToKeep) {
  auto f = compile([](const Tensor& x) { return x + 1; });
  Tensor first = f(zeros({4})), second = f(ones({4}));
  EXPECT_TRUE(close(first, ones({4})));
  EXPECT_TRUE(close(second, full({4}, 2.0)));
  EXPECT_FALSE(first.is_alias_of(second));
  auto g = compile([](const Tensor& x) { return x.t().contiguous(); });
  auto h = compile([](const Tensor& x) { return x.t().clone(); });
  Tensor x = wave({2, 3}), y = wave({2, 3}, 1), gx = g(x), gy = g(y), hx = h(x), hy = h(y);
  EXPECT_TRUE(close(gx, x.t()));
  EXPECT_TRUE(gx.is_contiguous());
  EXPECT_TRUE(close(gy, y.t()));
  EXPECT_TRUE(close(hx, x.t()));
  EXPECT_EQ(hx.strides(), x.t().clone().strides());
  EXPECT_TRUE(close(hy, y.t()));
}

// --- threads ---------------------------------------------------------------------------------------------------------

TEST(Compile, ThreadsCaptureOnce) {
  std::atomic<int> traces{0};
  auto f = compile([&](const Tensor& x, const Tensor& w) {
    ++traces;
    return tanh(matmul(x, w)) + 1;
  });
  Tensor w = wave({8, 8});
  std::atomic<int> wrong{0}, ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      Tensor x = wave({4, 8}, t), want = tanh(matmul(x, w)) + 1;
      ++ready;
      while (ready < 8) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) wrong += !close(f(x, w), want);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(wrong, 0);
}

// Two calls must be inside the backend at the same time for either to go on.
TEST(Compile, CallsRunConcurrently) {
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0, wanted = 1;
    bool met = true;
  };
  static Meeting meeting;
  register_once("meeting", [](const Graph&) -> GraphFunction {
    return [](std::span<const TensorArg> inputs) {
      std::unique_lock lock(meeting.mutex);
      ++meeting.inside;
      meeting.changed.notify_all();
      meeting.met = meeting.changed.wait_for(lock, std::chrono::seconds(20), [] {
        return meeting.inside >= meeting.wanted;
      }) && meeting.met;
      return TensorList{inputs[0].tensor() + 1};
    };
  });
  auto f = compile([](const Tensor& x) { return x + 1; }, {.backend = "meeting"});
  meeting.wanted = 1;
  f(zeros({2}));
  meeting.inside = 0;
  meeting.wanted = 2;
  std::thread other([&] { f(zeros({2})); });
  EXPECT_TRUE(close(f(zeros({2})), ones({2})));
  other.join();
  EXPECT_TRUE(meeting.met);
}

// Their epilogue reads pieces of both, and stores neither as it is.
TEST(Compile, ProductsOfOneOperandInDouble) {
  Tensor w = wave({3, 4}).to(kFloat64), u = wave({3, 4}, 1).to(kFloat64), b = wave({4}, 2).to(kFloat64);
  auto f = [&](const Tensor& x) { return std::tuple(matmul(x, w) + b, matmul(x, u) + b * 2); };
  for (int64_t rows : {2, 20}) {
    Tensor x = wave({rows, 3}).to(kFloat64);
    auto [a, c] = compile(f)(x);
    auto [want_a, want_c] = f(x);
    EXPECT_TRUE(close(a, want_a, 1e-12));
    EXPECT_TRUE(close(c, want_c, 1e-12));
  }
}

}  // namespace
}  // namespace sinter
