#pragma once
// Regions of images as pictures of one size, as ONNX and torchvision have them.
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

// Planes are read between their elements: the four around a place (y, x) in planes of height × width, and their shares.
struct Corners {
  TensorList index;  // row * width + column, of the shape of the places
  TensorList weight;
};
// With keeps_edge places lie inside; else what lies outside by a whole element has no share.
Corners corners_of(const Tensor& y, const Tensor& x, const Dim& height, const Dim& width, bool keeps_edge);

// Where regions begin in an image and how far they reach, in elements: one number each.
struct Regions {
  Tensor top, left, tall, wide;
  Tensor image;  // int64: of which image each is a region
};
struct RegionSampling {
  int64_t height, width;       // of the pictures
  int64_t rows, columns;       // samples of each of their elements
  bool takes_largest = false;  // of the samples' parts, in place of their mean
};
// [regions, channels, height, width] of x [images, channels, h, w].
Tensor aligned_regions(const Tensor& x, const Regions& regions, const RegionSampling& sampling);

}  // namespace sinter::interop
