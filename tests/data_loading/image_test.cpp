#include "sinter/data/image.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

// libjpeg's header wants <cstdio> first.
#include <jpeglib.h>

#include "sinter/base/error.h"
#include "sinter/data/data_loader.h"
#include "sinter/data/image_folder.h"
#include "sinter/data/transforms.h"
#include "sinter/ops/creation.h"
#include "tests/data_loading/corrupt.h"
#include "tests/data_loading/recorded_files.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::data {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<int64_t>;

// Smooth, so that JPEG keeps it nearly as it is: channel c of (x, y) is 3 x + 2 y + 20 c.
Tensor smooth(int64_t channels, int64_t height, int64_t width) {
  Tensor out = empty({channels, height, width}, kUInt8);
  auto* at = out.data_ptr<uint8_t>();
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) *at++ = uint8_t(3 * x + 2 * y + 20 * c);
  return out;
}

std::string jpeg_of(const Tensor& image, J_COLOR_SPACE space, bool progressive = false) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  const auto channels = int64_t(image.size(0)), height = int64_t(image.size(1)), width = int64_t(image.size(2));
  jpeg.image_height = JDIMENSION(height);
  jpeg.image_width = JDIMENSION(width);
  jpeg.input_components = int(channels);
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const auto values = image.to_vector<uint8_t>();
  std::vector<uint8_t> row(size_t(width * channels));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        row[size_t(x * channels + c)] = values[size_t((c * height + y) * width + x)];
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&jpeg, &rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string out(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&jpeg);
  std::free(memory);
  return out;
}

int64_t largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_TRUE(a.sizes().same_as(b.sizes()));
  const Values x = a.to_vector<int64_t>(), y = b.to_vector<int64_t>();
  int64_t out = 0;
  for (size_t i = 0; i < x.size(); ++i) out = std::max(out, std::abs(x[i] - y[i]));
  return out;
}

TEST(Png, RoundTripOfEveryNumberOfChannels) {
  OwnDirectory own;
  for (int64_t channels : {1, 2, 3, 4}) {
    Tensor image = smooth(channels, 7, 5);
    write_png(own.file("x.png"), image);
    Tensor back = read_image(own.file("x.png"));
    EXPECT_EQ(back.dtype(), kUInt8);
    EXPECT_EQ(largest_difference(back, image), 0);
  }
  write_png(own.file("x.png"), smooth(1, 4, 6).select(0, 0).t());
  EXPECT_EQ(largest_difference(read_image(own.file("x.png")), smooth(1, 4, 6).transpose(1, 2)), 0);
  EXPECT_NE(message_of([&] {
              write_png(own.file("x.png"), ones({3, 4, 4}));
            }).find("a picture is u8"),
            std::string::npos);
  EXPECT_NE(message_of([&] { write_png(own.file("x.png"), smooth(5, 4, 4)); }).find("[5, 4, 4]"), std::string::npos);
  EXPECT_NE(message_of([&] { write_png(own.file("no/x.png"), smooth(1, 4, 4)); }).find("cannot write"),
            std::string::npos);
}

TEST(Png, ReadsWhatOthersWrite) {
  auto values = [](auto& bytes, ImageMode mode = ImageMode::kUnchanged) {
    return decode_image(text_of(bytes), mode).template to_vector<int64_t>();
  };
  EXPECT_EQ(values(recorded::kRgbaPng), (Values{10, 50, 20, 60, 30, 70, 40, 80}));
  EXPECT_EQ(values(recorded::kRgbaPng, ImageMode::kRGB), (Values{10, 50, 20, 60, 30, 70}));
  EXPECT_EQ(values(recorded::kRgbaPng, ImageMode::kGray), (Values{18, 58}));
  EXPECT_EQ(values(recorded::kRgb16Png), (Values{0, 128, 255, 4, 1, 156}));
  EXPECT_EQ(values(recorded::kBitsPng), (Values{255, 0, 255, 255, 0, 0, 0, 255, 255}));
  EXPECT_EQ(values(recorded::kBitsPng, ImageMode::kRGBA).size(), 36u);
  EXPECT_EQ(values(recorded::kBitsPng, ImageMode::kRGBA)[27], 255);
  EXPECT_EQ(values(recorded::kPalettePng),
            (Values{255, 0, 0,   9, 9, 0,   0, 255, 0,   255, 0,   8,   8,   0,   255, 0,
                    0,   0, 255, 7, 7, 255, 0, 0,   255, 128, 255, 255, 255, 255, 128, 255}));
  EXPECT_EQ(values(recorded::kPalettePng, ImageMode::kRGB).size(), 24u);
  Values counted(64);
  for (size_t i = 0; i < 64; ++i) counted[i] = int64_t(i);
  EXPECT_EQ(values(recorded::kInterlacedPng), counted);
}

TEST(Png, DamageIsAnErrorAndNothingElse) {
  for (auto& bytes : {text_of(recorded::kRgbaPng), text_of(recorded::kPalettePng), text_of(recorded::kInterlacedPng)})
    EXPECT_GT(count_errors(bytes, [](const std::string& damaged) { decode_image(damaged); }), 300);
  const std::string whole = text_of(recorded::kRgbaPng);
  EXPECT_NE(message_of([&] {
              decode_image(whole.substr(0, 50), ImageMode::kRGB, "a.png");
            }).find("PNG: cannot read 'a.png': it is cut short"),
            std::string::npos);
}

TEST(Jpeg, BaselineAndProgressive) {
  Tensor color = smooth(3, 24, 31), gray = smooth(1, 24, 31);
  for (bool progressive : {false, true}) {
    EXPECT_LE(largest_difference(decode_image(jpeg_of(color, JCS_RGB, progressive)), color), 6);
    EXPECT_LE(largest_difference(decode_image(jpeg_of(gray, JCS_GRAYSCALE, progressive)), gray), 3);
  }
  Tensor three = decode_image(jpeg_of(gray, JCS_GRAYSCALE), ImageMode::kRGB);
  EXPECT_TRUE(three.sizes().same_as({3, 24, 31}));
  EXPECT_EQ(largest_difference(three.select(0, 0), three.select(0, 2)), 0);
  EXPECT_TRUE(decode_image(jpeg_of(color, JCS_RGB), ImageMode::kGray).sizes().same_as({1, 24, 31}));
}

TEST(Jpeg, InksBecomeColors) {
  Tensor inks = empty({4, 16, 16}, kUInt8);
  for (int64_t c = 0; c < 4; ++c) inks.select(0, c).fill_(std::vector<int>{200, 100, 50, 204}[size_t(c)]);
  Tensor image = decode_image(jpeg_of(inks, JCS_CMYK));
  ASSERT_TRUE(image.sizes().same_as({3, 16, 16}));
  const auto values = image.to_vector<int64_t>();
  EXPECT_NEAR(double(values[0]), 160, 3);
  EXPECT_NEAR(double(values[256]), 80, 3);
  EXPECT_NEAR(double(values[512]), 40, 3);
}

TEST(Jpeg, DamageIsAnErrorAndNothingElse) {
  for (bool progressive : {false, true}) {
    const std::string bytes = jpeg_of(smooth(3, 9, 9), JCS_RGB, progressive);
    EXPECT_GT(count_errors(bytes, [](const std::string& damaged) { decode_image(damaged); }), 300);
    const std::string message =
        message_of([&] { decode_image(bytes.substr(0, bytes.size() - 20), ImageMode::kRGB, "a.jpg"); });
    EXPECT_NE(message.find("JPEG: cannot read 'a.jpg': "), std::string::npos) << message;
  }
}

TEST(Image, FilesThatAreNone) {
  OwnDirectory own;
  std::ofstream(own.file("x.png")) << "GIF89a";
  EXPECT_NE(message_of([&] { read_image(own.file("x.png")); }).find("x.png' is neither PNG nor JPEG"),
            std::string::npos);
  std::ofstream(own.file("empty.png")).flush();
  EXPECT_NE(message_of([&] { read_image(own.file("empty.png")); }).find("is neither PNG nor JPEG"), std::string::npos);
  EXPECT_NE(message_of([&] { read_image(own.file("none.png")); }).find("cannot open"), std::string::npos);
  EXPECT_NE(message_of([&] { read_image(own.path().string()); }).find("is not a file"), std::string::npos);
}

class Folder : public ::testing::Test {
 protected:
  void put(const std::string& name, int64_t value) {
    fs::create_directories((own_.path() / name).parent_path());
    Tensor image = empty({3, 4, 6}, kUInt8);
    image.fill_(value);
    if (name.ends_with(".png"))
      write_png(own_.file(name), image);
    else
      std::ofstream(own_.file(name), std::ios::binary) << jpeg_of(image, JCS_RGB);
  }
  std::string error() {
    return message_of([&] { ImageFolder images(own_.path().string()); });
  }

  OwnDirectory own_;
};

TEST_F(Folder, ClassesAndFilesAreSorted) {
  put("tulip/b.png", 4);
  put("tulip/a.JPG", 3);
  put("rose/deep/er.png", 1);
  put("rose/z.jpeg", 2);
  std::ofstream(own_.file("rose/notes.txt")) << "passed over";
  std::ofstream(own_.file("readme.png")) << "in no class";
  ImageFolder images(own_.path().string());
  EXPECT_EQ(images.classes(), (std::vector<std::string>{"rose", "tulip"}));
  ASSERT_EQ(images.size(), 4);
  for (int64_t i = 0; i < 4; ++i) {
    Example<> example = images.get(i);
    EXPECT_TRUE(example.data.sizes().same_as({3, 4, 6}));
    EXPECT_NEAR(example.data.to_vector<double>()[0], double(i + 1), 1);
    EXPECT_EQ(example.target.item<int64_t>(), i / 2);
    EXPECT_EQ(example.target.dim(), 0);
  }
  EXPECT_TRUE(images.path(3).ends_with("tulip/b.png"));
  EXPECT_NE(message_of([&] { images.get(4); }).find("no picture 4 in 4"), std::string::npos);
  EXPECT_TRUE(ImageFolder(own_.path().string(), ImageMode::kGray).get(0).data.sizes().same_as({1, 4, 6}));

  auto loader = make_data_loader(images.map(transforms::Resize(2, 2)).map(transforms::ToFloat()),
                                 DataLoaderOptions(4).workers(2));
  for (auto& batch : *loader) {
    EXPECT_TRUE(batch.data.sizes().same_as({4, 3, 2, 2}));
    EXPECT_EQ(batch.target.to_vector<int64_t>(), (Values{0, 0, 1, 1}));
  }
}

TEST_F(Folder, ADamagedFileIsNamedWithItsExample) {
  put("a/1.png", 1);
  put("a/2.png", 2);
  std::ofstream(own_.file("a/3.png"), std::ios::binary) << text_of(recorded::kRgbaPng).substr(0, 40);
  auto loader = make_data_loader(ImageFolder(own_.path().string()), DataLoaderOptions(2).workers(1));
  const std::string message = message_of([&] {
    for ([[maybe_unused]] auto& batch : *loader) continue;
  });
  EXPECT_TRUE(message.starts_with("DataLoader: example 2: PNG: cannot read '")) << message;
  EXPECT_NE(message.find("a/3.png"), std::string::npos);
}

TEST_F(Folder, EmptyFoldersAreErrors) {
  EXPECT_NE(error().find("has no folders"), std::string::npos);
  put("full/1.png", 1);
  fs::create_directories(own_.path() / "hollow" / "deep");
  EXPECT_NE(error().find("in the class 'hollow'"), std::string::npos);
  EXPECT_NE(message_of([&] { ImageFolder images(own_.file("none")); }).find("is not a folder"), std::string::npos);
}

}  // namespace
}  // namespace sinter::data
