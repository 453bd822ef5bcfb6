// The texts of GPU kernels of every op, dtype and layout, run on the CPU with 32 and with 64 lanes.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/codegen/on_host.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

class AllOnHost : public testing::WithoutThreadSanitizer, public ::testing::WithParamInterface<const Op*> {
 protected:
  static void TearDownTestSuite() { std::printf("%d kernels ran with 32 lanes, %d with 64\n", run_[0], run_[1]); }
  static inline int run_[2] = {};
};

TEST_P(AllOnHost, AgreesWithTheReferee) {
  for (int way : {0, 1}) {
    const int run = testing::expect_right_on_host(*GetParam(), way ? 64 : 32, 1);
    EXPECT_GT(run, 0) << GetParam()->name << " has no kernel";
    run_[way] += run;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AllOnHost, ::testing::ValuesIn(testing::ops_with_loops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
