// When and why functions are captured, as explanations tell it.
#include "tests/capture/branched.h"

namespace sinter {
namespace {

TEST(Captures, TellWhenAndWhy) {
  auto f = compile(branched, {.dynamic = Dynamic::kFalse, .options = {{"recompile_limit", 2}}, .name = "branched"});
  f(ones({4}));
  f(ones({4}));  // nothing new
  f(-ones({4}));
  f(ones({6}));
  f(ones({8}));
  Explanation told = capture::explain(f.function());
  ASSERT_EQ(told.captures.size(), 4u);
  std::string kinds;
  double end = 0;
  for (auto& c : told.captures) {
    kinds += c.kind + " ";
    EXPECT_GE(c.start, end);
    end = c.start + c.seconds;
  }
  EXPECT_EQ(kinds, "first branch recompile limit ");
  EXPECT_EQ(told.recompile_count(), 1);
  for (size_t i : {0u, 1u, 2u}) {
    EXPECT_GT(told.captures[i].seconds, 0);
    EXPECT_GT(told.captures[i].stages.capture, 0);
  }
  EXPECT_EQ(told.captures[0].program, 0);
  auto &branch = told.captures[1], &again = told.captures[2];
  EXPECT_EQ(branch.program, 0);
  EXPECT_TRUE(branch.where.ends_with(break_line)) << branch.where;
  EXPECT_EQ(again.program, 1);
  ASSERT_EQ(again.failed.size(), 1u);
  EXPECT_EQ(again.failed[0].text, "argument 0.size(0) was 4, now 6");
  ASSERT_EQ(told.captures[3].failed.size(), 2u);
  EXPECT_EQ(told.captures[3].failed[1].text, "argument 0.size(0) was 6, now 8");
  for (auto* part : {"branch after ", "recompile after ", "program 0: argument 0.size(0) was 4, now 6", "limit after "})
    EXPECT_TRUE(has(told.text(), part));
  f.function().reset();
  EXPECT_TRUE(capture::explain(f.function()).captures.empty());
}

TEST(Captures, AFailedGuardHasItsLine) {
  std::string line;
  auto f = compile(
      [&](const Tensor& x) {
        line = line_before(-1);
        return x.size(0) > 8 ? x + 1 : x - 1;
      },
      {.dynamic = Dynamic::kTrue, .name = "sized"});
  f(ones({4}));
  f(ones({12}));
  Explanation told = capture::explain(f.function());
  ASSERT_EQ(told.captures.size(), 2u);
  ASSERT_EQ(told.captures[1].failed.size(), 1u);
  EXPECT_TRUE(told.captures[1].failed[0].where.ends_with(line)) << told.captures[1].failed[0].where;
}

}  // namespace
}  // namespace sinter
