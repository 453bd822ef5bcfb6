#include "sinter/io/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sinter/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

TEST(ConfigFile, ReadsByType) {
  auto file = ConfigFile::parse(R"({"layers": 3, "eps": 1e-5, "tie": true, "act": "silu", "ids": [1, 2], "one": 7,
                                    "none": null, "rope": {"factor": 8}, "names": ["a"]})",
                                "config.json");
  EXPECT_EQ(file.integer("layers"), 3);
  EXPECT_EQ(file.number("layers"), 3.0);
  EXPECT_EQ(file.number("eps"), 1e-5);
  EXPECT_TRUE(file.boolean("tie"));
  EXPECT_EQ(file.text("act"), "silu");
  EXPECT_EQ(file.integers("ids"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(file.integers("one"), (std::vector<int64_t>{7}));
  EXPECT_TRUE(file.integers("none").empty());
  EXPECT_EQ(file.integer("none", 4), 4);
  EXPECT_EQ(file.texts("names"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(file.object("rope")->number("factor"), 8);
  EXPECT_FALSE(file.object("none").has_value());
  EXPECT_EQ(file.keys().size(), 9u);
}

TEST(ConfigFile, ErrorsNameFileAndKey) {
  auto file = ConfigFile::parse(R"({"layers": "many", "size": -4, "ids": [1, "b"], "rope": {"factor": []},
                                    "big": 18446744073709551615})",
                                "dir/config.json");
  EXPECT_EQ(message_of([&] { file.integer("hidden_size"); }), "config: 'dir/config.json' lacks 'hidden_size'");
  EXPECT_EQ(message_of([&] { file.integer("layers"); }),
            "config: 'layers' in 'dir/config.json' should be an integer, not \"many\"");
  EXPECT_NE(message_of([&] { file.integer("layers", 3); }).find("should be an integer"), std::string::npos)
      << "a default is no excuse for a wrong value";
  EXPECT_NE(message_of([&] { file.size("size"); }).find("'size' in 'dir/config.json' is -4"), std::string::npos);
  EXPECT_NE(message_of([&] { file.integers("ids"); }).find("an entry of 'ids'"), std::string::npos);
  EXPECT_NE(message_of([&] { file.integer("big"); }).find("should be an integer"), std::string::npos);
  EXPECT_NE(message_of([&] { file.object("rope")->number("factor"); }).find("'dir/config.json: rope'"),
            std::string::npos);
}

TEST(ConfigFile, RefusesWhatIsNoObject) {
  EXPECT_NE(message_of([] { ConfigFile::parse("{", "c"); }).find("'c' is not valid JSON"), std::string::npos);
  EXPECT_NE(message_of([] { ConfigFile::parse("[1]", "c"); }).find("does not hold an object"), std::string::npos);
  EXPECT_NE(message_of([] { ConfigFile::parse("{\"a\":" + std::string(100000, '['), "c"); }).find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(message_of([] { ConfigFile::read("/nonexistent/config.json"); }).find("cannot read"), std::string::npos);
}

TEST(GenerationConfig, TakesTheRestFromTheModel) {
  OwnDirectory own;
  const fs::path& folder = own.path();
  EXPECT_TRUE(GenerationConfig::read(folder).eos_token_ids.empty());
  std::ofstream(folder / "config.json") << R"({"eos_token_id": 2, "bos_token_id": 1})";
  EXPECT_EQ(GenerationConfig::read(folder).eos_token_ids, (std::vector<int64_t>{2}));
  std::ofstream(folder / "generation_config.json")
      << R"({"eos_token_id": [5, 6], "temperature": 0.7, "top_p": 0.9, "do_sample": true})";
  GenerationConfig config = GenerationConfig::read(folder);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.temperature, 0.7);
  EXPECT_TRUE(config.do_sample);
  EXPECT_FALSE(config.top_k.has_value());
}

}  // namespace
}  // namespace sinter
