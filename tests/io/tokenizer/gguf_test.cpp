// The tokenizers in GGUF files (tools/record_gguf.py): the ids are those of the originals.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sinter/io/config.h"
#include "sinter/io/gguf/gguf.h"
#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter {
namespace {

using nlohmann::json;

std::string recorded(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/gguf/" + name; }

json golden(const std::string& path) { return json::parse(std::ifstream(path)); }

// Whose tokens were found by the rules of its file are, in GGUF, those of the original.
TEST(GgufTokenizer, BytePairTokenizers) {
  for (const std::string name : {"bpe-gpt2", "bpe-llama3", "bpe-qwen2", "bpe-o200k"}) {
    const std::string original = std::string(SINTER_TEST_DATA) + "/tokenizers/" + name;
    const Tokenizer tokenizer = Tokenizer::from_pretrained(recorded("tokenizer-" + name + ".gguf"));
    int cases = 0;
    for (auto& entry : golden(original + "/golden.json")) {
      // What is around added tokens such files do not tell, nor which normalised text they are sought in.
      if (!entry.contains("text") || entry["text"].get<std::string>().find('<') != std::string::npos) continue;
      const std::string text = entry["text"];
      const auto ids = entry.contains("plain") ? entry["plain"] : entry["ids"];
      EXPECT_EQ(tokenizer.encode(text, false), ids.get<std::vector<int64_t>>()) << name << ": " << text;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false)), entry["decoded"].get<std::string>()) << name;
      ++cases;
    }
    EXPECT_GT(cases, 10) << name;
  }
}

TEST(GgufTokenizer, SentencePieces) {
  const Tokenizer tokenizer = Tokenizer::from_pretrained(recorded("tokenizer-spm.gguf"));
  int cases = 0;
  for (auto& entry : golden(recorded("tokenizer-spm.json"))) {
    const std::string text = entry["text"];
    if (text.find('<') != std::string::npos) continue;  // control tokens of the file, which texts of others do not have
    const auto ids = tokenizer.encode(text);
    EXPECT_EQ(ids, entry["ids"].get<std::vector<int64_t>>()) << text;
    // What stands for a space there comes back as one.
    if (text.find("\u2581") == std::string::npos) {
      EXPECT_EQ(tokenizer.decode(ids), text);
    }
    ++cases;
  }
  EXPECT_GT(cases, 10);
  EXPECT_EQ(tokenizer.bos_id(), 1);
  EXPECT_EQ(tokenizer.eos_id(), 2);
  const GenerationConfig config = GenerationConfig::read(CheckpointFiles(
      std::map<std::string, std::string>{
          {"generation_config.json", *gguf_text(GgufFile(recorded("tokenizer-spm.gguf")), "generation_config.json")}},
      "spm"));
  EXPECT_EQ(config.eos_token_ids, std::vector<int64_t>{2});
}

}  // namespace
}  // namespace sinter
