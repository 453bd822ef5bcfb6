#include <cstddef>
#include <cstdio>
// libjpeg's header wants both first.
#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>

#include "sinter/base/error.h"
#include "sinter/data/codecs.h"

namespace sinter::data {

namespace {

// A progressive file of a few bytes may have any number of scans over all its pixels.
constexpr int kMaxScans = 500;

struct Reading {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char problem[JMSG_LENGTH_MAX] = "";
  Pixels pixels;
  std::vector<uint8_t> row;

  ~Reading() { jpeg_destroy_decompress(&jpeg); }
};

[[noreturn]] void fail(j_common_ptr jpeg, const char* problem = nullptr) {
  auto* reading = static_cast<Reading*>(jpeg->client_data);
  if (problem)
    std::snprintf(reading->problem, sizeof reading->problem, "%s", problem);
  else
    jpeg->err->format_message(jpeg, reading->problem);
  std::longjmp(reading->jump, 1);
}

void on_error(j_common_ptr jpeg) { fail(jpeg); }

// What is only strange passes; a picture whose end was made up does not.
void on_message(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) fail(jpeg);
}

void on_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans) fail(jpeg, "it has too many scans");
}

// Adobe's files hold inverted inks.
void cmyk_to_rgb(const uint8_t* from, uint8_t* to, int64_t width, bool inverted) {
  for (int64_t x = 0; x < width; ++x, from += 4, to += 3)
    for (int c = 0; c < 3; ++c) {
      const int ink = inverted ? from[c] : 255 - from[c], black = inverted ? from[3] : 255 - from[3];
      to[c] = uint8_t((ink * black + 127) / 255);
    }
}

// False when libjpeg has found something wrong.
bool read(Reading& reading, const unsigned char* bytes, unsigned long count) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  Pixels& pixels = reading.pixels;
  if (setjmp(reading.jump)) return false;
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &reading.progress;
  jpeg_mem_src(&jpeg, bytes, count);
  jpeg_read_header(&jpeg, TRUE);
  const bool gray = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = gray ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  pixels.width = jpeg.image_width;
  pixels.height = jpeg.image_height;
  pixels.channels = gray ? 1 : 3;
  auto* any = reinterpret_cast<j_common_ptr>(&jpeg);
  if (pixels.width > kMaxPixels / pixels.height) fail(any, "it has too many pixels");
  jpeg_start_decompress(&jpeg);
  if (jpeg.output_components != (cmyk ? 4 : pixels.channels)) fail(any, "its colours are not understood");
  pixels.bytes.resize(size_t(pixels.width * pixels.height * pixels.channels));
  reading.row.resize(size_t(pixels.width) * 4);
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* to = pixels.bytes.data() + int64_t(jpeg.output_scanline) * pixels.width * pixels.channels;
    JSAMPROW row = cmyk ? reading.row.data() : to;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (cmyk) cmyk_to_rgb(row, to, pixels.width, jpeg.saw_Adobe_marker);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Pixels decode_jpeg(std::string_view bytes, const std::string& name) {
  Reading reading;
  reading.jpeg.err = jpeg_std_error(&reading.errors);
  reading.jpeg.client_data = &reading;
  reading.errors.error_exit = on_error;
  reading.errors.emit_message = on_message;
  reading.progress.progress_monitor = on_progress;
  check(read(reading, reinterpret_cast<const unsigned char*>(bytes.data()), (unsigned long)(bytes.size())),
        "JPEG: cannot read '{}': {}", name, reading.problem);
  return std::move(reading.pixels);
}

}  // namespace sinter::data
