// Tensors that host code keeps when a compiled function has returned: tables built at the first call become real, what
// depends on the arguments is an Error.
#include "common.h"

namespace sinter {
namespace {

// Cosines of positions times frequencies, built when first needed and again when more are.
struct RotaryImpl : nn::Module {
  Tensor frequencies, table;
  explicit RotaryImpl(int64_t dims) { frequencies = register_buffer("frequencies", exp(-arange(0, dims))); }
  Tensor forward(const Tensor& x) {
    int64_t length = x.size(0);
    if (!table.defined() || int64_t(table.size(0)) < length)
      table = cos(outer(arange_of_size(length, kFloat32), frequencies));
    return x * table.slice(0, 0, length);
  }
};
SINTER_MODULE(Rotary);

TEST(Tables, ACacheInAMemberIsBuiltOnceAndReal) {
  for (Dynamic dynamic : {Dynamic::kFalse, Dynamic::kAuto, Dynamic::kTrue}) {
    Rotary plain(4), module(4);
    auto fast = compile(module, {.dynamic = dynamic});
    for (int64_t length : {3, 3, 5, 2, 7, 7, 6}) {
      EXPECT_TRUE(close(fast(wave({length, 4})), plain(wave({length, 4}))));
      ASSERT_FALSE(module->table.is_traced());
      EXPECT_TRUE(close(module->table, plain->table));
    }
  }
}

TEST(Tables, NoMoreProgramsOnceItIsBuilt) {
  Rotary module(4);
  auto fast = compile(module);
  Tensor x = wave({3, 4});
  for (int i = 0; i < 5; ++i) fast(x);
  EXPECT_EQ(programs_of(fast), 1);
  // It is captured: what is written into it is seen.
  module->table.fill_(2);
  EXPECT_TRUE(close(fast(x), x * 2));
  EXPECT_EQ(programs_of(fast), 1);
}

TEST(Tables, AStatic) {
  auto function = [](const Tensor& x) {
    static Tensor table = arange(0, 3).to(kFloat32) * 2;
    return x + table;
  };
  auto f = compile(function);
  Tensor want = wave({3}) + arange(0, 3).to(kFloat32) * 2;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(wave({3})), want));
  EXPECT_TRUE(close(function(wave({3})), want));
  auto other = compile([&](const Tensor& x) { return function(x) * 2; });
  EXPECT_TRUE(close(other(wave({3})), want * 2));
}

TEST(Tables, HostNumbersAsATable) {
  Tensor table;
  auto f = compile([&](const Tensor& x) {
    if (!table.defined()) table = tensor({1.0f, 2.0f, 3.0f});
    return x * table;
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(ones({3})), tensor({1.0f, 2.0f, 3.0f})));
  EXPECT_TRUE(same(table, tensor({1.0f, 2.0f, 3.0f})));
}

TEST(Tables, AViewOfOneAndOneThatIsDetached) {
  Tensor row, half;
  auto f = compile([&](const Tensor& x) {
    if (!row.defined()) {
      Tensor all = arange(0, 6).to(kFloat32).view({2, 3});
      row = all[1];
      half = (all * 0.5).detach()[0];
    }
    return x + row + half;
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(zeros({3})), tensor({3.0f, 4.5f, 6.0f})));
  EXPECT_EQ(row.storage_offset(), 3);
  EXPECT_TRUE(close(half, tensor({0.0f, 0.5f, 1.0f})));
}

TEST(Tables, OfATensorThatLaterChangesKeepsItsValues) {
  Tensor source = ones({3}), table;
  auto f = compile([&](const Tensor& x) {
    if (!table.defined()) table = source * 2;
    return x + table;
  });
  EXPECT_TRUE(same(f(zeros({3})), full({3}, 2.0)));
  source.fill_(9);
  EXPECT_TRUE(same(f(zeros({3})), full({3}, 2.0)));
}

TEST(Tables, OfRandomNumbersIsDrawnOnce) {
  Tensor noise, eager_noise;
  auto step = [](Tensor& kept, const Tensor& x) {
    Tensor first = rand({3});
    if (!kept.defined()) kept = randn({3});
    return x + first + kept + rand({3});
  };
  auto f = compile([&](const Tensor& x) { return step(noise, x); });
  manual_seed(4);
  TensorList got;
  for (int i = 0; i < 3; ++i) got.push_back(f(ones({3})));
  manual_seed(4);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(got[size_t(i)], step(eager_noise, ones({3}))));
  EXPECT_TRUE(close(noise, eager_noise));
}

TEST(Tables, WhatIsMadeAndWrittenInEachCallIsFresh) {
  auto f = compile([](const Tensor& x) {
    Tensor total = zeros({3});
    total.add_(x);
    return total;
  });
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(same(f(full({3}, double(i))), full({3}, double(i))));
}

TEST(Tables, ACounterMadeAtTheFirstCallGoesOn) {
  Tensor count;
  auto f = compile([&](const Tensor& x) {
    if (!count.defined()) count = zeros({1});
    count.add_(1);
    return x * count;
  });
  for (int i = 1; i < 5; ++i) EXPECT_TRUE(same(f(ones({1})), full({1}, double(i))));
  EXPECT_TRUE(same(count, full({1}, 4.0)));
}

TEST(Tables, ASymbolicSizeIsThatOfTheCall) {
  Tensor positions;
  auto f = compile(
      [&](const Tensor& x) {
        auto n = x.size(0);
        if (!positions.defined() || positions.size(0) < n) positions = arange(n, kFloat32);
        return x + positions.slice(0, 0, n);
      },
      {.dynamic = Dynamic::kTrue});
  for (int64_t n : {4, 3, 6, 5, 6}) EXPECT_TRUE(close(f(zeros({n})), arange(n, kFloat32)));
  EXPECT_TRUE(close(positions, arange(6, kFloat32)));
}

TEST(Tables, BesideABreak) {
  Tensor before, after;
  auto f = compile([&](const Tensor& x) {
    if (!before.defined()) before = full({3}, 2.0);
    Tensor y = x * before;
    if (y.sum().item() > 0.0) {
      if (!after.defined()) after = before + 1;
      return y + after;
    }
    return y;
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same(f(ones({3})), full({3}, 5.0)));
    EXPECT_TRUE(same(f(-ones({3})), full({3}, -2.0)));
  }
  EXPECT_TRUE(same(before, full({3}, 2.0)));
  EXPECT_TRUE(same(after, full({3}, 3.0)));
}

TEST(Tables, BuiltBeforeTheFunctionFails) {
  for (Dynamic dynamic : {Dynamic::kFalse, Dynamic::kTrue}) {
    Tensor table;
    bool fail = true;
    auto f = compile(
        [&](const Tensor& x) {
          if (!table.defined()) table = full({3}, 4.0);
          if (fail) throw std::runtime_error("later");
          return x + table;
        },
        {.dynamic = dynamic});
    EXPECT_THROW(f(ones({3})), std::runtime_error);
    EXPECT_TRUE(same(table, full({3}, 4.0)));
    fail = false;
    EXPECT_TRUE(same(f(ones({3})), full({3}, 5.0)));
  }
}

TEST(Tables, BuiltByAWarmup) {
  Tensor table, other;
  auto f = compile([&](const Tensor& x) {
    if (!table.defined()) table = full({3}, 4.0);
    return x + table;
  });
  warmup(f, std::tuple{ones({3})});
  EXPECT_TRUE(same(table, full({3}, 4.0)));
  int before = programs_of(f);
  EXPECT_TRUE(same(f(ones({3})), full({3}, 5.0)));
  EXPECT_EQ(programs_of(f), before);

  auto g = compile([&](const Tensor& x) {
    if (!other.defined()) other = full({3}, 4.0);
    return x.sum().item() > 0.0 ? x + other : x;
  });
  warmup(g, std::tuple{ones({3})});
  EXPECT_TRUE(same(other, full({3}, 4.0)));
  EXPECT_TRUE(same(g(ones({3})), full({3}, 5.0)));
}

TEST(Tables, WithAHistory) {
  Tensor w = ones({3}).requires_grad_(), doubled;
  auto f = compile([&](const Tensor& x) {
    if (!doubled.defined()) doubled = w * 2;
    return (x * doubled).sum();
  });
  f(full({3}, 5.0)).backward();
  EXPECT_TRUE(same(w.grad(), full({3}, 10.0)));
}

TEST(Tables, WhatDependsOnTheArgumentsIsAnErrorWithItsLine) {
  Tensor state = zeros({3});
  std::string line;
  auto f = compile([&](const Tensor& x) {
    state = state * 0.5 + x;
    line = line_before();
    return state + 1;
  });
  EXPECT_TRUE(same(f(ones({3})), full({3}, 2.0)));
  // Not silently with the state of the first call.
  std::string message = error_of([&] { f(ones({3})); });
  EXPECT_TRUE(has(message, "made at "));
  EXPECT_TRUE(has(message, "/tests/capture/" + line));
  EXPECT_TRUE(has(message, "return it from the captured function"));
  state = zeros({3});
  EXPECT_TRUE(same(f(full({3}, 4.0)), full({3}, 5.0)));
}

TEST(Tables, WhatIsKeptAndNeverUsedLeavesResultsRight) {
  TensorList seen;
  nn::Linear layer(2, 2);
  layer->register_forward_hook(
      [&](nn::Module&, const TensorList&, TensorList& outputs) { seen.push_back(outputs[0]); });
  auto f = compile(layer, {.options = {{"recompile_limit", 2}}});
  Tensor x = wave({3, 2});
  Tensor want = matmul(x, layer->weight.t()) + layer->bias;
  std::string log = logged("", [&] {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(close(f(x), want));
  });
  EXPECT_TRUE(has(log, "which depends on the arguments"));
  EXPECT_TRUE(close(seen.back(), want));  // eagerly in the end
}

TEST(Tables, WhereTheFunctionIsCalledEveryTimeAllIsKept) {
  Tensor state = zeros({3}), eager_state = zeros({3});
  auto step = [](Tensor& kept, const Tensor& x) {
    kept = kept * 0.5 + x;
    kept.data_ptr();
    return kept + 1;
  };
  auto f = compile([&](const Tensor& x) { return step(state, x); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(close(f(full({3}, double(i))), step(eager_state, full({3}, double(i)))));
    EXPECT_TRUE(close(state, eager_state));
  }
}

// A tensor that is made in every call is right too; it is no longer captured when that has been tried often enough.
TEST(Tables, MadeAnewInEveryCall) {
  Tensor mask;
  auto f = compile(
      [&](const Tensor& x) {
        mask = zeros({3});
        return x + mask;
      },
      {.options = {{"recompile_limit", 3}}, .name = "masked"});
  std::string log = logged("", [&] {
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(same(f(ones({3})), ones({3})));
  });
  EXPECT_TRUE(has(log, "host code keeps a tensor made at"));
  EXPECT_FALSE(mask.is_traced());
}

}  // namespace
}  // namespace sinter
