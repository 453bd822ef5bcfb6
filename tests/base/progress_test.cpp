#include "sinter/base/progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace sinter {
namespace {

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  EXPECT_EQ(progress_line("load", 500, 1000, "", 5, 60),
            "load  [#########.........]  50%  500/1.00k  100/s  0:05 left");
  EXPECT_EQ(progress_line("load", 2'400'000'000, 2'400'000'000, "B", 2, 44),
            "load  100%  2.40G/2.40GB  1.20GB/s  0:02");
  EXPECT_EQ(progress_line("tune", 7450, 0, " kernels", 3725, 80), "tune  7.45k kernels  2 kernels/s  1:02:05");
  EXPECT_EQ(progress_line("wait", 0, 10, "", 1, 30), "wait  [............]  0%  0/10");
  EXPECT_EQ(progress_line("train", 5, 10, "", 5, 60, "loss 4.38"),
            "train  [######.......]  50%  5/10  1/s  0:05 left  loss 4.38");
}

TEST(Progress, LineKeepsToTheWidth) {
  for (int width = 0; width < 100; ++width)
    for (int64_t done : {0, 3, 77, 100, 120}) {
      std::string line = progress_line("a label", done, 100, "B", 1.5, width);
      EXPECT_LE(int(line.size()), width);
    }
}

TEST(Progress, SilentInAPipe) {
  testing::internal::CaptureStderr();
  {
    Progress progress("work", 10);
    progress.advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(210));
    progress.advance(4);
    EXPECT_EQ(progress.done(), 5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace sinter
