// GGUF files: values, tensors, and what a damaged one says.
#include "sinter/io/gguf/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

std::string recorded(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/gguf/" + name; }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Writes files of this kind, piece by piece.
class Writer {
 public:
  template <class T>
  Writer& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& text(const std::string& text) {
    number<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  Writer& begin(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
    bytes_ = "GGUF";
    return number(version).number(tensors).number(pairs);
  }
  Writer& tensor(const std::string& name, std::vector<uint64_t> sizes, uint32_t type, uint64_t offset) {
    text(name).number(uint32_t(sizes.size()));
    for (uint64_t size : sizes) number(size);
    return number(type).number(offset);
  }
  Writer& data(size_t count) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + count);
    return *this;
  }
  std::string error(const OwnDirectory& own) const {
    save(own);
    return message_of([&] { GgufFile(own.file("x.gguf")); });
  }
  GgufFile file(const OwnDirectory& own) const {
    save(own);
    return GgufFile(own.file("x.gguf"));
  }

 private:
  void save(const OwnDirectory& own) const { std::ofstream(own.file("x.gguf"), std::ios::binary) << bytes_; }
  std::string bytes_;
};

enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kText, kList, kU64, kI64, kF64 };

TEST(Gguf, ValuesAndTensors) {
  OwnDirectory own;
  Writer w;
  w.begin(1, 6).text("a.whole").number<uint32_t>(kI16).number<int16_t>(-7).text("a.half").number<uint32_t>(kF32).number(
      0.5f);
  w.text("a.text").number<uint32_t>(kText).text("hé").text("a.flag").number<uint32_t>(kBool).number<uint8_t>(1);
  w.text("a.list").number<uint32_t>(kList).number<uint32_t>(kU32).number<uint64_t>(2).number(3u).number(4u);
  w.text("a.words").number<uint32_t>(kList).number<uint32_t>(kText).number<uint64_t>(1).text("one");
  w.tensor("m", {32, 3}, 8, 0).data(3 * 34);
  const GgufFile file = w.file(own);
  EXPECT_EQ(file.integer("a.whole"), -7);
  EXPECT_EQ(file.number("a.half"), 0.5);
  EXPECT_EQ(file.number("a.whole"), -7);
  EXPECT_EQ(file.text("a.text"), "hé");
  EXPECT_TRUE(file.boolean("a.flag"));
  EXPECT_EQ(file.integers("a.list"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(file.texts("a.words"), std::vector<std::string>{"one"});
  EXPECT_TRUE(file.texts("a.none").empty());
  EXPECT_EQ(file.integer("a.none", 9), 9);
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.find("m")->shape, (Shape{3, 32}));
  EXPECT_EQ(file.find("m")->size, 3u * 34);
  EXPECT_STREQ(file.find("m")->type.name, "Q8_0");
  EXPECT_NE(message_of([&] { file.text("a.whole"); }).find("is an integer, not a text"), std::string::npos);
  EXPECT_NE(message_of([&] { file.text("a.none"); }).find("lacks 'a.none'"), std::string::npos);
}

TEST(Gguf, LyingFiles) {
  OwnDirectory own;
  const std::pair<std::function<void(Writer&)>, const char*> cases[] = {
      {[](Writer& w) { w.begin(0, 0, 1); }, "version 1"},
      {[](Writer& w) { w.begin(0, 0, 0x03000000); }, "byte order"},
      {[](Writer& w) { w.begin(1, 0); }, "cut short"},
      {[](Writer& w) { w.begin(0, uint64_t(1) << 60); }, "cut short"},
      {[](Writer& w) { w.begin(0, 1).number(~uint64_t(0)); }, "cut short"},
      {[](Writer& w) { w.begin(0, 1).text("a").number(77u); }, "unknown kind 77"},
      {[](Writer& w) { w.begin(0, 1).text("a").number<uint32_t>(kBool).number<uint8_t>(2); }, "neither true nor false"},
      {[](Writer& w) { w.begin(0, 1).text("a").number<uint32_t>(kU64).number(~uint64_t(0)); }, "too large"},
      {[](Writer& w) { w.begin(0, 1).text("a").number<uint32_t>(kList).number<uint32_t>(kList).number<uint64_t>(1); },
       "a list of the unknown kind"},
      {[](Writer& w) {
         w.begin(0, 1).text("a").number<uint32_t>(kList).number<uint32_t>(kU8).number(uint64_t(1) << 50);
       },
       "claims 1125899906842624 entries"},
      {[](Writer& w) {
         w.begin(0, 2)
             .text("a")
             .number<uint32_t>(kU8)
             .number<uint8_t>(2)
             .text("a")
             .number<uint32_t>(kU8)
             .number<uint8_t>(2);
       },
       "two values for 'a'"},
      {[](Writer& w) { w.begin(0, 1).text("general.alignment").number<uint32_t>(kU32).number(33u); },
       "no power of two"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {32, 2}, 8, 0).data(34);
       },
       "cut short"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {33, 2}, 8, 0).data(300);
       },
       "no whole blocks of 32 of Q8_0"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {32, 2}, 4, 0).data(300);
       },
       "unknown type 4"},
      {[](Writer& w) { w.begin(1, 0).tensor("m", {}, 0, 0).data(300); }, "0 dimensions"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {1, 1, 1, 1, 1}, 0, 0).data(300);
       },
       "5 dimensions"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {0, 4}, 0, 0).data(300);
       },
       "beyond reason"},
      {[](Writer& w) {
         w.begin(1, 0).tensor("m", {uint64_t(1) << 40, uint64_t(1) << 40}, 0, 0).data(300);
       },
       "beyond reason"},
      {[](Writer& w) { w.begin(1, 0).tensor("m", {4}, 0, 3).data(300); }, "no multiple of 32"},
      {[](Writer& w) { w.begin(1, 0).tensor("m", {4}, 0, ~uint64_t(31)).data(300); }, "cut short"},
      {[](Writer& w) { w.begin(2, 0).tensor("m", {4}, 0, 0).tensor("m", {4}, 0, 32).data(300); }, "named 'm'"},
      {[](Writer& w) { w.begin(2, 0).tensor("m", {16}, 0, 0).tensor("n", {4}, 0, 32).data(300); }, "overlap"},
  };
  for (auto& [write, part] : cases) {
    Writer w;
    write(w);
    const std::string error = w.error(own);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error.find("x.gguf"), std::string::npos) << error;
  }
  EXPECT_FALSE(GgufFile::is_gguf(own.file("none")));
}

TEST(Gguf, MoreLayersThanThereAre) {
  OwnDirectory own;
  Writer w;
  w.begin(1, 2).text("general.architecture").number<uint32_t>(kText).text("gemma3");
  w.text("gemma3.block_count").number<uint32_t>(kU32).number(~0u).tensor("token_embd.weight", {4, 2}, 0, 0).data(32);
  const GgufFile file = w.file(own);
  EXPECT_NE(message_of([&] { gguf_text(file, "config.json"); }).find("4294967295 layers"), std::string::npos);
}

// Cut anywhere, or with a byte turned, a file is read or refused.
TEST(Gguf, DamagedFiles) {
  OwnDirectory own;
  const std::string whole = bytes_of(recorded("tokenizer-bpe-gpt2.gguf"));
  int refused = 0;
  auto read = [&](const std::string& bytes) {
    std::ofstream(own.file("x.gguf"), std::ios::binary) << bytes;
    try {
      const GgufFile file(own.file("x.gguf"));
      for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
        gguf_text(file, name);
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t size = 0; size < whole.size(); size += 97) read(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); at += 61) {
    std::string turned = whole;
    turned[at] = char(turned[at] ^ 0xff);
    read(turned);
  }
  EXPECT_GT(refused, 100);
}

TEST(Gguf, TokenizersThatAreNotKnown) {
  OwnDirectory own;
  Writer w;
  w.begin(0, 4).text("tokenizer.ggml.model").number<uint32_t>(kText).text("gpt2");
  w.text("tokenizer.ggml.pre").number<uint32_t>(kText).text("new-way");
  w.text("tokenizer.ggml.tokens").number<uint32_t>(kList).number<uint32_t>(kText).number<uint64_t>(1).text("a");
  w.text("general.architecture").number<uint32_t>(kText).text("mamba");
  const GgufFile file = w.file(own);
  EXPECT_NE(message_of([&] { gguf_text(file, "tokenizer.json"); }).find("'new-way'"), std::string::npos);
  EXPECT_NE(message_of([&] { gguf_text(file, "config.json"); }).find("'mamba'"), std::string::npos);
}

}  // namespace
}  // namespace sinter
