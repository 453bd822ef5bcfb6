// A tokenizer.json, a zero byte, and a text: reading, encoding and decoding either work or throw an Error.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\0');
  std::string_view text = end == input.npos ? "Call me Ishmael. \xE2\x82\xAC 12<s>" : input.substr(end + 1);
  try {
    auto tokenizer = sinter::Tokenizer::from_json(input.substr(0, end));
    auto ids = tokenizer.encode(text);
    sinter::StreamDecoder stream(tokenizer);
    std::string streamed;
    for (int64_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    if (streamed != tokenizer.decode(ids)) std::abort();
  } catch (const sinter::Error&) {
  }
  return 0;
}
