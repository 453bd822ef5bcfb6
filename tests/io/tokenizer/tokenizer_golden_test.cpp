// Every recorded string of every tokenizer under tests/data/tokenizers: ids and decoded text are those of the original.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator(std::string(SINTER_TEST_DATA) + "/tokenizers"))
    if (fs::exists(entry.path() / "golden.json")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string given_text(const json& entry) {
  if (!entry.contains("hex")) return entry["text"];
  std::string hex = entry["hex"], bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class TokenizerGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, IdsAndTextAreTheRecordedOnes) {
  std::string folder = std::string(SINTER_TEST_DATA) + "/tokenizers/" + GetParam();
  Tokenizer tokenizer = Tokenizer::from_file(folder + "/tokenizer.json");
  json golden = json::parse(std::ifstream(folder + "/golden.json"));
  ASSERT_GE(golden.size(), 10u);
  for (auto& entry : golden) {
    std::string text = given_text(entry);
    SCOPED_TRACE(entry.contains("hex") ? entry["hex"].dump() : entry["text"].dump());
    auto ids = tokenizer.encode(text);
    ASSERT_EQ(ids, entry["ids"].get<std::vector<int64_t>>());
    if (entry.contains("plain")) {
      EXPECT_EQ(tokenizer.encode(text, false), entry["plain"].get<std::vector<int64_t>>());
    }
    EXPECT_EQ(tokenizer.decode(ids), entry["decoded"].get<std::string>());
    if (entry.contains("with_special")) {
      EXPECT_EQ(tokenizer.decode(ids, false), entry["with_special"].get<std::string>());
    }
  }
}

TEST_P(TokenizerGolden, StreamIsTheWholeInWholeCharacters) {
  std::string folder = std::string(SINTER_TEST_DATA) + "/tokenizers/" + GetParam();
  Tokenizer tokenizer = Tokenizer::from_file(folder + "/tokenizer.json");
  json golden = json::parse(std::ifstream(folder + "/golden.json"));
  for (bool skip : {true, false}) {
    StreamDecoder stream(tokenizer, skip);
    for (auto& entry : golden) {
      auto ids = entry["ids"].get<std::vector<int64_t>>();
      std::string text;
      auto take = [&](const std::string& piece) {
        json whole = piece;  // dumping throws when the piece is not valid UTF-8
        EXPECT_NO_THROW(whole.dump());
        text += piece;
      };
      for (int64_t id : ids) take(stream.push(id));
      take(stream.finish());
      EXPECT_EQ(text, tokenizer.decode(ids, skip));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden, ::testing::ValuesIn(folders()), [](auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace sinter
