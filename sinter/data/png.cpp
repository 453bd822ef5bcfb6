#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/data/codecs.h"

namespace sinter::data {

namespace {

// Deflate makes nothing more than this much smaller.
constexpr uint64_t kBestRatio = 1032;

struct Problem {
  char text[160] = "";
};

void on_error(png_structp png, png_const_charp message) {
  auto* problem = static_cast<Problem*>(png_get_error_ptr(png));
  std::snprintf(problem->text, sizeof problem->text, "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

struct Reading {
  std::string_view bytes;
  size_t at = 0;
  Problem problem;
  png_structp png = nullptr;
  png_infop info = nullptr;
  Pixels pixels;
  std::vector<png_bytep> rows;

  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
};

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading->bytes.size() - reading->at) png_error(png, "it is cut short");
  std::memcpy(out, reading->bytes.data() + reading->at, count);
  reading->at += count;
}

// False when libpng has found something wrong.
bool read(Reading& reading) {
  png_structp png = reading.png;
  png_infop info = reading.info;
  Pixels& pixels = reading.pixels;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &reading, read_bytes);
  png_read_info(png, info);
  pixels.width = png_get_image_width(png, info);
  pixels.height = png_get_image_height(png, info);
  if (pixels.width > kMaxPixels / pixels.height) png_error(png, "it has too many pixels");
  if (uint64_t(pixels.height) * png_get_rowbytes(png, info) / kBestRatio > reading.bytes.size())
    png_error(png, "it claims more pixels than it can hold");
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  pixels.channels = png_get_channels(png, info);
  const size_t row_bytes = size_t(pixels.width * pixels.channels);
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "its rows are not understood");
  pixels.bytes.resize(row_bytes * size_t(pixels.height));
  for (int64_t y = 0; y < pixels.height; ++y) reading.rows.push_back(pixels.bytes.data() + size_t(y) * row_bytes);
  png_read_image(png, reading.rows.data());
  png_read_end(png, nullptr);
  return true;
}

struct Writing {
  const Pixels& pixels;
  Problem problem;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_bytep> rows;
  std::string out;

  explicit Writing(const Pixels& pixels) : pixels(pixels) {}
  ~Writing() { png_destroy_write_struct(&png, &info); }
};

bool append(std::string& out, png_bytep bytes, size_t count) noexcept {
  try {
    out.append(reinterpret_cast<const char*>(bytes), count);
    return true;
  } catch (...) {
    return false;
  }
}

void write_bytes(png_structp png, png_bytep bytes, size_t count) {
  auto* writing = static_cast<Writing*>(png_get_io_ptr(png));
  if (!append(writing->out, bytes, count)) png_error(png, "out of memory");
}

bool write(Writing& writing) {
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  png_structp png = writing.png;
  const Pixels& pixels = writing.pixels;
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, &writing, write_bytes, nullptr);
  png_set_IHDR(png, writing.info, png_uint_32(pixels.width), png_uint_32(pixels.height), 8,
               kColors[pixels.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, writing.info);
  png_write_image(png, writing.rows.data());
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

Pixels decode_png(std::string_view bytes, const std::string& name) {
  Reading reading;
  reading.bytes = bytes;
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading.problem, on_error, on_warning);
  reading.info = reading.png ? png_create_info_struct(reading.png) : nullptr;
  check(reading.info, "PNG: libpng does not start");
  check(read(reading), "PNG: cannot read '{}': {}", name, reading.problem.text);
  return std::move(reading.pixels);
}

std::string encode_png(const Pixels& pixels, const std::string& name) {
  Writing writing(pixels);
  writing.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writing.problem, on_error, on_warning);
  writing.info = writing.png ? png_create_info_struct(writing.png) : nullptr;
  check(writing.info, "PNG: libpng does not start");
  for (int64_t y = 0; y < pixels.height; ++y)
    writing.rows.push_back(const_cast<png_bytep>(pixels.bytes.data()) + y * pixels.width * pixels.channels);
  check(write(writing), "PNG: cannot write '{}': {}", name, writing.problem.text);
  return std::move(writing.out);
}

}  // namespace sinter::data
