#include "sinter/base/stage_times.h"

#include <gtest/gtest.h>

#include <thread>

namespace sinter {
namespace {

void spend(double seconds) {
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) continue;
}

TEST(StageTimes, NoMomentCountsTwice) {
  auto before = stage_times();
  double here = stage_seconds_of_this_thread();
  auto begin = std::chrono::steady_clock::now();
  {
    StageTimer capture(CompileStage::kCapture);
    spend(0.004);
    {
      StageTimer passes(CompileStage::kPasses);
      spend(0.002);
      StageTimer pause(CompileStage::kNone);
      spend(0.003);
    }
    {
      StageTimer emit(CompileStage::kEmit);
      spend(0.001);
    }
  }
  std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  StageTimes taken = stage_times() - before;
  EXPECT_GE(taken.capture, 0.004);
  EXPECT_GE(taken.passes, 0.002);
  EXPECT_GE(taken.emit, 0.001);
  EXPECT_EQ(taken.toolchain, 0);
  EXPECT_EQ(taken.kernels, 1);
  // The stages are the whole but for the pause.
  EXPECT_NEAR(taken.total(), taken.capture + taken.passes + taken.emit, 1e-9);
  EXPECT_LE(taken.total(), wall.count() - 0.003);
  EXPECT_NEAR(stage_seconds_of_this_thread() - here, taken.total(), 1e-9);
}

TEST(StageTimes, EachThreadCountsItsOwn) {
  auto before = stage_times();
  double here = stage_seconds_of_this_thread();
  StageTimer waiting(CompileStage::kNone);
  std::thread([] {
    StageTimer timer(CompileStage::kToolchain);
    spend(0.002);
  }).join();
  EXPECT_GE((stage_times() - before).toolchain, 0.002);
  EXPECT_EQ(stage_seconds_of_this_thread(), here);
}

}  // namespace
}  // namespace sinter
