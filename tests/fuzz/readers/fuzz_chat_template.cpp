// A template, a zero byte, and a context: parsing and rendering either work or throw an Error.
#include <cstdint>
#include <string_view>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = input.find('\0');
  std::string_view context = end == input.npos
                                 ? R"({"bos_token": "<s>", "add_generation_prompt": true, "tools": [{"a": 1.5}],
      "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null}]})"
                                 : input.substr(end + 1);
  try {
    sinter::ChatTemplate(input.substr(0, end)).render(context, {.work = 200'000, .output = 1 << 20});
  } catch (const sinter::Error&) {
  }
  return 0;
}
