#include "sinter/data/image.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/data/codecs.h"
#include "sinter/io/file.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::data {

namespace {

constexpr std::string_view kPngBegin = "\x89PNG\r\n\x1a\n", kJpegBegin = "\xff\xd8\xff";

struct Color {
  uint8_t red, green, blue, alpha;
};

Color color_at(const uint8_t* pixel, int64_t channels) {
  switch (channels) {
    case 1:
      return {pixel[0], pixel[0], pixel[0], 255};
    case 2:
      return {pixel[0], pixel[0], pixel[0], pixel[1]};
    case 3:
      return {pixel[0], pixel[1], pixel[2], 255};
  }
  return {pixel[0], pixel[1], pixel[2], pixel[3]};
}

// The weights add up to 2^16.
uint8_t gray_of(Color c) { return uint8_t((c.red * 19595 + c.green * 38470 + c.blue * 7471 + 0x8000) >> 16); }

// One plane for each channel.
Tensor planes_of(const Pixels& pixels, ImageMode mode) {
  const int64_t channels = mode == ImageMode::kGray   ? 1
                           : mode == ImageMode::kRGB  ? 3
                           : mode == ImageMode::kRGBA ? 4
                                                      : pixels.channels;
  const int64_t count = pixels.height * pixels.width;
  Tensor out = empty({channels, pixels.height, pixels.width}, kUInt8);
  auto* plane = out.data_ptr<uint8_t>();
  const uint8_t* from = pixels.bytes.data();
  if (channels == pixels.channels) {
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < count; ++i) plane[c * count + i] = from[i * channels + c];
    return out;
  }
  for (int64_t i = 0; i < count; ++i) {
    const Color color = color_at(from + i * pixels.channels, pixels.channels);
    const uint8_t values[] = {color.red, color.green, color.blue, color.alpha};
    if (channels == 1)
      plane[i] = pixels.channels == 2 ? color.red : gray_of(color);
    else
      for (int64_t c = 0; c < channels; ++c) plane[c * count + i] = values[c];
  }
  return out;
}

}  // namespace

Tensor decode_image(std::string_view bytes, ImageMode mode, const std::string& name) {
  if (bytes.starts_with(kPngBegin)) return planes_of(decode_png(bytes, name), mode);
  check(bytes.starts_with(kJpegBegin), "read_image: '{}' is neither PNG nor JPEG", name);
  return planes_of(decode_jpeg(bytes, name), mode);
}

Tensor read_image(const std::string& path, ImageMode mode) {
  return decode_image(MappedFile("read_image", path).bytes(), mode, path);
}

void write_png(const std::string& path, const Tensor& image) {
  check(image.defined() && !image.is_traced() && image.dtype() == kUInt8 && (image.dim() == 2 || image.dim() == 3),
        "write_png: a picture is u8[height, width] or u8[channels, height, width]");
  const IntList& sizes = image.impl().sizes;
  Pixels pixels;
  pixels.channels = image.dim() == 2 ? 1 : sizes[0];
  pixels.height = sizes[sizes.size() - 2];
  pixels.width = sizes[sizes.size() - 1];
  check(pixels.channels >= 1 && pixels.channels <= 4 && pixels.height > 0 && pixels.width > 0 &&
            pixels.width <= kMaxPixels / pixels.height,
        "write_png: no picture has the shape {}", sizes);
  const int64_t count = pixels.height * pixels.width;
  std::vector<uint8_t> planes(size_t(count * pixels.channels));
  copy_packed(image, planes.data());
  pixels.bytes.resize(planes.size());
  for (int64_t c = 0; c < pixels.channels; ++c)
    for (int64_t i = 0; i < count; ++i) pixels.bytes[size_t(i * pixels.channels + c)] = planes[size_t(c * count + i)];
  const std::string bytes = encode_png(pixels, path);
  PendingFile file("write_png", path);
  file.write(bytes);
  file.commit();
}

}  // namespace sinter::data
