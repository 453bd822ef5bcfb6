#include <algorithm>
#include <cmath>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/data/picture.h"
#include "sinter/data/transforms.h"

namespace sinter::data::transforms {

namespace {

// Weights of u8 in fixed point: with 8 bits of a pixel and a sign they fill 32 bits.
constexpr int kBits = 22;

int32_t to_weight(double w, int32_t) { return int32_t(std::lround(w * (1 << kBits))); }
double to_weight(double w, double) { return w; }
uint8_t to_pixel(int32_t sum, uint8_t) { return uint8_t(std::clamp((sum + (1 << (kBits - 1))) >> kBits, 0, 255)); }
float to_pixel(double sum, float) { return float(sum); }

// For each place of the result the pixels it is made of, and how much of each.
template <class W>
struct Weights {
  struct Window {
    int64_t begin, count, first;  // the first pixel, how many, and where their weights are
  };
  std::vector<Window> windows;
  std::vector<W> values;

  Weights(int64_t from, int64_t to) {
    const double scale = double(from) / double(to), reach = std::max(scale, 1.0);
    std::vector<double> triangle;
    for (int64_t i = 0; i < to; ++i) {
      const double center = (double(i) + 0.5) * scale;
      const int64_t begin = std::max<int64_t>(int64_t(center - reach + 0.5), 0);
      const int64_t end = std::min<int64_t>(int64_t(center + reach + 0.5), from);
      triangle.clear();
      double sum = 0;
      for (int64_t at = begin; at < end; ++at) {
        const double distance = std::abs((double(at) - center + 0.5) / reach);
        triangle.push_back(std::max(1 - distance, 0.0));
        sum += triangle.back();
      }
      windows.push_back({begin, end - begin, int64_t(values.size())});
      for (double w : triangle) values.push_back(to_weight(sum != 0 ? w / sum : w, W()));
    }
  }
};

// Rows of `from` pixels become rows of `to`.
template <class T, class W>
void resize_rows(const T* in, T* out, int64_t rows, int64_t from, int64_t to) {
  const Weights<W> weights(from, to);
  for (int64_t row = 0; row < rows; ++row, in += from)
    for (auto& window : weights.windows) {
      W sum = 0;
      for (int64_t k = 0; k < window.count; ++k)
        sum += W(in[window.begin + k]) * weights.values[size_t(window.first + k)];
      *out++ = to_pixel(sum, T());
    }
}

// The same of columns, row by row.
template <class T, class W>
void resize_columns(const T* in, T* out, int64_t planes, int64_t from, int64_t to, int64_t width) {
  const Weights<W> weights(from, to);
  std::vector<W> sums(size_t(width), 0);
  for (int64_t plane = 0; plane < planes; ++plane, in += from * width)
    for (auto& window : weights.windows) {
      std::fill(sums.begin(), sums.end(), W(0));
      for (int64_t k = 0; k < window.count; ++k) {
        const T* row = in + (window.begin + k) * width;
        const W weight = weights.values[size_t(window.first + k)];
        for (int64_t x = 0; x < width; ++x) sums[size_t(x)] += W(row[x]) * weight;
      }
      for (int64_t x = 0; x < width; ++x) *out++ = to_pixel(sums[size_t(x)], T());
    }
}

// Rows first, and rounded in between, as Pillow does it up to 12; later ones begin with what is less work.
template <class T, class W>
Tensor resize(const Picture& picture, int64_t height, int64_t width) {
  Tensor wide = picture.tensor;
  if (width != picture.width) {
    wide = empty({picture.channels, picture.height, width}, wide.dtype());
    resize_rows<T, W>(picture.tensor.data_ptr<T>(), wide.data_ptr<T>(), picture.channels * picture.height,
                      picture.width, width);
  }
  if (height == picture.height) return wide;
  Tensor out = empty({picture.channels, height, width}, wide.dtype());
  resize_columns<T, W>(wide.data_ptr<T>(), out.data_ptr<T>(), picture.channels, picture.height, height, width);
  return out;
}

}  // namespace

Resize::Resize(int64_t shorter_side) : height_(shorter_side), width_(0) {
  check(shorter_side > 0, "Resize: a side of {}", shorter_side);
}

Resize::Resize(int64_t height, int64_t width) : height_(height), width_(width) {
  check(height > 0 && width > 0, "Resize: a size of {} x {}", height, width);
}

Tensor Resize::operator()(const Tensor& image) const {
  Picture picture("Resize", image);
  check(picture.height > 0 && picture.width > 0, "Resize: a picture of {}", image.sizes());
  int64_t height = height_, width = width_;
  if (width == 0) {
    const int64_t shorter = std::min(picture.height, picture.width);
    height = picture.height == shorter ? height_ : int64_t(double(height_) * double(picture.height) / double(shorter));
    width = picture.width == shorter ? height_ : int64_t(double(height_) * double(picture.width) / double(shorter));
  }
  if (image.dtype() == kUInt8) return resize<uint8_t, int32_t>(picture, height, width);
  check(image.dtype() == kFloat32, "Resize: a picture of {}; u8 and f32 are resized", image.dtype());
  return resize<float, double>(picture, height, width);
}

}  // namespace sinter::data::transforms
