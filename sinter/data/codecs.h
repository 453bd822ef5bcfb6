#pragma once
// What libpng and libjpeg are asked for. Both report errors by a long jump: their callers here hold nothing that has a
// destructor.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::data {

// More is an Error: a file of a few bytes may claim any size.
inline constexpr int64_t kMaxPixels = int64_t(1) << 27;

// Rows of pixels, their channels side by side: gray, gray and transparency, RGB, or RGBA.
struct Pixels {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> bytes;
};

Pixels decode_png(std::string_view bytes, const std::string& name);
Pixels decode_jpeg(std::string_view bytes, const std::string& name);
std::string encode_png(const Pixels& pixels, const std::string& name);

}  // namespace sinter::data
