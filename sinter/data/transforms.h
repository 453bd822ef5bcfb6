#pragma once
// What is done to pictures on the way into a model, each for Dataset::map:
//
//   using namespace data::transforms;
//   auto train = images.map(Resize(256)).map(RandomCrop(224)).map(RandomHorizontalFlip()).map(ToFloat())
//                    .map(Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
//
// A picture is [channels, height, width] on the host. Results and arguments follow torchvision. They run on the thread
// that makes the example, without kernels.
#include <cstdint>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/data/example.h"
#include "sinter/data/random.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data::transforms {

struct ImageSize {
  int64_t height, width;
  // A square.
  ImageSize(int64_t side) : height(side), width(side) {}
  ImageSize(int64_t height, int64_t width) : height(height), width(width) {}
};

// u8 to f32 from 0 to 1; other dtypes to f32 as they are.
struct ToFloat {
  Tensor operator()(const Tensor& image) const;
};

namespace detail {
class Normalization {
 public:
  Normalization(std::vector<double> mean, std::vector<double> stddev);
  Tensor operator()(const Tensor& image) const;

 private:
  std::vector<double> mean_, stddev_;
};
}  // namespace detail
// (x - mean) / stddev of f32, a number for each channel or one for all. LibTorch writes Normalize<>(0.5, 0.25).
template <class Target = Tensor>
struct Normalize : detail::Normalization {
  Normalize(std::vector<double> mean, std::vector<double> stddev) : Normalization(std::move(mean), std::move(stddev)) {}
  Normalize(double mean, double stddev) : Normalization({mean}, {stddev}) {}
};
using data::Stack;

// Bilinear, with as many pixels under the triangle as the picture shrinks by (antialias), of u8 or f32. Pictures of u8
// come out as Pillow up to 12 makes them, bit by bit.
class Resize {
 public:
  // The shorter side; the other one follows.
  explicit Resize(int64_t shorter_side);
  Resize(int64_t height, int64_t width);
  Tensor operator()(const Tensor& image) const;

 private:
  int64_t height_, width_;  // a width of 0: the height is the shorter side
};

// The middle; zeros around it where the picture is smaller.
class CenterCrop {
 public:
  explicit CenterCrop(ImageSize size);
  Tensor operator()(const Tensor& image) const;

 private:
  ImageSize size_;
};

// A piece at a random place of the picture with this many zeros at each side.
class RandomCrop {
 public:
  explicit RandomCrop(ImageSize size, int64_t padding = 0);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  ImageSize size_;
  int64_t padding_;
};

// Mirrors left and right with this probability.
class RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(double p = 0.5);
  Tensor operator()(const Tensor& image, Random& random) const;

 private:
  double p_;
};

}  // namespace data::transforms
}  // namespace SINTER_API
