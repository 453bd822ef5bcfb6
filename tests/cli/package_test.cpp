// `sinter export` and packages where nothing can be compiled, run as a user runs them.
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using testing::run_command;

class CliPackage : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return directory_.file(name); }
  // g++ is the only compiler allowed, and it is not there; nothing is in the cache.
  std::string without_compilers() const {
    return "SINTER_CPU_COMPILER=gxx PATH=/nonexistent SINTER_CACHE_DIR=" + file("empty_cache");
  }

  OwnDirectory directory_;
};

TEST_F(CliPackage, RunsWithoutACompiler) {
  auto exported = run_command("export --cache-length 64 --buckets 16 -o " + file("whale.sinter"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  std::string prompt = " --prompt 'Call me Ishmael.' --max-new-tokens 12";
  auto plain = run_command("generate --cache-length 64" + prompt);
  auto packaged = run_command("generate --model " + file("whale.sinter") + prompt, without_compilers());
  EXPECT_EQ(packaged.code, 0) << packaged.err;
  EXPECT_EQ(packaged.out, plain.out);
  EXPECT_FALSE(plain.out.empty());
  // That there was none: the same without the package fails.
  auto none = run_command("generate --cache-length 64" + prompt, without_compilers());
  EXPECT_NE(none.code, 0);
  // What was not exported is an error that says why.
  auto sampled = run_command("generate --temperature 1 --model " + file("whale.sinter") + prompt, without_compilers());
  EXPECT_NE(sampled.code, 0);
  EXPECT_NE(sampled.err.find("no compiler could make"), std::string::npos) << sampled.err;
  EXPECT_NE(sampled.err.find("whale.sinter"), std::string::npos) << sampled.err;

  auto shown = run_command("package --verify --json " + file("whale.sinter"));
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(nlohmann::json::parse(shown.out).at("cache_length"), 64);
}

TEST_F(CliPackage, SamplingsAreExportedWhenAskedFor) {
  auto exported = run_command("export --cache-length 64 --buckets 16 --sampling temperature,top-p -o " + file("a.sinter"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  std::string how = "generate --prompt The --temperature 0.8 --top-p 0.9 --seed 3 --max-new-tokens 8";
  auto packaged = run_command(how + " --model " + file("a.sinter"), without_compilers());
  EXPECT_EQ(packaged.code, 0) << packaged.err;
  EXPECT_EQ(packaged.out, run_command(how + " --cache-length 64").out);
}

TEST_F(CliPackage, HoldsQuantizedWeights) {
  ASSERT_EQ(run_command("export --cache-length 64 --buckets 16 -o " + file("plain.sinter")).code, 0);
  auto exported = run_command("export --cache-length 64 --buckets 16 --quantize int4 -o " + file("small.sinter"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_LT(fs::file_size(file("small.sinter")) + 2000000, fs::file_size(file("plain.sinter")));
  std::string prompt = " --prompt 'Call me Ishmael.' --max-new-tokens 12";
  auto packaged = run_command("generate --model " + file("small.sinter") + prompt, without_compilers());
  EXPECT_EQ(packaged.code, 0) << packaged.err;
  EXPECT_EQ(packaged.out, run_command("generate --cache-length 64 --quantize int4" + prompt).out);
}

TEST_F(CliPackage, WrongUse) {
  EXPECT_NE(run_command("export").code, 0);
  auto eager = run_command("export --mode eager -o " + file("a.sinter"));
  EXPECT_NE(eager.err.find("--mode eager"), std::string::npos) << eager.err;
  auto sampling = run_command("export --sampling warm -o " + file("a.sinter"));
  EXPECT_NE(sampling.err.find("not 'warm'"), std::string::npos) << sampling.err;
  EXPECT_FALSE(fs::exists(file("a.sinter")));
  auto missing = run_command("package " + file("nothing.sinter"));
  EXPECT_NE(missing.err.find("cannot open"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace sinter
