#pragma once
// How one dimension is resized: for every element of the result the places that it is made of, and their weights.
#include <string>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter::interop::onnx {

struct ResizeOptions {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_coefficient = -0.75, extrapolation = 0;
  bool antialias = false, excludes_outside = false;
};

// One dimension of size `in` becomes `out`; low and high are its part of the region, where there is one.
struct ResizedDimension {
  int64_t in = 0, out = 0;
  double scale = 1, low = 0, high = 1;
};

struct Taps {
  // By element of the result, then by tap; as many taps for each.
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;
  std::vector<bool> is_outside;  // nothing of the operand is there
};
Taps taps_of(const ResizedDimension& dimension, const ResizeOptions& options);

// The operand with one dimension resized.
Tensor resize_dimension(const Tensor& x, int64_t dim, const ResizedDimension& dimension, const ResizeOptions& options);

}  // namespace sinter::interop::onnx
