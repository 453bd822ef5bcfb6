// Questions that only the host can answer: what they cost, that answers stay right, how they are explained.
#include <sstream>

#include "common.h"

namespace sinter {
namespace {

TEST(Breaks, ComparisonHasTwoEdges) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    Tensor y = x * 2;
    if (y.sum().item() > 1.0) return y + 100;
    return y - 100;
  });
  Tensor high = ones({3}), low = -ones({3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(f(high), high * 2 + 100));
    EXPECT_TRUE(close(f(low), low * 2 - 100));
    EXPECT_TRUE(close(f(high * (i + 2)), high * (i + 2) * 2 + 100));
  }
  EXPECT_EQ(traces, 2);
  auto told = compiler::explain(f, high);
  EXPECT_EQ(told.graph_count(), 3);  // one before, one a branch
  EXPECT_EQ(told.break_count(), 1);
}

TEST(Breaks, TruthOfATensor) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    if ((x.sum() > 0).item<bool>()) return x * 2;
    return x * 3;
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
    EXPECT_TRUE(close(f(-ones({2})), full({2}, -3.0)));
  }
  EXPECT_EQ(traces, 2);
}

TEST(Breaks, HostAlgorithms) {
  auto f = compile([](const Tensor& x, const Tensor& y) { return x.allclose(y) ? x + y : x - y; });
  Tensor x = wave({3});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(x, x.clone()), x * 2));
    EXPECT_TRUE(close(f(x, x + 1), full({3}, -1.0)));
  }
}

TEST(Breaks, ValuesAreEdgesUntilTheFunctionIsFollowed) {
  int traces = 0;
  auto f = compile(
      [&](const Tensor& x) {
        ++traces;
        float peak = x.amax().item<float>();
        return x * double(peak) + 1;
      },
      {.options = {{"edge_limit", int64_t(3)}}});
  auto expect = [&](double v) { EXPECT_TRUE(close(f(full({2}, v)), full({2}, v * v + 1))) << v; };
  for (double v : {1.0, 2.0, 1.0, 2.0}) expect(v);
  EXPECT_EQ(traces, 2);
  for (double v : {3.0, 4.0, 5.0, 6.0, 1.0, 3.0, 7.0}) expect(v);
  EXPECT_GT(traces, 6);
  auto told = compiler::explain(f, ones({2}));
  EXPECT_TRUE(has(told.programs.at(0).note, "called every time"));
}

TEST(Breaks, NumbersFedBackStayInTheGraph) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    Scalar peak = x.amax().item();
    return x / peak + 2 * peak;
  });
  for (double v : {1.0, 2.0, 3.0, 4.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, 1 + 2 * v)));
  EXPECT_EQ(traces, 1);
  auto told = compiler::explain(f, ones({2}));
  EXPECT_EQ(told.break_count(), 0);
  EXPECT_EQ(told.graph_count(), 1);
}

// --- host code that reads memory -------------------------------------------------------------------------------------

TEST(Breaks, DataPointerIsFollowed) {
  int traces = 0;
  std::vector<float> seen;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    Tensor y = x * 2;
    seen.push_back(y.data_ptr<float>()[0]);
    return y + 1;
  });
  for (double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, 2 * v + 1)));
  EXPECT_EQ(seen, (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(traces, 3);
  EXPECT_TRUE(has(compiler::explain(f, ones({2})).text(), "data_ptr"));
}

TEST(Breaks, HostNumbersOfAFollowedFunctionAreThoseOfTheCall) {
  auto f = compile([](const Tensor& x) {
    double first = (x * 2).to_vector<double>()[0];
    return std::tuple(x + 1, first, std::to_string(int(first)), tensor({first}) + x);
  });
  for (double v : {1.0, 2.0, 3.0, 1.0}) {
    auto [y, first, text, sum] = f(full({1}, v));
    EXPECT_TRUE(close(y, full({1}, v + 1)));
    EXPECT_EQ(first, 2 * v);
    EXPECT_EQ(text, std::to_string(int(2 * v)));
    EXPECT_TRUE(close(sum, full({1}, 3 * v)));
  }
}

TEST(Breaks, WritesThroughADataPointerAreSeen) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x * 2;
    y.data_ptr<float>()[0] = 50;
    return y + 1;
  });
  for (double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(close(f(full({2}, v)), tensor({51.0, 2 * v + 1})));
}

TEST(Breaks, WritesThroughThePointerOfAConstant) {
  auto body = [](const Tensor& x) {
    Tensor t = tensor({1.0, 2.0});
    t.data_ptr<float>()[1] = 5;
    Tensor y = t + x;
    t.data_ptr<float>()[0] = 9;
    return y + t;
  };
  auto f = compile(body);
  for (double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(close(f(full({2}, v)), body(full({2}, v))));
}

TEST(Breaks, PrintingIsFollowed) {
  std::ostringstream out;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x + 1;
    out << y << ";";
    return y * 2;
  });
  std::ostringstream want;
  for (double v : {1.0, 2.0, 3.0}) {
    EXPECT_TRUE(close(f(full({2}, v)), full({2}, (v + 1) * 2)));
    want << full({2}, v) + 1 << ";";
  }
  EXPECT_EQ(out.str(), want.str());
}

TEST(Breaks, ToVectorIsFollowed) {
  auto f = compile([](const Tensor& x) {
    double most = 0;
    for (double v : (x * 2).to_vector<double>()) most = std::max(most, v);
    return x + most;
  });
  for (double v : {1.0, 2.0, 3.0, 1.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, 3 * v)));
}

TEST(Breaks, DlpackIsFollowed) {
  auto f = compile([](const Tensor& x) {
    Tensor same = from_dlpack(to_dlpack(x * 2));
    return same + 1;
  });
  for (double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, 2 * v + 1)));
}

// --- sizes that the data decides -------------------------------------------------------------------------------------

TEST(Breaks, DataDependentSizesContinue) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    Tensor kept = masked_select(x, x > 0);
    return std::tuple(kept * 2, nonzero(x > 0).sum(), kept.size(0));
  });
  for (double shift : {0.0, 1.0, 2.0, 3.0}) {
    Tensor x = wave({9}, shift), kept = masked_select(x, x > 0);
    auto [doubled, places, count] = f(x);
    EXPECT_TRUE(close(doubled, kept * 2));
    EXPECT_TRUE(close(places, nonzero(x > 0).sum()));
    EXPECT_EQ(count.to_int(), kept.size(0).to_int());
  }
  EXPECT_EQ(traces, 1);
}

TEST(Breaks, UniqueContinues) {
  auto f = compile([](const Tensor& x) { return std::get<0>(unique(x)) * 10; });
  for (auto& x : {tensor({3, 1, 3, 2}), tensor({5, 5, 5, 5}), tensor({1, 2, 3, 4})})
    EXPECT_TRUE(close(f(x), std::get<0>(unique(x)) * 10));
}

TEST(Breaks, BooleanMaskIndexing) {
  auto f = compile([](const Tensor& x) { return x.index({x > 0}).sum(); });
  for (double shift : {0.0, 1.0, 2.0}) {
    Tensor x = wave({9}, shift);
    EXPECT_TRUE(close(f(x), x.index({x > 0}).sum()));
  }
}

TEST(Breaks, SizeThatTheDataDecidesAsANumber) {
  auto f = compile([](const Tensor& x) {
    Tensor kept = masked_select(x, x > 0);
    int64_t n = kept.size(0);
    return n > 2 ? kept.sum() : zeros({});
  });
  for (auto& x : {ones({4}), tensor({1.0, -1.0, -1.0, 1.0}), -ones({4}), ones({4}) * 2}) {
    Tensor kept = masked_select(x, x > 0);
    EXPECT_TRUE(close(f(x), kept.size(0).to_int() > 2 ? kept.sum() : zeros({})));
  }
}

TEST(Breaks, LoopWithATripCountOfTheData) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    Tensor y = x;
    while (y.amax().item() > 1.0) y = y / 2;
    return y;
  });
  for (double v : {1.0, 8.0, 3.0, 8.0, 0.5, 5.0}) {
    double want = v;
    while (want > 1) want /= 2;
    EXPECT_TRUE(close(f(full({2}, v)), full({2}, want)));
  }
  EXPECT_LE(traces, 4);
}

TEST(Breaks, LoopOverAnIntegerOfTheData) {
  auto f = compile([](const Tensor& x, const Tensor& n) {
    Tensor y = x;
    for (int64_t i = 0; i < n.item<int64_t>(); ++i) y = y + x;
    return y;
  });
  for (int64_t n : {0, 3, 1, 3, 2}) EXPECT_TRUE(close(f(ones({2}), tensor(n)), full({2}, double(n + 1))));
}

// --- fullgraph -------------------------------------------------------------------------------------------------------

TEST(Breaks, FullgraphErrorsSayWhatWhereAndWhatToDo) {
  CompileOptions fullgraph{.fullgraph = true, .name = "whole"};
  std::string line;
  auto by_truth = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        if (x.sum().item() > 0.0) return x + 1;
        return x;
      },
      fullgraph);
  std::string message = error_of([&] { by_truth(ones({2})); });
  EXPECT_TRUE(has(message, "whole"));
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(has(message, "truth value"));
  EXPECT_TRUE(has(message, "where()"));

  auto by_number = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        return x * x.sum().item<double>();
      },
      fullgraph);
  message = error_of([&] { by_number(ones({2})); });
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(has(message, "lazy"));

  auto by_memory = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        return x * double(x.data_ptr<float>()[0]);
      },
      fullgraph);
  message = error_of([&] { by_memory(ones({2})); });
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(has(message, "data_ptr"));
  EXPECT_TRUE(has(message, "compiler::disable"));

  auto by_size = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        return nonzero(x) + 1;
      },
      fullgraph);
  message = error_of([&] { by_size(ones({2})); });
  EXPECT_TRUE(has(message, line));
  EXPECT_TRUE(has(message, "nonzero"));
}

TEST(Breaks, FullgraphAllowsWhatDoesNotBreak) {
  auto f = compile([](const Tensor& x) { return x / x.amax().item(); }, {.fullgraph = true});
  EXPECT_TRUE(close(f(full({2}, 4.0)), ones({2})));
}

// The number is an attribute, so that it is asked for: before the operand is looked up in the segment that this ends.
TEST(Breaks, NumbersThatAreAttributesAreAskedForFirst) {
  auto f = compile([](const Tensor& x) { return constant_pad_nd(x * 2, {1, 0}, x.sum().item()) + 1; });
  for (double v : {1.0, 2.0, 1.0}) EXPECT_TRUE(close(f(full({2}, v)), cat({full({1}, 2 * v + 1), full({2}, 2 * v + 1)})));
}

// A number takes less part in promotion than a tensor of one element, which it is inside the program.
TEST(Breaks, NumbersOfTheProgramPromoteAsNumbersDo) {
  const std::vector<DType> dtypes = {kInt32, kInt64, kBFloat16, kFloat32, kFloat64};
  auto of_item = [](const Tensor& x, const Tensor& y) {
    Scalar n = y.amax().item();
    return TensorList{x * n, n - x, x == n, where(x > 0, x, n)};
  };
  auto of_size = [](const Tensor& x, const Tensor& y) {
    return TensorList{x * y.size(0), where(x > 0, x, TensorArg(y.size(0)))};
  };
  for (auto& f : std::vector<std::function<TensorList(const Tensor&, const Tensor&)>>{of_item, of_size})
    for (DType from : dtypes)
      for (DType with : dtypes)
        for (const Shape& shape : {Shape{}, Shape{3}}) {
          auto fast = compile(f, {.dynamic = Dynamic::kTrue});
          Tensor y = tensor({0.3, 2.7, 1.1}).to(from), x = full(shape, 1.7).to(with);
          TensorList want = f(x, y), got = fast(x, y);
          for (size_t i = 0; i < want.size(); ++i) {
            EXPECT_EQ(got[i].dtype(), want[i].dtype()) << with << " of rank " << shape.size() << " with " << from << " " << i;
            EXPECT_TRUE(equal(got[i].to(kFloat64), want[i].to(kFloat64))) << with << " " << shape << " with " << from << " " << i;
          }
        }
}

// What it wrote before it threw is a piece of its own, but no end that another call may come to.
TEST(Breaks, AFunctionThatThrowsBehindOneThrowsAgain) {
  Tensor state = zeros({2});
  auto f = [state](const Tensor& x, const Scalar& s) {
    if (!(s > 0.5)) return x + 1;
    state.add_(1);
    return x + state;  // fits two elements only
  };
  auto fast = compile(f, {.dynamic = Dynamic::kTrue});
  EXPECT_TRUE(close(fast(ones({4}), 0.0), full({4}, 2.0)));
  for (int64_t n : {5, 3, 7}) EXPECT_THROW(fast(ones({n}), 1.0), Error) << n;
  EXPECT_TRUE(close(state, full({2}, 3.0)));
  EXPECT_TRUE(close(fast(ones({2}), 1.0), full({2}, 5.0)));
}

TEST(Breaks, AreLogged) {
  auto f = compile([](const Tensor& x) { return x.sum().item() > 0.0 ? x : -x; }, {.name = "asker"});
  std::string text = logged("breaks", [&] { f(ones({2})); });
  EXPECT_TRUE(has(text, "asker"));
  EXPECT_TRUE(has(text, "breaks_test.cpp:"));
}

// --- breaks inside larger things -------------------------------------------------------------------------------------

struct GateImpl : nn::Module {
  nn::Linear small{nullptr}, large{nullptr};
  GateImpl() {
    small = register_module("small", nn::Linear(3, 3));
    large = register_module("large", nn::Linear(3, 3));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = tanh(x);
    if (y.sum().item() > 0.0) return large(y);
    return small(y);
  }
};
SINTER_MODULE(Gate);

TEST(Breaks, InsideAModuleWithGradients) {
  Gate gate;
  nn::Sequential net(nn::Linear(3, 3), gate, nn::Linear(3, 1));
  auto f = compile(net);
  for (double sign : {1.0, -1.0, 1.0, -1.0}) {
    Tensor x = ones({2, 3}) * sign;
    net->zero_grad();
    f(x).sum().backward();
    TensorList got;
    for (auto& p : net->parameters()) got.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
    Tensor value = f(x);
    net->zero_grad();
    Tensor want = net->forward(x);
    want.sum().backward();
    EXPECT_TRUE(close(value, want));
    auto parameters = net->parameters();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(close(got[i], parameters[i].grad())) << i;
  }
}

TEST(Breaks, GradientsCrossABreak) {
  auto f = compile([](const Tensor& x, const Tensor& w) {
    Tensor y = tanh(x * w);
    double scale = y.sum().item() > 0.0 ? 2 : 3;
    return (y * scale + w).sum();
  });
  for (double sign : {1.0, -1.0, 1.0}) {
    Tensor x = ones({3}) * sign, w = wave({3}) + 2, u = w.clone();
    w.requires_grad_();
    u.requires_grad_();
    f(x, w).backward();
    Tensor y = tanh(x * u);
    (y * (sign > 0 ? 2 : 3) + u).sum().backward();
    EXPECT_TRUE(close(w.grad(), u.grad()));
  }
}

TEST(Breaks, WritesBeforeABreak) {
  auto f = compile([](const Tensor& state, const Tensor& x) {
    state.add_(x);
    if (state.sum().item() > 4.0) state.mul_(0.5);
    return state + 1;
  });
  Tensor state = zeros({2}), mirror = zeros({2});
  for (int i = 0; i < 6; ++i) {
    Tensor got = f(state, ones({2}));
    mirror.add_(1);
    if (mirror.sum().item<double>() > 4) mirror.mul_(0.5);
    EXPECT_TRUE(close(state, mirror));
    EXPECT_TRUE(close(got, mirror + 1));
  }
}

TEST(Breaks, TwoInARow) {
  int traces = 0;
  auto f = compile([&](const Tensor& x, const Tensor& y) {
    ++traces;
    Tensor out = x + y;
    if (x.sum().item() > 0.0) out = out * 2;
    if (y.sum().item() > 0.0) out = out + 10;
    return out;
  });
  Tensor p = ones({1}), n = -ones({1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(p, p), full({1}, 14.0)));
    EXPECT_TRUE(close(f(p, n), full({1}, 0.0)));
    EXPECT_TRUE(close(f(n, p), full({1}, 10.0)));
    EXPECT_TRUE(close(f(n, n), full({1}, -2.0)));
  }
  EXPECT_EQ(traces, 4);
}

// --- control flow in the graph ---------------------------------------------------------------------------------------

TEST(Breaks, CondIsNone) {
  auto f = compile(
      [](const Tensor& x, const Tensor& w) {
        return cond(
                   x.sum() > 0, [&](const Tensor& t) { return t * w; }, [](const Tensor& t) { return t - 1; }, x) +
               1;
      },
      {.fullgraph = true});
  for (double sign : {1.0, -1.0, 1.0}) {
    Tensor x = ones({3}) * sign, w = wave({3}), y = x.clone(), v = w.clone();
    for (auto& t : {x, w, y, v}) t.requires_grad_();
    Tensor got = f(x, w);
    Tensor want = sign > 0 ? y * v + 1 : y - 1 + 1;
    EXPECT_TRUE(close(got, want));
    got.sum().backward();
    want.sum().backward();
    EXPECT_TRUE(close(x.grad(), y.grad()));
    EXPECT_TRUE(close(w.grad(), sign > 0 ? v.grad() : zeros({3})));
  }
  EXPECT_EQ(programs_of(f), 1);
}

TEST(Breaks, WhileLoopIsNone) {
  auto f = compile(
      [](const Tensor& x) {
        return while_loop([](const Tensor& z, const Tensor&) { return z.amax() > 1; },
                          [](const Tensor& z, const Tensor& n) { return std::tuple(z / 2, n + 1); }, x, tensor(0));
      },
      {.fullgraph = true});
  for (double v : {1.0, 8.0, 3.0}) {
    auto [z, n] = f(full({2}, v));
    double want = v;
    int64_t steps = 0;
    for (; want > 1; want /= 2) ++steps;
    EXPECT_TRUE(close(z, full({2}, want)));
    EXPECT_EQ(n.item<int64_t>(), steps);
  }
}

TEST(Breaks, DisabledFunctionRunsEveryTime) {
  int host_calls = 0;
  auto host = compiler::disable([&](const Tensor& x) {
    ++host_calls;
    EXPECT_FALSE(compiler::is_compiling());
    EXPECT_FALSE(x.is_traced());
    return x * x.to_vector<double>()[0];
  });
  auto f = compile([&](const Tensor& x) { return host(x + 1) + 1; });
  for (double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(close(f(full({2}, v)), full({2}, (v + 1) * (v + 1) + 1)));
  EXPECT_EQ(host_calls, 3);
}

}  // namespace
}  // namespace sinter
