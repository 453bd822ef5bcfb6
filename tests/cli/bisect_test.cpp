// `sinter bisect` and `sinter run`, as a user runs them. That faults are found is tested in tests/capture/bisect_test.cpp.
#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/own_directory.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

using nlohmann::json;
using testing::run_command;

std::string fixture(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/models/" + name; }

class CliBisect : public testing::WithoutThreadSanitizer {};

TEST_F(CliBisect, RightModelsAreRight) {
  OwnDirectory directory;
  for (std::string name : {"gpt2", "bert"}) {
    auto result = run_command("bisect --model " + fixture(name) + " --prompt-length 6 --json --output " + directory.file("out"));
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    auto report = json::parse(result.out);
    EXPECT_EQ(report["fault"], "none") << result.out;
    EXPECT_GE(report["programs"], 1) << name;
    EXPECT_TRUE(report["files"].empty());
  }
}

TEST_F(CliBisect, SaysSoInWords) {
  auto result = run_command("bisect --model " + fixture("gpt2") + " --prompt-length 4");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("nothing is wrong"), std::string::npos) << result.out;
}

TEST_F(CliBisect, EagerModeHasNothingToBisect) {
  EXPECT_EQ(run_command("bisect --mode eager").code, 2);
}

TEST(CliRun, RunsAGraphFile) {
  OwnDirectory directory;
  std::ofstream(directory.file("small.ir")) << "// about it\n// input 0: ones({2, 3})\n%0 = input : f32[2, 3]\n"
                                               "%1 = exp(%0) : f32[2, 3]\n%2 = sum(%1) {dims=[1]} : f32[2]\nreturn %2\n";
  auto result = run_command("run " + directory.file("small.ir"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("they agree"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("by the referee"), std::string::npos);
  result = run_command("run " + directory.file("none.ir"));
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("none.ir"), std::string::npos);
}

}  // namespace
}  // namespace sinter
