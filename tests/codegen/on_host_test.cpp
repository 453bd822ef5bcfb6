// The texts of GPU kernels, run on the CPU with 32 and with 64 lanes: that what shuffles, joins and scans do follows from the
// number of lanes. Some of the cases of every op; on_host_slow_test.cpp runs all.
#include "tests/codegen/on_host.h"

#include <gtest/gtest.h>

#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

using testing::KernelsOnHost;
using testing::MemoryLayout;

// Threads that are fibers are not for every tool.
class OnHost : public testing::WithoutThreadSanitizer, public ::testing::WithParamInterface<const Op*> {};

TEST_P(OnHost, AgreesWithTheReferee) {
  for (int lanes : {32, 64}) testing::expect_right_on_host(*GetParam(), lanes, 24);
}

INSTANTIATE_TEST_SUITE_P(Some, OnHost, ::testing::ValuesIn(testing::ops_with_loops()),
                         [](const auto& info) { return std::string(info.param->name); });

// A row that four warps of 64 lanes share, or eight of 32: sum, search and scan.
class RowsOnHost : public testing::WithoutThreadSanitizer, public ::testing::WithParamInterface<int> {
 protected:
  static testing::OnHostCase long_row(const char* op, const char* text, DType dtype) {
    auto sample = testing::sample_from(*find_op(op), text, dtype);
    return *testing::on_host_case(sample, MemoryLayout::kContiguous, {.target = gpu_target(GetParam())}, "k0");
  }
  static std::string run(const testing::OnHostCase& one, const std::string& prelude = {}) {
    return testing::run_on_host(one, KernelsOnHost({one.kernel}, gpu_target(GetParam()), prelude));
  }
  // The prelude with a fault.
  static std::string planted(const std::string& text, const std::string& by) {
    std::string prelude = KernelsOnHost::host_prelude(gpu_target(GetParam()));
    size_t at = prelude.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return prelude.replace(at, text.size(), by);
  }
};

TEST_P(RowsOnHost, AreJoined) {
  for (DType dtype : {kFloat32, kBFloat16, kFloat64, kInt64}) {
    EXPECT_EQ(run(long_row("sum", "x[3, 1400] | dims=[1]", dtype)), "");
    EXPECT_EQ(run(long_row("argmax", "x[3, 1400] | dims=[1]", dtype)), "");
    EXPECT_EQ(run(long_row("cumsum", "x[3, 1400] | dim=1", dtype)), "");
  }
  EXPECT_EQ(run(long_row("any", "x[3, 1400] | dims=[1]", kBool)), "");
}

// Shuffles over 32 lanes are right where there are 32, and seen to be wrong where there are 64.
TEST_P(RowsOnHost, WrongShufflesAreSeen) {
  const std::string prelude = planted("x = join_warp<Op>(x, b.members < kWarp ? b.members : kWarp);",
                                      "x = join_warp<Op>(x, b.members < 32 ? b.members : 32);");
  const std::string wrong = run(long_row("sum", "x[3, 1400] | dims=[1]", kFloat32), prelude);
  EXPECT_EQ(wrong.empty(), GetParam() == 32) << wrong;
  const std::string search = planted("join_winners_of_warp<kLargest>(best, winner, kWarp);",
                                     "join_winners_of_warp<kLargest>(best, winner, 2);");
  EXPECT_NE(run(long_row("argmax", "x[9, 5400] | dims=[1]", kFloat32), search), "");
  const std::string scan = planted("for (u32 distance = 1; distance < width; distance *= 2)",
                                   "for (u32 distance = 1; distance < width / 2; distance *= 2)");
  EXPECT_NE(run(long_row("cumsum", "x[3, 1400] | dim=1", kFloat32), scan), "");
}

TEST_P(RowsOnHost, ThreadsThatNeverComeAreSeen) {
  const std::string barrier =
      planted("if (lane == 0) words[b.row * warps + b.member / kWarp] = to_word(x);\n  __syncthreads();",
              "if (lane == 0) words[b.row * warps + b.member / kWarp] = to_word(x);\n"
              "  if (lane != 0) __syncthreads();");
  EXPECT_NE(run(long_row("sum", "x[3, 1400] | dims=[1]", kFloat32), barrier).find("never come"), std::string::npos);
  const std::string lane = planted("x = join_warp<Op>(x, kWarp);", "x = join_warp<Op>(x, 4 * kWarp);");
  EXPECT_NE(run(long_row("sum", "x[3, 1400] | dims=[1]", kFloat32), lane).find("a thread asks for lane"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Lanes, RowsOnHost, ::testing::Values(32, 64),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace sinter
