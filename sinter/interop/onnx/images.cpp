// Images: resizing, reading at positions, regions, boxes.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/boxes.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/interop/onnx/resize.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

using Reals = const std::optional<std::vector<double>>&;

// The whole image at once where interpolate() means the same: the last one to three dimensions, spatial ones alone.
std::optional<Tensor> interpolated(const Tensor& x, const std::vector<ResizedDimension>& dims, const ResizeOptions& options,
                                   bool by_scales) {
  const int64_t spatial = x.dim() - 2;
  if (spatial < 1 || spatial > 3 || options.antialias || options.excludes_outside || !is_floating(x.dtype())) return std::nullopt;
  for (int64_t d = 0; d < 2; ++d)
    if (dims[size_t(d)].in != dims[size_t(d)].out) return std::nullopt;
  InterpolateOptions out;
  const bool is_half = options.coordinates == "half_pixel" || options.coordinates == "pytorch_half_pixel";
  const bool is_aligned = options.coordinates == "align_corners";
  if (options.mode == "nearest") {
    if (options.coordinates != "asymmetric" || options.nearest != "floor") return std::nullopt;
    out.mode = InterpolateMode::kNearest;
  } else {
    constexpr InterpolateMode kLinear[] = {InterpolateMode::kLinear, InterpolateMode::kBilinear, InterpolateMode::kTrilinear};
    const bool is_linear = options.mode == "linear";
    if (!is_half && !is_aligned) return std::nullopt;
    if (!is_linear && (spatial != 2 || options.cubic_coefficient != -0.75)) return std::nullopt;
    out.mode = is_linear ? kLinear[spatial - 1] : InterpolateMode::kBicubic;
    out.align_corners = is_aligned;
  }
  for (size_t d = 2; d < dims.size(); ++d) {
    // A dimension of one element, and sizes that a factor rounds, are where the rules differ.
    if (dims[d].out < 2 || std::floor(dims[d].scale * double(dims[d].in)) != double(dims[d].out)) return std::nullopt;
    if (is_aligned && dims[d].scale * double(dims[d].in) != double(dims[d].out)) return std::nullopt;
    if (by_scales && !is_aligned) out.scale_factor.push_back(dims[d].scale);
    else out.size.push_back(dims[d].out);
  }
  return interpolate(x, out);
}

// The dimensions that are told, or all of them, with the sizes and scales of the result.
std::vector<ResizedDimension> resized_dimensions(In x, Reals roi, const std::vector<double>& scales, const IntList& sizes,
                                                 MaybeInts axes, Text policy) {
  const int64_t rank = x.dim();
  IntList dims = axes ? wrapped("Resize", *axes, rank) : IntList();
  if (!axes)
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  const size_t told = sizes.empty() ? scales.size() : sizes.size();
  check(told == dims.size(), "Resize: {} sizes or scales for {} dimensions", told, dims.size());
  std::vector<ResizedDimension> out;
  for (int64_t d = 0; d < rank; ++d) out.push_back({.in = x.size(d), .out = x.size(d)});
  std::optional<double> common;  // of a policy that keeps the aspect
  for (size_t i = 0; i < dims.size() && !sizes.empty() && policy != "stretch"; ++i) {
    const double scale = double(sizes[i]) / double(out[size_t(dims[i])].in);
    check(policy == "not_larger" || policy == "not_smaller", "Resize: there is no policy '{}'", policy);
    common = !common ? scale : policy == "not_larger" ? std::min(*common, scale) : std::max(*common, scale);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    ResizedDimension& d = out[size_t(dims[i])];
    d.scale = common ? *common : sizes.empty() ? scales[i] : double(sizes[i]) / double(d.in);
    d.out = common ? int64_t(std::floor(*common * double(d.in) + 0.5)) : sizes.empty() ? int64_t(std::floor(double(d.in) * d.scale)) : sizes[i];
    if (roi && roi->size() == 2 * dims.size()) {
      d.low = (*roi)[i];
      d.high = (*roi)[i + dims.size()];
      if (sizes.empty()) d.out = int64_t(std::floor(double(d.in) * (d.high - d.low) * d.scale));
    }
    check(d.out >= 0 && d.out < (int64_t(1) << 31), "Resize: a dimension of size {}", d.out);
  }
  return out;
}

Tensor resized(In x, Reals roi, Reals scales, MaybeInts sizes, MaybeInts axes, Text policy, const ResizeOptions& options) {
  const bool has_region = options.coordinates == "tf_crop_and_resize";
  const auto dims = resized_dimensions(x, has_region ? roi : std::nullopt, scales.value_or(std::vector<double>()),
                                       sizes.value_or(IntList()), axes, policy);
  if (auto out = interpolated(x.tensor(), dims, options, !sizes || sizes->empty())) return *out;
  Tensor out = x.tensor();
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].in != dims[d].out || dims[d].scale != 1 || dims[d].low != 0 || dims[d].high != 1)
      out = resize_dimension(out, int64_t(d), dims[d], options);
  return out;
}

// Before version 11 places were asymmetric.
Tensor resized_by_scales(In x, const std::vector<double>& scales, Text mode) {
  return resized(x, {}, scales, {}, {}, "stretch", {.mode = mode, .coordinates = "asymmetric", .nearest = "floor"});
}

Tensor sampled(In x, In grid, bool align_corners, Text mode, Text padding) {
  GridSampleMode how = GridSampleMode::kBilinear;
  if (mode == "nearest") how = GridSampleMode::kNearest;
  else if (mode == "cubic" || mode == "bicubic") how = GridSampleMode::kBicubic;
  else check(mode == "linear" || mode == "bilinear", "GridSample: there is no mode '{}'", mode);
  GridSamplePaddingMode outside = GridSamplePaddingMode::kZeros;
  if (padding == "border") outside = GridSamplePaddingMode::kBorder;
  else if (padding == "reflection") outside = GridSamplePaddingMode::kReflection;
  else check(padding == "zeros", "GridSample: there is no padding mode '{}'", padding);
  return grid_sample(x, grid, how, outside, align_corners);
}

// Columns of windows added up where they lie. Padding on both sides may differ.
Tensor columns_to_image(In x, Ints image, Ints block, MaybeInts dilations, MaybeInts pads, MaybeInts strides) {
  const size_t rank = image.size();
  const IntList ones(rank, 1), none(2 * rank, 0), stride = strides.value_or(ones), dilation = dilations.value_or(ones), pad = pads.value_or(none);
  check(block.size() == rank && stride.size() == rank && dilation.size() == rank && pad.size() == 2 * rank,
        "Col2Im: windows {} of an image {}", block, image);
  // By scattering: the place of every element of every window in the padded image.
  IntList counts, padded;
  int64_t window = 1, all = 1;
  for (size_t d = 0; d < rank; ++d) {
    padded.push_back(image[d] + pad[d] + pad[d + rank]);
    counts.push_back((padded[d] - dilation[d] * (block[d] - 1) - 1) / stride[d] + 1);
    window *= block[d];
    all *= counts[d];
  }
  const int64_t channels = x.size(1) / window;
  std::vector<int64_t> places;
  for_coordinates(block, [&](const IntList& in_window) {
    for_coordinates(counts, [&](const IntList& at) {
      IntList place;
      for (size_t d = 0; d < rank; ++d) place.push_back(at[d] * stride[d] + in_window[d] * dilation[d]);
      places.push_back(place_of(place, padded));
    });
  });
  check(window > 0 && int64_t(x.size(2)) == all, "Col2Im: {} windows, and the image has {}", x.size(2), all);
  const Tensor flat = reshape(x, {x.size(0), channels, window * all});
  const Tensor index = expand(from_data(places, {1, 1, window * all}).to(x.tensor().device()), flat.sizes());
  Shape out = {x.size(0), channels};
  out.append(Shape(padded));
  Tensor image_of = scatter_add(zeros({x.size(0), channels, checked_numel("Col2Im", padded)}, flat.options()), 2, index, flat).view(out);
  for (size_t d = 0; d < rank; ++d) image_of = narrow(image_of, int64_t(d) + 2, pad[d], image[d]);
  return image_of;
}

}  // namespace

std::span<const Function> image_operators() {
  static const Function kList[] = {
      {"onnx::Upsample.9(Tensor X, float[] scales, *, str mode=\"nearest\") -> Tensor", resized_by_scales},
      {"onnx::Resize.10(Tensor X, float[] scales, *, str mode=\"nearest\") -> Tensor", resized_by_scales},
      {"onnx::Resize.11(Tensor X, float[]? roi=None, float[]? scales=None, int[]? sizes=None, *, int antialias=0, int[]? axes=None, "
       "str coordinate_transformation_mode=\"half_pixel\", float cubic_coeff_a=-0.75, int exclude_outside=0, float "
       "extrapolation_value=0.0, str keep_aspect_ratio_policy=\"stretch\", str mode=\"nearest\", str "
       "nearest_mode=\"round_prefer_floor\") -> Tensor",
       [](In x, Reals roi, Reals scales, MaybeInts sizes, bool antialias, MaybeInts axes, Text coordinates, double a, bool excludes,
          double extrapolation, Text policy, Text mode, Text nearest) {
         return resized(x, roi, scales, sizes, axes, policy, {mode, coordinates, nearest, a, extrapolation, antialias, excludes});
       }},
      {"onnx::GridSample.16(Tensor X, Tensor grid, *, int align_corners=0, str mode=\"bilinear\", str padding_mode=\"zeros\") -> "
       "Tensor",
       sampled},
      {"onnx::GridSample.20(Tensor X, Tensor grid, *, int align_corners=0, str mode=\"linear\", str padding_mode=\"zeros\") -> Tensor",
       sampled},
      {"onnx::AffineGrid.20(Tensor theta, int[] size, *, int align_corners=0) -> Tensor",
       [](In theta, Sizes size, bool align_corners) { return affine_grid(theta, size, align_corners); }},
      {"onnx::Col2Im.18(Tensor input, int[] image_shape, int[] block_shape, *, int[]? dilations=None, int[]? pads=None, int[]? "
       "strides=None) -> Tensor",
       columns_to_image},
      {"onnx::RoiAlign.10(Tensor X, Tensor rois, Tensor batch_indices, *, str coordinate_transformation_mode=\"output_half_pixel\", "
       "str mode=\"avg\", int output_height=1, int output_width=1, int sampling_ratio=0, float spatial_scale=1.0) -> Tensor",
       roi_align},
      {"onnx::RoiAlign.16(Tensor X, Tensor rois, Tensor batch_indices, *, str coordinate_transformation_mode=\"half_pixel\", str "
       "mode=\"avg\", int output_height=1, int output_width=1, int sampling_ratio=0, float spatial_scale=1.0) -> Tensor",
       roi_align},
      {"onnx::NonMaxSuppression.10(Tensor boxes, Tensor scores, int? max_output_boxes_per_class=None, float? iou_threshold=None, "
       "float? score_threshold=None, *, int center_point_box=0) -> Tensor",
       non_max_suppression},
      {"onnx::DeformConv.19(Tensor X, Tensor W, Tensor offset, Tensor? B=None, Tensor? mask=None, *, int[]? dilations=None, int "
       "group=1, int[]? kernel_shape=None, int offset_group=1, int[]? pads=None, int[]? strides=None) -> Tensor",
       deformable_convolution},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
