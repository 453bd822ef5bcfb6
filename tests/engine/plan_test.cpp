// The plan of the backend "sinter": where values lie, what is reused, what is written in place.
#include "sinter/engine/executable/plan.h"

#include <gtest/gtest.h>

#include "sinter/engine/executable/frame.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/memory.h"
#include "tests/engine/programs.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::Runner;
using testing::values;

std::shared_ptr<const Plan> plan_of(std::string_view text, std::vector<int> writes = {},
                                    const PlanOptions& options = {}) {
  Program program{.graph = Graph::parse(text), .symbols = {}, .writes = std::move(writes), .name = "test"};
  return make_plan(program, {}, options);
}

int64_t in_place_steps(const Plan& plan) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [](auto& step) { return step.in_place; });
}

// --- packing ---------------------------------------------------------------------------------------------------------

TEST(Pack, BlocksInUseTogetherLieApart) {
  std::vector<Block> blocks;
  uint32_t seed = 7;
  auto draw = [&](uint32_t below) { return int(((seed = seed * 1664525 + 1013904223) >> 16) % below); };
  for (int i = 0; i < 200; ++i) {
    int first = draw(100);
    blocks.push_back({.bytes = draw(1000), .first = first, .last = first + draw(12)});
  }
  std::vector<Block*> all;
  for (auto& b : blocks) all.push_back(&b);
  int64_t total = pack(all), largest = 0;
  for (auto& a : blocks) {
    EXPECT_EQ(a.offset % kBlockAlignment, 0);
    EXPECT_LE(a.offset + a.bytes, total);
    for (auto& b : blocks) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
  for (int step = 0; step < 112; ++step) {
    int64_t live = 0;
    for (auto& b : blocks)
      if (b.first <= step && step <= b.last) live += (b.bytes + 63) / 64 * 64;
    largest = std::max(largest, live);
  }
  EXPECT_LE(total, largest * 13 / 10);
}

// --- layout ----------------------------------------------------------------------------------------------------------

// A GPU's attention leaves the heads of a query side by side, so that a model's next step looks at them as one row.
TEST(Layout, HeadsJoinWithoutACopyOnAGpu) {
  auto copied = [](const std::string& device) {
    auto type = [&](std::string_view shape) { return format(" : bf16[{}]{}\n", shape, device); };
    std::string operand = type("2, 4, 16, 64");
    return plan_of("%0 = input" + operand + "%1 = input" + operand + "%2 = input" + operand +
                   "%3 = scaled_dot_product_attention(%0, %1, %2)" + operand +
                   "%4 = permute(%3) {dims=[0, 2, 1, 3]}" + type("2, 16, 4, 64") +
                   "%5 = view(%4) {size=[2, 16, 256]}" + type("2, 16, 256") + "return %5")
        ->copied_bytes;
  };
  EXPECT_EQ(copied("@cuda:0"), 0);
  EXPECT_GT(copied(""), 0);
}

// --- reuse -----------------------------------------------------------------------------------------------------------

TEST(Arena, AChainNeedsTwoTensors) {
  std::string text = "%0 = input : f32[256, 256]\n";
  for (int i = 1; i <= 20; ++i) text += format("%{} = cumsum(%{}) {dim=0} : f32[256, 256]\n", i, i - 1);
  auto plan = plan_of(text + "return %20");
  EXPECT_LE(plan->arena_bytes, 2 * 256 * 256 * 4 * 11 / 10);
  EXPECT_EQ(plan->copied_bytes, 0);
}

TEST(Arena, APointwiseChainNeedsNone) {
  std::string text = "%0 = input : f32[1000]\n";
  for (int i = 1; i <= 20; ++i) text += format("%{} = tanh(%{}) : f32[1000]\n", i, i - 1);
  auto plan = plan_of(text + "return %20");
  EXPECT_EQ(plan->arena_bytes, 0) << plan->text();  // all in the memory of the output
  EXPECT_EQ(in_place_steps(*plan), 19);
}

TEST(Arena, ADiamondKeepsWhatIsNeeded) {
  // Largest live set: %1, one branch done, and the two tensors of the other.
  auto plan = plan_of(R"(%0 = input : f32[128, 128]
                         %1 = cumsum(%0) {dim=0} : f32[128, 128]
                         %2 = mm(%1, %1) : f32[128, 128]
                         %3 = cumsum(%2) {dim=0} : f32[128, 128]
                         %4 = mm(%1, %2) : f32[128, 128]
                         %5 = cumsum(%4) {dim=0} : f32[128, 128]
                         %6 = mm(%3, %5) : f32[128, 128]
                         %7 = sum(%6) : f32[]
                         return %7)");
  EXPECT_LE(plan->arena_bytes, 4 * 128 * 128 * 4 * 11 / 10) << plan->text();
}

TEST(Arena, AViewKeepsItsBaseAlive) {
  Runner runner(R"(%0 = input : f32[16, 16]
                   %1 = cumsum(%0) {dim=0} : f32[16, 16]
                   %2 = permute(%1) {dims=[1, 0]} : f32[16, 16]
                   %3 = cumsum(%0) {dim=1} : f32[16, 16]
                   %4 = exp(%3) : f32[16, 16]
                   %5 = mm(%4, %2) : f32[16, 16]
                   return %5)");
  Tensor x = values({16, 16});
  EXPECT_TRUE(is_close(runner({x})[0], x.cumsum(1).exp().mm(x.cumsum(0).t())));
}

TEST(Arena, IsReported) {
  Runner runner("%0 = input : f32[s0]\n%1 = exp(%0) : f32[s0]\n%2 = cumsum(%1) {dim=0} : f32[s0]\nreturn %2", "sinter",
                {"s0"});
  EXPECT_EQ(runner.executable().arena_bytes(), 0);
  runner({values({100})}, {100});
  runner({values({10})}, {10});
  EXPECT_EQ(runner.executable().arena_bytes(), 448);
}

TEST(Arena, TakenOverOnlyByWhatFits) {
  // Another look at the dying operand, a smaller operand, another dtype: none may be written over.
  for (const char* text :
       {"%0 = input : f32[8, 8]\n%1 = exp(%0) : f32[8, 8]\n%2 = permute(%1) {dims=[1, 0]} : f32[8, 8]\n"
        "%3 = add(%1, %2) : f32[8, 8]\nreturn %3",
        "%0 = input : f32[8, 8]\n%1 = sum(%0) {dims=[0]} : f32[8]\n%2 = add(%1, %0) : f32[8, 8]\nreturn %2",
        "%0 = input : f32[8, 8]\n%1 = exp(%0) : f32[8, 8]\n%2 = gt(%1, %0) : bool[8, 8]\nreturn %2"})
    EXPECT_EQ(in_place_steps(*plan_of(text)), 0) << text;
}

// --- in place --------------------------------------------------------------------------------------------------------

// One row of a cache, then a use of the new cache.
constexpr const char* kCache = R"(%0 = input : f32[1024, 256] "cache"
   %1 = input : f32[256] "row"
   %2 = exp(%1) : f32[256]
   %3 = write(%0, %2) {path=[select{index=7}]} : f32[1024, 256]
   %4 = sum(%3) {dims=[0]} : f32[256]
   return %3, %4)";

TEST(InPlace, ACacheRowMovesTheRowAlone) {
  Runner runner(kCache, "sinter", {}, {0, -1});
  Tensor cache = values({1024, 256}), row = values({256}, 1), want = cache.clone();
  want.select(0, 7).copy_(row.exp());
  runner({cache, row});
  EXPECT_TRUE(is_close(cache, want, 1e-6));
  // A call has no room for a copy of the cache.
  set_cpu_memory_limit(size_t(cpu_memory_stats().allocated) + 256 * 1024);
  TensorList got;
  EXPECT_NO_THROW(got = runner({cache, row}));
  set_cpu_memory_limit(0);
  EXPECT_TRUE(is_close(got[1], want.sum({0})));
  auto plan = plan_of(kCache, {0, -1});
  EXPECT_EQ(plan->copied_bytes, 256 * 4) << plan->text();
  EXPECT_NE(runner.text().find("@input 0 in place"), std::string::npos) << runner.text();
}

TEST(InPlace, AChainOfWritesStaysInTheInput) {
  constexpr const char* kText = R"(%0 = input : f32[64, 64]
      %1 = input : f32[64]
      %2 = write(%0, %1) {path=[select{index=1}]} : f32[64, 64]
      %3 = select(%2) {index=1} : f32[64]
      %4 = exp(%3) : f32[64]
      %5 = write(%2, %4) {path=[permute{dims=[1, 0]}, select{index=2}]} : f32[64, 64]
      return %5)";
  auto plan = plan_of(kText, {0});
  EXPECT_EQ(plan->copied_bytes, 2 * 64 * 4) << plan->text();
  Runner runner(kText, "sinter", {}, {0}), referee(kText, "interpreter", {}, {0});
  Tensor x = values({64, 64}), row = values({64}, 1), y = x.clone();
  runner({x, row});
  referee({y, row});
  EXPECT_TRUE(is_close(x, y, 1e-6));
}

TEST(InPlace, NotWhereTheOldValueIsReadLater) {
  // By a step, by a view of it, by an output; or where the program does not write the input back.
  struct {
    const char* text;
    std::vector<int> writes;
  } cases[] = {
      {"%0 = input : f32[8, 4]\n%1 = input : f32[4]\n%2 = write(%0, %1) {path=[select{index=1}]} : f32[8, 4]\n"
       "%3 = add(%2, %0) : f32[8, 4]\nreturn %2, %3",
       {0, -1}},
      {"%0 = input : f32[8, 4]\n%1 = input : f32[4]\n%2 = select(%0) {index=1} : f32[4]\n"
       "%3 = write(%0, %1) {path=[select{index=1}]} : f32[8, 4]\n%4 = neg(%2) : f32[4]\nreturn %3, %4",
       {0, -1}},
      {"%0 = input : f32[8, 4]\n%1 = input : f32[4]\n%2 = write(%0, %1) {path=[select{index=1}]} : f32[8, 4]\nreturn "
       "%2, %0",
       {0, -1}},
      {"%0 = input : f32[8, 4]\n%1 = input : f32[4]\n%2 = write(%0, %1) {path=[select{index=1}]} : f32[8, 4]\nreturn "
       "%2",
       {}},
  };
  for (auto& [text, writes] : cases) {
    auto plan = plan_of(text, writes);
    EXPECT_TRUE(plan->changed_early.empty()) << plan->text();
    Runner runner(text, "sinter", {}, writes), referee(text, "interpreter", {}, writes);
    Tensor x = values({8, 4}), row = values({4}, 1), y = x.clone();
    TensorList got = runner({x, row}), want = referee({y, row});
    EXPECT_TRUE(is_close(x, y, 1e-6)) << text;
    for (size_t j = 0; j < want.size(); ++j) EXPECT_TRUE(is_close(got[j], want[j], 1e-6)) << text;
  }
}

TEST(InPlace, ATemporaryThatDies) {
  auto plan = plan_of(R"(%0 = input : f32[32]
                         %1 = scalar {value=0} : weak i64[]
                         %2 = full(%1) {size=[4, 32], dtype=f32} : f32[4, 32]
                         %3 = write(%2, %0) {path=[select{index=3}]} : f32[4, 32]
                         return %3)");
  EXPECT_EQ(plan->copied_bytes, 32 * 4) << plan->text();
  EXPECT_EQ(plan->arena_bytes, 0);
}

TEST(InPlace, AValueThatOverlapsItsPlace) {
  constexpr const char* kText = R"(%0 = input : f32[9]
      %1 = slice(%0) {start=0, end=8} : f32[8]
      %2 = write(%0, %1) {path=[slice{start=1}]} : f32[9]
      return %2)";
  Runner runner(kText, "sinter", {}, {0});
  Tensor x = values({9}), old = x.clone();
  runner({x});
  EXPECT_TRUE(is_close(x.slice(0, 1, 9), old.slice(0, 0, 8), 0));
}

TEST(InPlace, PointwiseResultsAndScatters) {
  constexpr const char* kAdd = R"(%0 = input : f32[100]
      %1 = input : f32[100]
      %2 = exp(%1) : f32[100]
      %3 = add(%0, %2) : f32[100]
      return %3)";
  constexpr const char* kPut = R"(%0 = input : f32[100]
      %1 = input : f32[100]
      %2 = scalar {value=3} : weak i64[]
      %3 = scalar {value=1} : weak i64[]
      %4 = arange(%2, %3) {size=[5], dtype=i64} : i64[5]
      %5 = slice(%1) {end=5} : f32[5]
      %6 = index_put(%0, %5, %4) {dims=[0], accumulate=true} : f32[100]
      return %6)";
  for (const char* text : {kAdd, kPut}) {
    auto plan = plan_of(text, {0});
    EXPECT_EQ(plan->copied_bytes, 0) << plan->text();
    EXPECT_EQ(plan->changed_early, std::vector<int>{0});
    EXPECT_GT(plan_of(text, {0}, {.input_strides = {}, .write_inputs_early = false})->copied_bytes, 0);
    Runner runner(text, "sinter", {}, {0}), referee(text, "interpreter", {}, {0});
    Tensor x = values({100}), y = values({100}, 1), z = x.clone();
    runner({x, y});
    referee({z, y});
    EXPECT_TRUE(is_close(x, z));
  }
}

// A product writes partial sums where its result will be: into an input that the program changes, unless it reads it.
TEST(InPlace, ProductsGoWhereTheyBelong) {
  constexpr const char* kStored = R"(%0 = input : f32[6, 5]
      %1 = input : f32[6, 4]
      %2 = input : f32[4, 5]
      %3 = fused(%1, %2) {kind=product, body={%0 = input : f32[6, 4]; %1 = input : f32[4, 5]; %2 = mm(%0, %1) : f32[6, 5]; return %2}, domain=[6, 5]} : f32[6, 5]
      return %3)";
  constexpr const char* kAdded = R"(%0 = input : f32[6, 5]
      %1 = input : f32[6, 4]
      %2 = input : f32[4, 5]
      %3 = fused(%1, %2, %0) {kind=product, body={%0 = input : f32[6, 4]; %1 = input : f32[4, 5]; %2 = input : f32[6, 5]; %3 = mm(%0, %1) : f32[6, 5]; %4 = fused(%3, %2) {kind=epilogue, body={%0 = input : f32[6, 5]; %1 = input : f32[6, 5]; %2 = add(%0, %1) : f32[6, 5]; return %2}, domain=[6, 5], inner=1, tiles=1} : f32[6, 5]; return %4}, domain=[6, 5]} : f32[6, 5]
      return %3)";
  EXPECT_EQ(plan_of(kStored, {0})->copied_bytes, 0);
  EXPECT_EQ(plan_of(kAdded, {0})->copied_bytes, 6 * 5 * 4);
  for (const char* text : {kStored, kAdded})
    for (bool transposed : {false, true}) {
      Runner runner(text, "sinter", {}, {0}), referee(text, "interpreter", {}, {0});
      Tensor x = transposed ? values({5, 6}).t() : values({6, 5}), z = x.clone(), a = values({6, 4}, 1), b = values({4, 5}, 2);
      runner({x, a, b});
      referee({z, a, b});
      EXPECT_TRUE(is_close(x, z)) << text;
    }
}

TEST(InPlace, AnInputThatRepeatsItselfIsRefused) {
  Runner runner("%0 = input : f32[3, 4]\n%1 = exp(%0) : f32[3, 4]\nreturn %1", "sinter", {}, {0});
  EXPECT_THROW(runner({values({4}).unsqueeze(0).expand({3, 4})}), Error);
}

TEST(InPlace, TheSameTensorTwice) {
  constexpr const char* kText = R"(%0 = input : f32[6]
      %1 = input : f32[6]
      %2 = exp(%0) : f32[6]
      %3 = add(%2, %1) : f32[6]
      return %2, %3)";
  Runner runner(kText, "sinter", {}, {0, -1});
  Tensor x = values({6}), old = x.clone();
  TensorList got = runner({x, x});
  EXPECT_TRUE(is_close(x, old.exp()));
  EXPECT_TRUE(is_close(got[1], old.exp() + old));
}

TEST(PlanText, SaysWhatHappensWhere) {
  auto text = plan_of(R"(%0 = input : f32[2, 3] "x"
                         %1 = permute(%0) {dims=[1, 0]} : f32[3, 2]
                         %2 = cumsum(%1) {dim=1} : f32[3, 2]
                         %3 = exp(%2) : f32[3, 2]
                         %4 = sum(%3) {dims=[1]} : f32[3]
                         return %4)")
                  ->text();
  EXPECT_EQ(text, R"(view permute(%0 f32[2, 3]) {dims=[1, 0]} -> %1 f32[3, 2] strides [1, 3] @input 0
kernel cumsum(%1 f32[3, 2] strides [1, 3]) {dim=1} -> %2 f32[3, 2] @0+24
pointwise exp(%2 f32[3, 2]) -> %3 f32[3, 2] @0+24 in place
kernel sum(%3 f32[3, 2]) {dims=[1]} -> %4 f32[3] @output 0
output 0: %4 f32[3]
peak: 64 bytes of arena; copied: 0 bytes
)");
}

}  // namespace
}  // namespace sinter
