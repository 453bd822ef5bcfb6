// GGUF files, and checkpoints of `sinter quantize`, where the commands take a folder.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using testing::run_command;

const std::string kFile = std::string(SINTER_TEST_DATA) + "/gguf/types.gguf";

TEST(CliGguf, IsAsGoodAsAFolder) {
  OwnDirectory own;
  auto info = run_command("info --json " + kFile);
  ASSERT_EQ(info.code, 0) << info.err;
  const auto told = nlohmann::json::parse(info.out);
  EXPECT_EQ(told.at("architecture"), "LlamaForCausalLM");
  EXPECT_TRUE(told.at("stored_bytes").contains("Q4_K"));

  const std::string prompt = " --prompt 'the sea' --max-new-tokens 8 --ignore-eos";
  auto text = run_command("generate --model " + kFile + prompt);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_FALSE(text.out.empty());
  std::ofstream(own.file("text.txt")) << std::string(40, 'a') + " the ship and the sea " + std::string(40, 'b');
  auto chat = run_command("chat --max-new-tokens 4 --model " + kFile, "", "the sea\n");
  EXPECT_EQ(chat.code, 0) << chat.err;
  auto evaluated = run_command("evaluate --model " + kFile + " --length 16 --data " + own.file("text.txt"));
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;

  auto exported = run_command("export --cache-length 32 --buckets 16 --model " + kFile + " -o " + own.file("a.sinter"));
  ASSERT_EQ(exported.code, 0) << exported.err;
  auto packaged = run_command("generate --model " + own.file("a.sinter") + prompt);
  EXPECT_EQ(packaged.code, 0) << packaged.err;
  EXPECT_EQ(packaged.out, run_command("generate --cache-length 32 --model " + kFile + prompt).out);

  auto twice = run_command("generate --quantize int8 --model " + kFile + prompt);
  EXPECT_NE(twice.code, 0);
  EXPECT_NE(twice.err.find("quantised already"), std::string::npos) << twice.err;
}

TEST(CliQuantize, WritesWhatIsReadAgain) {
  OwnDirectory own;
  const std::string prompt = " --prompt 'Call me Ishmael.' --max-new-tokens 8";
  const std::string plain = run_command("generate" + prompt).out;
  for (const std::string format : {"int8", "int4", "fp8"}) {
    const std::string folder = own.file(format);
    auto written = run_command("quantize --format " + format + " -o " + folder);
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_TRUE(fs::exists(folder + "/tokenizer.json"));
    EXPECT_LT(fs::file_size(folder + "/model.safetensors"), size_t(format == "int4" ? 4500000 : 6500000));
    auto text = run_command("generate --model " + folder + prompt);
    EXPECT_EQ(text.code, 0) << text.err;
    if (format == "int8") {
      EXPECT_EQ(text.out, plain);
    }
    EXPECT_EQ(run_command("generate --cache-dtype int8 --model " + folder + prompt).code, 0);
  }
  EXPECT_NE(run_command("quantize --format int3 -o " + own.file("x")).code, 0);
  EXPECT_NE(run_command("quantize").code, 0);
  auto again = run_command("quantize --model " + own.file("int8") + " -o " + own.file("x"));
  EXPECT_NE(again.err.find("quantised yet"), std::string::npos) << again.err;
}

}  // namespace
}  // namespace sinter
