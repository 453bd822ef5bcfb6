// Whole runs of training on a GPU beside PyTorch's, which were recorded on a CPU.
#include "sinter/runtime/cuda/device.h"
#include "tests/training/runs.h"

namespace sinter::training_runs {
namespace {

// Other ops run in bf16 here than on a CPU.
constexpr double kAutocastFactor = 3;

class GpuTrainingRuns : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  }
};

TEST_P(GpuTrainingRuns, LossesOfEagerSteps) {
  expect_recorded_losses(GetParam(), Precision::kF32, How::kEager, cuda(), kAutocastFactor);
}
TEST_P(GpuTrainingRuns, LossesOfCompiledSteps) {
  expect_recorded_losses(GetParam(), Precision::kF32, How::kCompiled, cuda(), kAutocastFactor);
}
TEST_P(GpuTrainingRuns, AutocastLossesOfEagerSteps) {
  expect_recorded_losses(GetParam(), Precision::kAutocast, How::kEager, cuda(), kAutocastFactor);
}
TEST_P(GpuTrainingRuns, AutocastLossesOfCompiledSteps) {
  expect_recorded_losses(GetParam(), Precision::kAutocast, How::kCompiled, cuda(), kAutocastFactor);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTrainingRuns, ::testing::ValuesIn(names()), [](auto& info) { return info.param; });

}  // namespace
}  // namespace sinter::training_runs
