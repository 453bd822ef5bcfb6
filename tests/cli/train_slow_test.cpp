#include <gtest/gtest.h>

#include "tests/cli/train_runs.h"

namespace sinter {
namespace {

TEST(CliTrainSlow, SurvivesManyKills) { testing::TrainRuns().survive_kills(20, 2); }

}  // namespace
}  // namespace sinter
