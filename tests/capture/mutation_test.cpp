// Writes in captured programs: to locals, arguments, captured tensors and views of them; results that alias.
#include "common.h"
#include "sinter/runtime/cpu/memory.h"

namespace sinter {
namespace {

// Calls the function eagerly and compiled on equal arguments, several times; results and arguments must agree.
template <class F, class... T>
void expect_same_effects(F f, const T&... given) {
  auto compiled = compile(f);
  TensorList eager{given.clone()...}, fast{given.clone()...};
  for (int call = 0; call < 3; ++call) {
    auto on = [&](auto& function, TensorList& args) {
      return [&]<size_t... I>(std::index_sequence<I...>) { return function(args[I]...); }
      (std::make_index_sequence<sizeof...(T)>());
    };
    Tensor want = on(f, eager), got = on(compiled, fast);
    EXPECT_TRUE(close(got, want)) << "call " << call;
    for (size_t i = 0; i < eager.size(); ++i)
      EXPECT_TRUE(close(fast[i], eager[i])) << "argument " << i << ", call " << call;
  }
  EXPECT_EQ(programs_of(compiled), 1);
}

TEST(Mutation, Locals) {
  expect_same_effects(
      [](const Tensor& x) {
        Tensor y = x * 2;
        y.add_(1).mul_(3).sub_(x).div_(2);
        y.relu_();
        y += x;
        y *= 2;
        y.clamp_(-1, 1);
        return y;
      },
      wave({4, 3}));
}

TEST(Mutation, SliceAssignment) {
  expect_same_effects(
      [](const Tensor& x) {
        Tensor y = zeros({4, 3});
        y[0] = x[1];
        y.slice(0, 1, 3) = x.slice(0, 0, 2);
        y.slice(1, 2) = 7;
        y.index_put_({Slice(3), 0}, full({1}, 9.0));
        y.select(1, 1).add_(100);
        y.t()[0].mul_(2);
        return y;
      },
      wave({4, 3}));
}

TEST(Mutation, Arguments) {
  expect_same_effects(
      [](const Tensor& x, const Tensor& y) {
        Tensor before = x + 0;
        x.add_(y);
        y.copy_(before);
        return x * y;
      },
      wave({4, 3}), wave({4, 3}, 1));
}

TEST(Mutation, ThroughViewsOfArguments) {
  expect_same_effects(
      [](const Tensor& x) {
        Tensor row = x[1], column = x.select(1, 0);
        column.add_(1);
        row.mul_(2);  // sees what the other view wrote
        Tensor flat = x.view({-1});
        flat.slice(0, 0, 2) = -5;
        return row + column.slice(0, 0, 3);
      },
      wave({4, 3}));
}

TEST(Mutation, IndexWrites) {
  expect_same_effects(
      [](const Tensor& x, const Tensor& index, const Tensor& source) {
        x.index_copy_(0, index, source);
        x.index_add_(0, index, source);
        x.scatter_add_(0, index.unsqueeze(1).expand({2, 3}), source);
        x.masked_fill_(x > 1, 0.5);
        return x.sum();
      },
      wave({4, 3}), tensor({2, 0}), wave({2, 3}, 1));
}

TEST(Mutation, CapturedTensors) {
  Tensor state = zeros({3});
  auto f = compile([&](const Tensor& x) {
    state.add_(x);
    return state * 10;
  });
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(close(f(ones({3})), full({3}, 10.0 * i)));
    EXPECT_TRUE(close(state, full({3}, double(i))));
  }
  EXPECT_EQ(programs_of(f), 1);
}

TEST(Mutation, ViewArgumentLeavesTheRestAlone) {
  auto f = compile([](const Tensor& x) {
    x.mul_(2);
    return x + 1;
  });
  Tensor large = wave({6, 5}), mirror = large.clone();
  for (int i = 0; i < 2; ++i) {
    f(large.slice(0, 2, 4));
    mirror.slice(0, 2, 4).mul_(2);
    f(large.slice(1, 1, 3));
    mirror.slice(1, 1, 3).mul_(2);
    f(large.slice(0, 0, 6, 2).t());
    mirror.slice(0, 0, 6, 2).mul_(2);
    EXPECT_TRUE(close(large, mirror));
  }
}

TEST(Mutation, OverlappingArguments) {
  auto body = [](const Tensor& a, const Tensor& b) {
    a.add_(1);
    Tensor seen = b * 2;
    b.mul_(3);
    return seen + a;
  };
  auto f = compile(body);
  Tensor one = wave({8}), two = one.clone();
  for (int i = 0; i < 3; ++i) {
    Tensor got = f(one.slice(0, 0, 5), one.slice(0, 3, 8)), want = body(two.slice(0, 0, 5), two.slice(0, 3, 8));
    EXPECT_TRUE(close(got, want));
    EXPECT_TRUE(close(one, two));
  }
  // The same shapes without overlap are another program.
  Tensor a = wave({5}), b = wave({5}, 1), c = a.clone(), d = b.clone();
  EXPECT_TRUE(close(f(a, b), body(c, d)));
  EXPECT_TRUE(close(a, c));
  EXPECT_TRUE(close(b, d));
  // And so is another overlap.
  EXPECT_TRUE(close(f(one.slice(0, 0, 5), one.slice(0, 1, 6)), body(two.slice(0, 0, 5), two.slice(0, 1, 6))));
  EXPECT_TRUE(close(one, two));
}

TEST(Mutation, SameTensorTwice) {
  auto body = [](const Tensor& a, const Tensor& b) {
    a.add_(1);
    return a * b;
  };
  auto f = compile(body);
  Tensor one = wave({4}), two = one.clone(), other = wave({4}, 1), other2 = other.clone();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(one, one), body(two, two)));
    EXPECT_TRUE(close(one, two));
    EXPECT_TRUE(close(f(one, other), body(two, other2)));
    EXPECT_TRUE(close(f(other, one), body(other2, two)));
    EXPECT_TRUE(close(other, other2));
  }
}

// A tensor that the function also reaches by itself is passed to it.
TEST(Mutation, ArgumentsThatAreCapturedToo) {
  Tensor state = ones({3}), mirror = ones({3}), other = full({3}, 5.0);
  auto body = [](const Tensor& s, const Tensor& x) {
    s.add_(1);
    return x * 2;
  };
  auto f = compile([&](const Tensor& x) { return body(state, x); });
  ::testing::internal::CaptureStderr();  // an argument that shares memory with it runs eagerly, with a warning
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(close(f(other), body(mirror, other)));
    EXPECT_TRUE(close(f(state), body(mirror, mirror)));
    EXPECT_TRUE(close(f(state.slice(0, 0, 2)), body(mirror, mirror.slice(0, 0, 2))));
    EXPECT_TRUE(close(state, mirror));
  }
  ::testing::internal::GetCapturedStderr();
  auto g = compile([&](const Tensor& x) { return x * state; });
  EXPECT_TRUE(close(g(state), state * state));
  EXPECT_TRUE(close(g(other), other * state));
  EXPECT_TRUE(close(g(state), state * state));
  auto h = compile([&](const Tensor& x) {
    x.add_(1);
    return state * 2;
  });
  EXPECT_TRUE(close(h(other), state * 2));
  Tensor got = h(state);
  EXPECT_TRUE(close(got, state * 2));
}

// --- results that alias ----------------------------------------------------------------------------------------------

TEST(Mutation, ViewOfAnArgument) {
  auto f = compile([](const Tensor& x) { return x[1]; });
  Tensor x = wave({3, 2});
  for (int i = 0; i < 2; ++i) {
    Tensor row = f(x);
    EXPECT_TRUE(row.is_alias_of(x));
    row.fill_(i + 5);
    EXPECT_TRUE(close(x[1], full({2}, double(i + 5))));
  }
}

TEST(Mutation, TheArgumentItself) {
  auto f = compile([](const Tensor& x) {
    x.add_(1);
    return x;
  });
  Tensor x = zeros({2});
  for (int i = 1; i < 4; ++i) {
    Tensor y = f(x);
    EXPECT_TRUE(y.is_same(x)) << "call " << i;
    EXPECT_TRUE(close(x, full({2}, double(i))));
  }
}

TEST(Mutation, ResultsThatShareMemory) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x * 2;
    return std::tuple(y, y.view({-1}), y);
  });
  for (int i = 0; i < 2; ++i) {
    auto [a, b, c] = f(wave({2, 2}));
    EXPECT_TRUE(a.is_alias_of(b));
    EXPECT_TRUE(a.is_same(c));
    b[0] = 42.0;
    EXPECT_EQ(a.index({0, 0}).item<double>(), 42);
  }
}

TEST(Mutation, EqualResultsAreTwoTensors) {
  auto f = compile([](const Tensor& x) { return std::tuple(zeros({2}), zeros({2}), x + 1, x + 1); });
  for (int i = 0; i < 2; ++i) {
    auto [a, b, c, d] = f(ones({2}));
    EXPECT_FALSE(a.is_alias_of(b));
    EXPECT_FALSE(c.is_alias_of(d));
    a.fill_(9);
    EXPECT_TRUE(close(b, zeros({2})));
  }
  EXPECT_TRUE(close(std::get<0>(f(ones({2}))), zeros({2})));
}

TEST(Mutation, ConstantsAreNewInEveryCall) {
  auto f = compile([](const Tensor& x) {
    Tensor table = tensor({1.0, 2.0, 3.0});
    table.add_(x);
    return table;
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(close(f(ones({3})), tensor({2.0, 3.0, 4.0})));
  auto g = compile([](const Tensor&) { return tensor({1.0, 2.0}); });
  g(ones({1})).fill_(9);
  EXPECT_TRUE(close(g(ones({1})), tensor({1.0, 2.0})));
}

// --- state of models -------------------------------------------------------------------------------------------------

TEST(Mutation, BatchNormRunningStatistics) {
  nn::BatchNorm1d eager(4), fast(4);
  auto f = compile(fast);
  for (int i = 0; i < 4; ++i) {
    Tensor x = wave({8, 4}, i) * (i + 1);
    EXPECT_TRUE(close(f(x), eager(x)));
    EXPECT_TRUE(close(fast->running_mean, eager->running_mean));
    EXPECT_TRUE(close(fast->running_var, eager->running_var));
    EXPECT_EQ(fast->num_batches_tracked.item<int64_t>(), i + 1);
  }
  EXPECT_EQ(programs_of(f), 1);
  fast->eval();
  eager->eval();
  EXPECT_TRUE(close(f(wave({8, 4})), eager(wave({8, 4}))));
  EXPECT_EQ(fast->num_batches_tracked.item<int64_t>(), 4);
}

TEST(Mutation, ExceptionMidwayKeepsEarlierWrites) {
  bool fail = true;
  Tensor state = zeros({2});
  auto f = compile([&](const Tensor& x) {
    state.add_(x);
    x.mul_(2);
    if (fail) throw std::runtime_error("midway");
    state.mul_(10);
    return state + 0;
  });
  Tensor x = ones({2});
  EXPECT_THROW(f(x), std::runtime_error);
  EXPECT_TRUE(close(state, ones({2})));
  EXPECT_TRUE(close(x, full({2}, 2.0)));
  EXPECT_EQ(programs_of(f), 0);
  fail = false;
  EXPECT_TRUE(close(f(x), full({2}, 30.0)));
  EXPECT_TRUE(close(x, full({2}, 4.0)));
}

TEST(Mutation, ExceptionAfterABreakKeepsEarlierWrites) {
  Tensor state = zeros({2});
  auto f = compile([&](const Tensor& x) {
    state.add_(x);
    if (state.sum().item() > 3.0) {
      state.add_(100);
      throw std::runtime_error("too much");
    }
    return state * 2;
  });
  EXPECT_TRUE(close(f(ones({2})), full({2}, 2.0)));
  EXPECT_THROW(f(ones({2})), std::runtime_error);
  EXPECT_TRUE(close(state, full({2}, 102.0)));
}

// A row written into a cache costs the row, however long the cache.
TEST(Mutation, CacheRowCostsTheRow) {
  auto cost = [](int64_t length) {
    auto f = compile([](const Tensor& cache, const Tensor& position, const Tensor& row) {
      cache.index_copy_(0, position, row);
      return cache[0] + row[0];
    });
    Tensor cache = zeros({length, 64}), position = tensor({5}), row = ones({1, 64});
    f(cache, position, row);
    auto before = cpu_memory_stats();
    f(cache, position, row);
    auto after = cpu_memory_stats();
    EXPECT_TRUE(close(cache[5], ones({64})));
    EXPECT_TRUE(close(cache[6], zeros({64})));
    std::string plan = compiler::explain(f, cache, position, row).programs.at(0).plans.at(0);
    size_t at = plan.find("copied: ");
    int64_t copied = at == std::string::npos ? -1 : std::stoll(plan.substr(at + 8));
    EXPECT_LE(after.peak - before.peak, 1 << 16) << plan;
    EXPECT_GE(copied, 0) << plan;
    return copied;
  };
  int64_t small = cost(64), large = cost(65536);
  EXPECT_EQ(small, large);
  EXPECT_LE(large, 64 * 4 * 4);
}

TEST(Mutation, CacheSliceAssignmentCostsTheRow) {
  auto f = compile([](const Tensor& cache, const Tensor& row) {
    cache.slice(0, 3, 4) = row;
    return cache.slice(0, 0, 4).sum();
  });
  Tensor cache = zeros({65536, 64}), row = ones({1, 64});
  f(cache, row);
  auto before = cpu_memory_stats();
  EXPECT_TRUE(close(f(cache, row), tensor(64.0)));
  EXPECT_LE(cpu_memory_stats().peak - before.peak, 1 << 16);
}

}  // namespace
}  // namespace sinter
