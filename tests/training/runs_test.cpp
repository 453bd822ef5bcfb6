// Whole runs of training beside PyTorch's, on a CPU.
#include "tests/training/runs.h"

namespace sinter::training_runs {
namespace {

// As far again as PyTorch's eager and compiled runs are apart: they are but two draws of rounding, and these are two more.
constexpr double kAutocastFactor = 2;

class TrainingRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainingRuns, LossesOfEagerSteps) {
  expect_recorded_losses(GetParam(), Precision::kF32, How::kEager, cpu(), kAutocastFactor);
}
TEST_P(TrainingRuns, LossesOfCompiledSteps) {
  expect_recorded_losses(GetParam(), Precision::kF32, How::kCompiled, cpu(), kAutocastFactor);
}
TEST_P(TrainingRuns, AutocastLossesOfEagerSteps) {
  expect_recorded_losses(GetParam(), Precision::kAutocast, How::kEager, cpu(), kAutocastFactor);
}
TEST_P(TrainingRuns, AutocastLossesOfCompiledSteps) {
  expect_recorded_losses(GetParam(), Precision::kAutocast, How::kCompiled, cpu(), kAutocastFactor);
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingRuns, ::testing::ValuesIn(names()), [](auto& info) { return info.param; });

}  // namespace
}  // namespace sinter::training_runs
