#include "sinter/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/data/picture.h"

namespace sinter::data::transforms {

namespace {

// The piece of this size whose corner is at (top, left), which may be outside; zeros where the picture has nothing.
Tensor crop(const Picture& picture, int64_t top, int64_t left, ImageSize size) {
  Tensor out = empty({picture.channels, size.height, size.width}, picture.tensor.dtype());
  const int64_t item = picture.tensor.element_size();
  auto* from = static_cast<const char*>(picture.tensor.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  const int64_t begin = std::clamp<int64_t>(-left, 0, size.width);
  const int64_t end = std::clamp<int64_t>(picture.width - left, begin, size.width);
  if (out.impl().numel > 0) std::memset(to, 0, size_t(out.impl().numel * item));
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t y = 0; y < size.height; ++y) {
      const int64_t row = top + y;
      if (row < 0 || row >= picture.height || begin == end) continue;
      std::memcpy(to + ((c * size.height + y) * size.width + begin) * item,
                  from + ((c * picture.height + row) * picture.width + left + begin) * item,
                  size_t((end - begin) * item));
    }
  return out;
}

ImageSize checked(const char* op, ImageSize size) {
  check(size.height > 0 && size.width > 0, "{}: a size of {} x {}", op, size.height, size.width);
  return size;
}

}  // namespace

Tensor ToFloat::operator()(const Tensor& image) const {
  Picture picture("ToFloat", image);
  Tensor out = empty(image.sizes(), kFloat32);
  auto* to = out.data_ptr<float>();
  visit_dtype(image.dtype(), [&](auto zero) {
    auto* from = static_cast<const decltype(zero)*>(picture.tensor.data_ptr());
    constexpr float kScale = std::is_same_v<decltype(zero), uint8_t> ? 255 : 1;
    for (int64_t i = 0; i < image.impl().numel; ++i) to[i] = float(from[i]) / kScale;
  });
  return out;
}

detail::Normalization::Normalization(std::vector<double> mean, std::vector<double> stddev)
    : mean_(std::move(mean)), stddev_(std::move(stddev)) {
  check(!mean_.empty() && mean_.size() == stddev_.size(), "Normalize: {} means and {} deviations", mean_.size(),
        stddev_.size());
  for (double deviation : stddev_) check(deviation != 0, "Normalize: a deviation is zero");
}

Tensor detail::Normalization::operator()(const Tensor& image) const {
  Picture picture("Normalize", image);
  check(image.dtype() == kFloat32, "Normalize: a picture of {}; ToFloat comes before", image.dtype());
  check(mean_.size() == 1 || int64_t(mean_.size()) == picture.channels, "Normalize: {} means for {} channels",
        mean_.size(), picture.channels);
  Tensor out = empty(image.sizes(), kFloat32);
  auto* from = picture.tensor.data_ptr<float>();
  auto* to = out.data_ptr<float>();
  const int64_t plane = picture.height * picture.width;
  for (int64_t c = 0; c < picture.channels; ++c) {
    const size_t which = mean_.size() == 1 ? 0 : size_t(c);
    const auto mean = float(mean_[which]), deviation = float(stddev_[which]);
    for (int64_t i = c * plane; i < (c + 1) * plane; ++i) to[i] = (from[i] - mean) / deviation;
  }
  return out;
}

CenterCrop::CenterCrop(ImageSize size) : size_(checked("CenterCrop", size)) {}

Tensor CenterCrop::operator()(const Tensor& image) const {
  Picture picture("CenterCrop", image);
  // Half a pixel goes to the even number, as in Python. Of what a smaller picture lacks, less goes in front.
  auto corner = [](int64_t size, int64_t wanted) {
    return size < wanted ? -((wanted - size) / 2) : int64_t(std::nearbyint(double(size - wanted) / 2));
  };
  return crop(picture, corner(picture.height, size_.height), corner(picture.width, size_.width), size_);
}

RandomCrop::RandomCrop(ImageSize size, int64_t padding) : size_(checked("RandomCrop", size)), padding_(padding) {
  check(padding >= 0, "RandomCrop: a padding of {}", padding);
}

Tensor RandomCrop::operator()(const Tensor& image, Random& random) const {
  Picture picture("RandomCrop", image);
  const int64_t rows = picture.height + 2 * padding_ - size_.height,
                columns = picture.width + 2 * padding_ - size_.width;
  check(rows >= 0 && columns >= 0, "RandomCrop: {} x {} pixels of a picture of {} x {} with a padding of {}",
        size_.height, size_.width, picture.height, picture.width, padding_);
  const int64_t top = random.below(rows + 1) - padding_, left = random.below(columns + 1) - padding_;
  return crop(picture, top, left, size_);
}

RandomHorizontalFlip::RandomHorizontalFlip(double p) : p_(p) {
  check(p >= 0 && p <= 1, "RandomHorizontalFlip: {} is no probability", p);
}

Tensor RandomHorizontalFlip::operator()(const Tensor& image, Random& random) const {
  Picture picture("RandomHorizontalFlip", image);
  if (random.uniform() >= p_) return image;
  Tensor out = empty(image.sizes(), image.dtype());
  visit_dtype(image.dtype(), [&](auto zero) {
    auto* from = static_cast<const decltype(zero)*>(picture.tensor.data_ptr());
    auto* to = static_cast<decltype(zero)*>(out.data_ptr());
    for (int64_t row = 0; row < picture.channels * picture.height; ++row)
      std::reverse_copy(from + row * picture.width, from + (row + 1) * picture.width, to + row * picture.width);
  });
  return out;
}

}  // namespace sinter::data::transforms
