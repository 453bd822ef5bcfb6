#include "sinter/io/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/regex.h"
#include "sinter/io/tokenizer/unicode.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json word_level() {
  return json::parse(R"({"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2}},
                         "pre_tokenizer": {"type": "WhitespaceSplit"}})");
}

json bpe(const json& merges) {
  return {{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", merges}}}};
}

std::string refusal_of(const std::string& text) {
  return error_of([&] { Tokenizer::from_json(text).encode("a b"); });
}

void expect_error(const json& file, const std::string& part) {
  EXPECT_NE(refusal_of(file.dump()).find(part), std::string::npos) << refusal_of(file.dump());
}

TEST(Tokenizer, VocabularyIsVisible) {
  auto tokenizer = Tokenizer::from_json(word_level().dump());
  EXPECT_EQ(tokenizer.vocab_size(), 3);
  EXPECT_EQ(tokenizer.token_id("b"), 2);
  EXPECT_EQ(tokenizer.token_id("c"), std::nullopt);
  EXPECT_EQ(tokenizer.token(1), "a");
  EXPECT_THROW(tokenizer.token(3), Error);
  EXPECT_THROW(tokenizer.token(-1), Error);
  EXPECT_EQ(tokenizer.encode("a zebra b"), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{1, 99, -5, 2}), "a b");  // ids of no token are left out
}

TEST(Tokenizer, MergesComeInBothForms) {
  for (const char* merges : {R"([["a", "b"]])", R"(["a b"])"}) {
    auto tokenizer = Tokenizer::from_json(bpe(json::parse(merges)).dump());
    EXPECT_EQ(tokenizer.encode("abba"), (std::vector<int64_t>{2, 1, 0}));
  }
}

TEST(Tokenizer, LongAndShortWordsMergeAlike) {
  auto tokenizer = Tokenizer::from_json(bpe(json::parse(R"([["a", "b"]])")).dump());
  std::string text;
  for (int pairs = 1; pairs < 100; ++pairs) {
    text += "ab";
    EXPECT_EQ(tokenizer.encode(text), std::vector<int64_t>(size_t(pairs), 2));
    EXPECT_EQ(tokenizer.encode(text + "a").back(), 0);
  }
}

TEST(Tokenizer, BrokenFilesAreErrorsThatNameThePlace) {
  EXPECT_NE(refusal_of("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal_of("[1, 2]").find("must be an object"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(100'000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal_of("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0").find("not valid JSON"), std::string::npos);
  expect_error({{"model", {{"type", "Magic"}}}}, "model is of the unknown type 'Magic'");
  expect_error({{"model", {{"type", "WordLevel"}, {"vocab", {{"a", "0"}}}}}}, "model.vocab must be an integer");
  expect_error({{"model", {{"type", "WordLevel"}, {"vocab", {{"a", 4000000000u}}}}}}, "must be an integer");
  expect_error({{"model", {{"type", "WordLevel"}, {"vocab", {{"a", 2000000000}}}}}}, "far beyond the others");
  expect_error(bpe(json::parse(R"([["a", "x"]])")), "'x', which is not in the vocabulary");
  expect_error(bpe(json::parse(R"([["b", "a"]])")), "into a token that is not in the vocabulary");
  expect_error(bpe(json::parse(R"([["a", "b", "c"]])")), "not a pair");
  expect_error(bpe(json::parse("[1]")), "merge");
  expect_error({{"model", {{"type", "Unigram"}, {"vocab", json::parse(R"([["a", 0.5]])")}, {"unk_id", 7}}}}, "unk_id");
  expect_error({{"model", {{"type", "Unigram"}, {"vocab", json::parse(R"([["a", 0.5]])")}}}}, "no unk_id");
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    json file = word_level();
    file[part] = {{"type", "Sorcery"}};
    expect_error(file, "of the unknown type 'Sorcery'");
    file[part] = 7;
    expect_error(file, std::string(part) + " must be an object");
  }
}

TEST(Tokenizer, BrokenCharacterMapsAreErrors) {
  json file = word_level();
  for (std::string map : {"", "AAAA", "/////w==", "!!!!", "BAAAAAAAAAA"}) {
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
    if (map == "BAAAAAAAAAA") {
      EXPECT_NO_THROW(Tokenizer::from_json(file.dump()).encode("a b \xC3\xA9"));
    } else {
      expect_error(file, "precompiled_charsmap");
    }
  }
}

TEST(Tokenizer, PatternsThatNeverEndAreErrors) {
  json file = word_level();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a+)+$|(?:(?:b|bb)+)+c"}}}, {"behavior", "Isolated"}};
  auto tokenizer = Tokenizer::from_json(file.dump());
  EXPECT_THROW(tokenizer.encode(std::string(3000, 'b') + "!"), Error);
  file["pre_tokenizer"]["pattern"]["Regex"] = "(((";
  EXPECT_THROW(Tokenizer::from_json(file.dump()), Error);
  file["pre_tokenizer"]["pattern"]["Regex"] = "[a&&";
  EXPECT_THROW(Tokenizer::from_json(file.dump()), Error);
}

TEST(Tokenizer, ManyThreadsMayEncode) {
  auto tokenizer = Tokenizer::from_file(std::string(SINTER_TEST_DATA) + "/tokenizers/bpe-gpt2/tokenizer.json");
  std::string text = "Call me Ishmael. Some years ago, never mind how long precisely";
  auto expected = tokenizer.encode(text);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += tokenizer.encode(text) != expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, FolderHoldsSpecialTokensAndTemplate) {
  OwnDirectory own;
  const fs::path& folder = own.path();
  std::ofstream(folder / "tokenizer.json") << word_level();
  auto plain = Tokenizer::from_pretrained(folder);
  EXPECT_FALSE(plain.has_chat_template());
  EXPECT_EQ(plain.bos_id(), std::nullopt);
  EXPECT_THROW(plain.apply_chat_template({}), Error);

  std::ofstream(folder / "special_tokens_map.json") << R"({"eos_token": "a"})";
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"bos_token": {"content": "b"}, "eos_token": null, "chat_template":
      [{"name": "default", "template":
        "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{{ m.x }}{% endfor %}"},
       {"name": "tool_use", "template": "{{ tools | tojson }}{{ day }}"}]})";
  auto tokenizer = Tokenizer::from_pretrained(folder);
  EXPECT_EQ(tokenizer.bos_id(), 2);
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  std::vector<ChatMessage> messages{{"user", "hi \xFF", R"({"x": 1})"}, {"bot", "yo"}};
  EXPECT_EQ(tokenizer.apply_chat_template(messages), "buser:hi \uFFFD;1bot:yo;");
  EXPECT_EQ(tokenizer.apply_chat_template(messages, {.tools = R"([{"a": 1}])", .variables = R"({"day": "Monday"})"}),
            "[{\"a\": 1}]Monday");
  EXPECT_THROW(tokenizer.apply_chat_template(messages, {.template_name = "rag"}), Error);
  EXPECT_THROW(tokenizer.apply_chat_template(messages, {.tools = "{"}), Error);
  std::ofstream(folder / "chat_template.jinja") << "file wins";
  EXPECT_EQ(Tokenizer::from_pretrained(folder).apply_chat_template(messages), "file wins");
  fs::remove_all(folder);
  EXPECT_THROW(Tokenizer::from_pretrained(folder), Error);
}

TEST(Unicode, BrokenSequencesBecomeOneReplacementEach) {
  using namespace tokenizers;
  EXPECT_EQ(replace_invalid("a\xE2\x82z"), "a\uFFFDz");
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(replace_invalid("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(incomplete_suffix("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_suffix("a\xE2"), 1u);
  EXPECT_EQ(incomplete_suffix("a\xE2\x82\xAC"), 0u);
  EXPECT_EQ(incomplete_suffix("a\xED\xA0"), 0u);  // can only be broken
}

TEST(Regex, SyntaxIsTranslated) {
  using tokenizers::Regex;
  auto matches = [](const char* pattern, std::string_view text) {
    std::vector<tokenizers::Span> parts;
    Regex(pattern).find_all(text, parts);
    std::string out;
    for (auto& part : parts)
      if (part.match) out += std::string(text.substr(part.begin, part.end - part.begin)) + "|";
    return out;
  };
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "hello"), "h|ll|");
  EXPECT_EQ(matches("[^a[bc]]+", "abcxyz"), "xyz|");
  EXPECT_EQ(matches("\\h+", "xyzBEEFq"), "BEEF|");
  EXPECT_EQ(matches("^b", "a\nb"), "b|");
  EXPECT_EQ(matches("\\p{Letter}+", "ab1"), "ab|");
  EXPECT_EQ(matches("x*", "axxb"), "|xx||");
  EXPECT_EQ(matches("[]a]+", "]a["), "]a|");
}

}  // namespace
}  // namespace sinter
