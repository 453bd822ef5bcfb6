// Every backend computes the same, hands out memory of its own, and writes where the program says.
#include "sinter/engine/backend.h"
#include "sinter/engine/executable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sinter/engine/profile.h"
#include "sinter/graph/run.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "tests/engine/programs.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::Runner;
using testing::values;

constexpr const char* kBackends[] = {"sinter", "eager", "interpreter"};

// --- agreement -------------------------------------------------------------------------------------------------------

struct Case {
  const char* name;
  const char* text;
  std::vector<std::string> symbols;
  std::function<std::vector<TensorArg>(int64_t n)> inputs;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"pointwise",
     R"(%0 = input : f32[s0, 4] "x"
        %1 = input : f32[4] "b"
        %2 = add(%0, %1) : f32[s0, 4]
        %3 = tanh(%2) : f32[s0, 4]
        %4 = mul(%3, %0) : f32[s0, 4]
        return %4)",
     {"s0"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({n, 4}), values({4}, 1)};
     }},
    {"softmax",
     R"(%0 = input : f32[s0, s1] "x"
        %1 = amax(%0) {dims=[1], keepdim=true} : f32[s0, 1]
        %2 = sub(%0, %1) : f32[s0, s1]
        %3 = exp(%2) : f32[s0, s1]
        %4 = sum(%3) {dims=[1], keepdim=true} : f32[s0, 1]
        %5 = div(%3, %4) : f32[s0, s1]
        return %5, %4)",
     {"s0", "s1"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({n, 2 * n})};
     }},
    {"matmul_of_views",
     R"(%0 = input : f32[s0, 6] "x"
        %1 = input : f32[5, 6] "w"
        %2 = permute(%1) {dims=[1, 0]} : f32[6, 5]
        %3 = mm(%0, %2) : f32[s0, 5]
        %4 = slice(%3) {dim=1, start=1, end=4} : f32[s0, 3]
        %5 = relu(%4) : f32[s0, 3]
        %6 = cat(%5, %4) {dim=1} : f32[s0, 6]
        %7 = view(%6) {size=[2, 3*s0]} : f32[2, 3*s0]
        return %7, %2, %4)",
     {"s0"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({n, 6}), values({5, 6}, 2)};
     }},
    {"numbers",
     R"(%0 = input : f32[s0] "x"
        %1 = input : weak f64[] "scale"
        %2 = input : weak i64[] "shift"
        %3 = mul(%0, %1) : f32[s0]
        %4 = add(%3, %2) : f32[s0]
        %5 = scalar {value=2.0} : weak f64[]
        %6 = pow(%4, %5) : f32[s0]
        return %6, %1)",
     {"s0"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({n}), 0.5, 3};
     }},
    {"size_without_input",
     R"(%0 = input : f32[4] "x"
        %1 = unsqueeze(%0) {dim=0} : f32[1, 4]
        %2 = expand(%1) {size=[s0, 4]} : f32[s0, 4]
        %3 = sum(%2) {dims=[0]} : f32[4]
        %4 = sym_value() {value=s0 + 1} : i64[]
        %5 = div(%3, %4) : f32[4]
        return %5, %2)",
     {"s0"},
     [](int64_t) { return std::vector<TensorArg>{values({4})}; }},
    {"attention",
     R"(%0 = input : f32[1, 2, s0, 8] "q"
        %1 = input : f32[1, 2, s0, 8] "k"
        %2 = input : f32[1, 2, s0, 8] "v"
        %3 = scaled_dot_product_attention(%0, %1, %2) {is_causal=true} : f32[1, 2, s0, 8]
        return %3)",
     {"s0"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({1, 2, n, 8}), values({1, 2, n, 8}, 1), values({1, 2, n, 8}, 2)};
     }},
    {"sort_and_scatter",
     R"(%0 = input : f32[s0] "x"
        %1 = sort(%0) {descending=true} : (f32[s0], i64[s0])
        %2 = neg(%1) : f32[s0]
        %3 = scatter_add(%0, %1.1, %2) : f32[s0]
        %4 = cumsum(%3) {dim=0} : f32[s0]
        return %4, %1, %1.1)",
     {"s0"},
     [](int64_t n) { return std::vector<TensorArg>{values({n})}; }},
    {"size_of_the_data",
     R"(%0 = input : f32[s0] "x"
        %1 = scalar {value=0} : weak i64[]
        %2 = gt(%0, %1) : bool[s0]
        %3 = nonzero(%2) : i64[u0, 1]
        %4 = sum(%3) {dims=[0]} : i64[1]
        return %3, %4)",
     {"s0"},
     [](int64_t n) { return std::vector<TensorArg>{values({n})}; }},
    {"outputs_that_are_equal",
     R"(%0 = input : f32[s0, 3] "x"
        %1 = exp(%0) : f32[s0, 3]
        %2 = permute(%1) {dims=[1, 0]} : f32[3, s0]
        return %0, %1, %1, %0, %2)",
     {"s0"},
     [](int64_t n) {
       return std::vector<TensorArg>{values({n, 3})};
     }},
};

class Agreement : public ::testing::TestWithParam<Case> {};

TEST_P(Agreement, WithTheInterpreter) {
  auto& c = GetParam();
  Runner referee(c.text, "interpreter", c.symbols);
  for (const char* backend : {"sinter", "eager"}) {
    SCOPED_TRACE(backend);
    Runner runner(c.text, backend, c.symbols);
    for (int64_t n : {6, 9, 6, 2}) {
      std::vector<int64_t> sizes = {n, 2 * n};
      sizes.resize(c.symbols.size());
      auto inputs = c.inputs(n);
      TensorList got = runner(inputs, sizes), want = referee(inputs, sizes);
      for (size_t j = 0; j < want.size(); ++j) EXPECT_TRUE(is_close(got[j], want[j])) << "output " << j << " at " << n;
    }
  }
}

TEST_P(Agreement, InEveryLayout) {
  auto& c = GetParam();
  Runner referee(c.text, "interpreter", c.symbols);
  for (const char* backend : {"sinter", "eager"}) {
    SCOPED_TRACE(backend);
    Runner runner(c.text, backend, c.symbols);
    std::vector<int64_t> sizes = {5, 10};
    sizes.resize(c.symbols.size());
    auto inputs = c.inputs(5), plain = inputs;
    for (auto& arg : inputs) {
      if (arg.is_scalar()) continue;
      // Transposed, and every second element of a larger tensor.
      int64_t rank = arg.dim();
      Tensor t = arg.tensor().transpose(0, rank - 1).contiguous().transpose(0, rank - 1);
      Tensor wide = stack({t, t}, rank);
      arg = TensorArg(wide.select(rank, 1));
    }
    TensorList want = referee(plain, sizes);
    for (auto* given : {&inputs, &plain, &inputs}) {
      TensorList got = runner(*given, sizes);
      for (size_t j = 0; j < want.size(); ++j) EXPECT_TRUE(is_close(got[j], want[j])) << "output " << j;
    }
  }
}

TEST_P(Agreement, OutputsAreTheCallersToKeep) {
  auto& c = GetParam();
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(c.text, backend, c.symbols);
    std::vector<int64_t> sizes = {4, 8};
    sizes.resize(c.symbols.size());
    auto inputs = c.inputs(4);
    TensorList first = runner(inputs, sizes), kept, second;
    for (auto& t : first) kept.push_back(t.clone());
    second = runner(inputs, sizes);
    for (size_t j = 0; j < first.size(); ++j) {
      for (auto& arg : inputs)
        if (!arg.is_scalar()) {
          EXPECT_FALSE(first[j].is_alias_of(arg.tensor()));
        }
      for (size_t k = 0; k < first.size(); ++k) {
        EXPECT_FALSE(first[j].is_alias_of(second[k]));
        if (j != k) {
          EXPECT_FALSE(first[j].is_alias_of(first[k]));
        }
      }
      second[j].zero_();
      EXPECT_TRUE(is_close(first[j], kept[j], 0));
    }
  }
}

// What was captured as a view of a row-major value has to be copied where the value lies otherwise.
TEST(Layouts, AViewThatNeedsACopy) {
  Runner runner(R"(%0 = input : f32[4, 6] "x"
                   %1 = view(%0) {size=[24]} : f32[24]
                   %2 = exp(%1) : f32[24]
                   return %2, %1)");
  Tensor x = values({4, 6}), transposed = x.t().contiguous().t();
  for (auto& given : {x, transposed, x}) {
    TensorList got = runner({given});
    EXPECT_TRUE(is_close(got[0], x.exp().view({24})));
    EXPECT_TRUE(is_close(got[1], x.view({24})));
  }
}

INSTANTIATE_TEST_SUITE_P(Executable, Agreement, ::testing::ValuesIn(kCases),
                         [](auto& info) { return std::string(info.param.name); });

// --- writes ----------------------------------------------------------------------------------------------------------

constexpr const char* kAddInto = R"(%0 = input : f32[3, 4] "x"
   %1 = input : f32[3, 4] "y"
   %2 = add(%0, %1) : f32[3, 4]
   %3 = sum(%2) : f32[]
   return %2, %3)";

TEST(Writes, TheOutputIsTheInput) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(kAddInto, backend, {}, {0, -1});
    Tensor x = values({3, 4}), y = values({3, 4}, 1), want = x + y;
    uint32_t version = x.impl().buffer->version;
    TensorList got = runner({x, y});
    EXPECT_TRUE(got[0].is_same(x));
    EXPECT_TRUE(is_close(x, want));
    EXPECT_TRUE(is_close(got[1], want.sum()));
    EXPECT_EQ(x.impl().buffer->version, version + 1);
  }
}

TEST(Writes, IntoInputsOfAnyLayout) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(kAddInto, backend, {}, {0, -1});
    Tensor y = values({3, 4}, 1), whole = values({4, 6});
    Tensor x = whole.transpose(0, 1).slice(0, 1, 4), want = x + y, rest = whole.select(1, 5).clone();
    runner({x, y});
    EXPECT_TRUE(is_close(x, want));
    EXPECT_TRUE(is_close(whole.select(1, 5), rest, 0));
  }
}

TEST(Writes, InputsThatExchangeTheirValues) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner swap(R"(%0 = input : f32[5] "x"
                   %1 = input : f32[5] "y"
                   %2 = neg(%0) : f32[5]
                   return %1, %0, %2, %0)",
                backend, {}, {0, 1, -1, -1});
    Tensor x = values({5}), y = values({5}, 1), old_x = x.clone(), old_y = y.clone();
    TensorList got = swap({x, y});
    EXPECT_TRUE(is_close(x, old_y));
    EXPECT_TRUE(is_close(y, old_x));
    EXPECT_TRUE(is_close(got[2], -old_x));
    EXPECT_TRUE(is_close(got[3], old_x));
  }
}

TEST(Writes, AnOldValueThatIsStillRead) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(R"(%0 = input : f32[4, 4] "x"
                     %1 = permute(%0) {dims=[1, 0]} : f32[4, 4]
                     %2 = add(%0, %1) : f32[4, 4]
                     %3 = mul(%2, %1) : f32[4, 4]
                     return %2, %3)",
                  backend, {}, {0, -1});
    Tensor x = values({4, 4}), old = x.clone();
    TensorList got = runner({x});
    EXPECT_TRUE(is_close(x, old + old.t()));
    EXPECT_TRUE(is_close(got[1], (old + old.t()) * old.t()));
  }
}

TEST(Writes, InputsThatShareMemory) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(R"(%0 = input : f32[6] "x"
                     %1 = input : f32[6] "y"
                     %2 = neg(%0) : f32[6]
                     %3 = add(%2, %1) : f32[6]
                     return %2, %3)",
                  backend, {}, {0, -1});
    Tensor whole = values({8}), x = whole.slice(0, 0, 6), y = whole.slice(0, 2, 8), old_x = x.clone(),
           old_y = y.clone();
    TensorList got = runner({x, y});
    EXPECT_TRUE(is_close(x, -old_x));
    EXPECT_TRUE(is_close(got[1], old_y - old_x));
    // And again where nothing overlaps.
    Tensor a = values({6}), b = values({6}, 1), old_a = a.clone();
    got = runner({a, b});
    EXPECT_TRUE(is_close(got[1], b - old_a));
  }
}

TEST(Writes, WhatCannotBeIsRefused) {
  EXPECT_THROW(Runner(kAddInto, "sinter", {}, {5, -1}), Error);
  EXPECT_THROW(Runner(kAddInto, "sinter", {}, {-1, 0}), Error);
  EXPECT_THROW(Runner("%0 = input : f32[2]\n%1 = neg(%0) : f32[2]\nreturn %1, %1", "sinter", {}, {0, 0}), Error);
}

// --- calls -----------------------------------------------------------------------------------------------------------

TEST(Calls, OperandsThatDoNotFitAreRefused) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner("%0 = input : f32[s0]\n%1 = exp(%0) : f32[s0]\nreturn %1", backend, {"s0"});
    Tensor x = values({3});
    EXPECT_THROW(runner({x, x}, {3}), Error);
    EXPECT_THROW(runner({x}), Error);
    EXPECT_THROW(runner({1.5}, {3}), Error);
    EXPECT_THROW(runner({Tensor()}, {3}), Error);
    EXPECT_THROW(runner({values({3, 3}).t()}, {3}), Error);
    if (backend == std::string("sinter")) {
      EXPECT_THROW(runner({values({4})}, {3}), Error);
    }
    TensorList none;
    std::vector<TensorArg> inputs = {x};
    std::vector<int64_t> sizes = {3};
    EXPECT_THROW(runner.executable().run(inputs, sizes, none), Error);
    EXPECT_TRUE(is_close(runner({x}, {3})[0], x.exp()));
  }
}

TEST(Calls, AKernelThatThrowsLeavesTheExecutableUsable) {
  for (const char* backend : kBackends) {
    SCOPED_TRACE(backend);
    Runner runner(R"(%0 = input : f32[4, 2] "x"
                     %1 = input : i64[3] "rows"
                     %2 = index_select(%0, %1) {dim=0} : f32[3, 2]
                     %3 = neg(%2) : f32[3, 2]
                     return %3)",
                  backend);
    Tensor x = values({4, 2}), good = tensor({0, 3, 1}), bad = tensor({0, 7, 1});
    for (int round = 0; round < 3; ++round) {
      if (std::string(backend) != "interpreter") {
        EXPECT_THROW(runner({x, bad}), Error);
      }
      EXPECT_TRUE(is_close(runner({x, good})[0], -index_select(x, 0, good)));
    }
    EXPECT_EQ(x.impl().buffer.use_count(), 1u) << "the caller's memory is held after the call";
  }
}

TEST(Calls, AnErrorNamesTheLineOfItsNode) {
  Program program;
  Value x = program.graph.add_input({kFloat32, {4}, {}}), at = program.graph.add_input({kInt64, {2}, {}});
  const Op& op = *find_op("index_select");
  program.graph.set_outputs({program.graph.add(op, {x, at}, op.parse({}), "model.cpp:12").result()});
  auto executable = compile_program(std::move(program));
  std::vector<TensorArg> inputs = {values({4}), tensor({1, 9})};
  TensorList outputs(1);
  try {
    executable->run(inputs, {}, outputs);
    FAIL() << "an index out of range was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("index 9 is out of range"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("model.cpp:12"), std::string::npos) << error.what();
  }
}

TEST(Calls, AreProfiledStepByStep) {
  // Two ops as one kernel, then a kernel of the library's own.
  Runner runner(
      "%0 = input : f32[8, 8]\n%1 = exp(%0) : f32[8, 8]\n%2 = exp(%1) : f32[8, 8]\n%3 = mm(%2, %2) : f32[8, 8]\nreturn %3");
  Tensor x = values({8, 8});
  Profile profile;
  runner({x});
  auto rows = profile.rows();
  EXPECT_EQ(rows["exp_exp"].calls, 1);
  EXPECT_EQ(rows["exp_exp"].bytes, 2 * 8 * 8 * 4);
  EXPECT_EQ(rows["mm"].calls, 1);
}

TEST(Calls, FromManyThreads) {
  Runner runner(R"(%0 = input : f32[s0, 8] "x"
                   %1 = input : f32[8, 8] "w"
                   %2 = mm(%0, %1) : f32[s0, 8]
                   %3 = exp(%2) : f32[s0, 8]
                   %4 = sum(%3) {dims=[1], keepdim=true} : f32[s0, 1]
                   %5 = div(%3, %4) : f32[s0, 8]
                   return %5)",
                "sinter", {"s0"});
  Tensor w = values({8, 8}, 3);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 40; ++round) {
        int64_t n = 1 + (t + round) % 5;
        Tensor x = values({n, 8}, t), e = x.mm(w).exp();
        if (!is_close(runner({x, w}, {n})[0], e / e.sum({1}, true))) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Calls, MoreSizesThanPlansAreKept) {
  Runner runner("%0 = input : f32[s0]\n%1 = exp(%0) : f32[s0]\n%2 = neg(%1) : f32[s0]\nreturn %2", "sinter", {"s0"});
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 0; n < 150; ++n) {
      Tensor x = values({n});
      ASSERT_TRUE(is_close(runner({x}, {n})[0], -x.exp())) << n;
    }
}

// --- backends by name ------------------------------------------------------------------------------------------------

TEST(Backends, UnknownAndTakenNamesListTheKnown) {
  for (auto& text : {message_of([] { Runner(kAddInto, "tvm"); }),
                     message_of([] { register_backend("eager", [](auto&) { return GraphFunction(); }); })})
    EXPECT_NE(text.find("eager, interpreter, sinter"), std::string::npos) << text;
}

TEST(Backends, AUsersOwn) {
  static int made = 0;
  register_backend("test.own", [](const Graph& graph) -> GraphFunction {
    ++made;
    // Gives an operand back as it is, and the same tensor at every call.
    return [&graph, kept = values({2})](std::span<const TensorArg> inputs) -> TensorList {
      check(inputs[0].tensor().dim() == 1, "only vectors are taken");
      return {run_graph(graph, inputs)[0], inputs[0].tensor(), kept};
    };
  });
  auto names = list_backends();
  EXPECT_NE(std::find(names.begin(), names.end(), "test.own"), names.end());
  Runner runner(R"(%0 = input : f32[2] "x"
                   %1 = neg(%0) : f32[2]
                   return %1, %0, %0)",
                "test.own", {}, {0, -1, -1});
  EXPECT_EQ(made, 1);
  Tensor x = values({2}, 1), old = x.clone();
  TensorList got = runner({x}), again = runner({x});
  EXPECT_TRUE(got[0].is_same(x));
  EXPECT_TRUE(is_close(got[1], old));
  EXPECT_FALSE(got[2].is_alias_of(again[2]));
  EXPECT_TRUE(is_close(x, old));
  std::string text = message_of([&] { runner({values({2, 2})}); });
  EXPECT_EQ(text.rfind("backend test.own: only vectors are taken", 0), 0u) << text;
}

TEST(Backends, OneThatBreaksItsWord) {
  register_backend("test.short", [](const Graph&) { return [](std::span<const TensorArg>) { return TensorList(); }; });
  register_backend("test.none", [](const Graph&) { return GraphFunction(); });
  register_backend("test.type", [](const Graph&) {
    return [](std::span<const TensorArg>) -> TensorList { return {tensor({1, 2})}; };
  });
  constexpr const char* kText = "%0 = input : f32[2]\n%1 = neg(%0) : f32[2]\nreturn %1";
  EXPECT_THROW(Runner(kText, "test.short")({values({2})}), Error);
  EXPECT_THROW(Runner(kText, "test.none"), Error);
  EXPECT_THROW(Runner(kText, "test.type")({values({2})}), Error);
}

}  // namespace
}  // namespace sinter
