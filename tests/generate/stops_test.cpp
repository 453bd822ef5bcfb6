#include "sinter/generate/stops.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "tests/generate/whale.h"

namespace sinter {
namespace {

using testing::whale_tokenizer;

struct Streamed {
  std::string text;
  bool stopped = false;
  size_t used = 0;  // tokens
};

Streamed stream(const std::string& text, const std::vector<std::string>& stops) {
  TextStream stream(whale_tokenizer(), stops);
  Streamed out;
  for (int64_t id : whale_tokenizer().encode(text)) {
    out.text += stream.push(id);
    ++out.used;
    // What is given never has to be taken back.
    EXPECT_TRUE(text.starts_with(out.text)) << out.text;
    if (stream.stopped()) break;
  }
  out.text += stream.finish();
  out.stopped = stream.stopped();
  return out;
}

TEST(TextStream, WithoutStopsIsTheText) {
  std::string text = "The whale — 鯨 🐋 — breathes.";
  EXPECT_EQ(stream(text, {}).text, text);
  EXPECT_FALSE(stream(text, {}).stopped);
}

TEST(TextStream, EndsBeforeTheFirstStopString) {
  auto result = stream("one two three four", {"three", "two th"});
  EXPECT_EQ(result.text, "one ");
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(stream("stop at once", {"stop"}).text, "");
}

TEST(TextStream, TextThatOnlyBeganAStopStringIsGiven) {
  EXPECT_EQ(stream("aab aab aac", {"aabb", "aacc"}).text, "aab aab aac");
  EXPECT_EQ(stream("ends with ab", {"abc"}).text, "ends with ab");
  EXPECT_EQ(stream("xaaaab", {"aaab"}).text, "xa") << "the held text begins the string more than once";
}

TEST(TextStream, AnEmptyStopStringIsAMistake) { EXPECT_THROW(TextStream(whale_tokenizer(), {"a", ""}), Error); }

}  // namespace
}  // namespace sinter
