// What a user meets on a machine without ROCm: errors that name what is missing.
#include "sinter/runtime/hip/hip.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

class WithoutRocm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (runtime::hip_runtime().problem().empty()) GTEST_SKIP() << "there is an AMD GPU here";
  }
};

TEST_F(WithoutRocm, TheLibraryIsNamed) {
  auto& problem = runtime::hip_runtime().problem();
  EXPECT_TRUE(problem.find("libamdhip64") != std::string::npos || problem.find("HIP") != std::string::npos) << problem;
  auto& compiler = runtime::hip_runtime().compiler_problem();
  EXPECT_TRUE(compiler.empty() || compiler.find("libhiprtc") != std::string::npos) << compiler;
}

TEST_F(WithoutRocm, TensorsSaySo) {
  const std::string want = "device hip:0 is not available: " + runtime::hip_runtime().problem();
  for (auto& message : {error_of([] { zeros({2}, hip()); }), error_of([] { ones({2}).to(hip()); }),
                        error_of([] { empty({2}, TensorOptions().device(parse_device("hip"))); })})
    EXPECT_NE(message.find(want), std::string::npos) << message;
}

// What needs no device goes on: passes ask whether a contraction begins a group.
TEST_F(WithoutRocm, TheEngineSaysSoWhenItIsAskedForTheDevice) {
  const DeviceEngine& engine = engine_of(hip(3));
  EXPECT_TRUE(engine.op_kernels().empty());
  EXPECT_NE(error_of([&] { engine.target(); }).find("device hip:3 is not available"), std::string::npos);
  EXPECT_NE(error_of([&] { engine.synchronize(); }).find("device hip:3 is not available"), std::string::npos);
}

TEST(HipDevice, HasAName) {
  EXPECT_EQ(to_string(hip(2)), "hip:2");
  EXPECT_EQ(parse_device("hip"), hip());
  EXPECT_EQ(parse_device("hip:2"), hip(2));
  EXPECT_NE(hip(), cuda());
  for (auto* text : {"hip:", "hip:x", "hipp", "hip:128"}) EXPECT_THROW(parse_device(text), Error) << text;
}

}  // namespace
}  // namespace sinter
