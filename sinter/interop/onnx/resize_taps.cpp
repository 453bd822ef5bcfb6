#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/resize.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// Where element `x` of the result lies in the operand.
double original_place(double x, const ResizedDimension& d, const ResizeOptions& options) {
  const double wide = d.scale * double(d.in);  // the size of the result before it was rounded
  const std::string& mode = options.coordinates;
  if (mode == "asymmetric") return x / d.scale;
  if (mode == "align_corners") return wide == 1 ? 0 : x * double(d.in - 1) / (wide - 1);
  if (mode == "pytorch_half_pixel") return wide == 1 ? -0.5 : (x + 0.5) / d.scale - 0.5;
  if (mode == "half_pixel") return (x + 0.5) / d.scale - 0.5;
  if (mode == "half_pixel_symmetric") return double(d.in) / 2 * (1 - double(d.out) / wide) + (x + 0.5) / d.scale - 0.5;
  check(mode == "tf_crop_and_resize", "Resize: there is no coordinate_transformation_mode '{}'", mode);
  const double width = double(d.in - 1) * (d.high - d.low);
  return d.low * double(d.in - 1) + (wide == 1 ? width / 2 : x * width / (wide - 1));
}

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Weights of the taps around a place that lies `ratio`, in (0, 1], behind the one before it.
std::vector<double> weights_at(double ratio, double scale, const ResizeOptions& options) {
  if (options.mode == "nearest") {
    bool is_second = true;
    if (ratio != 1) {
      if (options.nearest == "round_prefer_floor") is_second = ratio > 0.5;
      else if (options.nearest == "round_prefer_ceil") is_second = ratio >= 0.5;
      else if (options.nearest == "floor") is_second = false;
      else check(options.nearest == "ceil", "Resize: there is no nearest_mode '{}'", options.nearest);
    }
    return {is_second ? 0.0 : 1.0, is_second ? 1.0 : 0.0};
  }
  const bool is_linear = options.mode == "linear";
  check(is_linear || options.mode == "cubic", "Resize: there is no mode '{}'", options.mode);
  const double narrow = options.antialias ? std::min(scale, 1.0) : 1.0, reach = is_linear ? 1 : 2;
  const auto first = int64_t(std::floor(-reach / narrow) + 1);
  std::vector<double> out;
  double all = 0;
  for (int64_t at = first; at < 2 - first; ++at) {
    const double distance = narrow * (double(at) - ratio);
    out.push_back(is_linear ? std::max(0.0, 1 - std::abs(distance)) : cubic(distance, options.cubic_coefficient));
    all += out.back();
  }
  if (options.antialias)
    for (double& weight : out) weight /= all;
  return out;
}

}  // namespace

Taps taps_of(const ResizedDimension& d, const ResizeOptions& options) {
  Taps out;
  for (int64_t i = 0; i < d.out; ++i) {
    const double place = original_place(double(i), d, options);
    const double before = std::ceil(place) - 1;
    std::vector<double> weights = weights_at(place - before, d.scale, options);
    std::vector<int64_t> places;
    double all = 0;
    for (size_t t = 0; t < weights.size(); ++t) {
      const int64_t at = int64_t(before) + 1 - int64_t(weights.size() / 2) + int64_t(t);
      if (options.excludes_outside && (at < 0 || at >= d.in)) weights[t] = 0;
      all += weights[t];
      places.push_back(std::clamp<int64_t>(at, 0, d.in - 1));
    }
    if (options.excludes_outside)
      for (double& weight : weights) weight /= all;
    out.is_outside.push_back(options.coordinates == "tf_crop_and_resize" && (place < 0 || place > double(d.in - 1)));
    out.places.push_back(std::move(places));
    out.weights.push_back(std::move(weights));
  }
  return out;
}

Tensor resize_dimension(const Tensor& x, int64_t dim, const ResizedDimension& d, const ResizeOptions& options) {
  check(d.in > 0 && d.out >= 0 && d.scale > 0, "Resize: a size of {} becomes {}", d.in, d.out);
  const Taps taps = taps_of(d, options);
  if (d.out == 0) return narrow(x, dim, 0, 0);
  Shape along(std::vector<int64_t>(size_t(x.dim()), 1));
  along[size_t(dim)] = d.out;
  Tensor out;
  for (size_t t = 0; t < taps.places[0].size(); ++t) {
    std::vector<int64_t> places;
    std::vector<double> weights;
    bool counts = false, is_all = true;
    for (int64_t i = 0; i < d.out; ++i) {
      places.push_back(taps.places[size_t(i)][t]);
      weights.push_back(taps.weights[size_t(i)][t]);
      counts = counts || weights.back() != 0;
      is_all = is_all && weights.back() == 1;
    }
    if (!counts) continue;
    Tensor part = index_select(x, dim, from_data(places, {d.out}).to(x.device()));
    // Integers of nearest neighbours stay what they are.
    if (!is_all) part = mul(part, from_data(weights, along).to(is_floating(x.dtype()) ? x.dtype() : kFloat32).to(x.device()));
    out = out.defined() ? add(out, part) : part;
  }
  if (std::find(taps.is_outside.begin(), taps.is_outside.end(), true) != taps.is_outside.end())
    out = where(from_data(taps.is_outside, along).to(x.device()), full({}, options.extrapolation, out.options()), out);
  return out.to(x.dtype());
}

}  // namespace sinter::interop::onnx
