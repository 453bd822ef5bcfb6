// Pools, resizing, and reading at given positions.
#include "sinter/autograd/functional.h"
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/interop/regions.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

using Factors = const std::optional<std::vector<double>>&;

// Factors that are told one by one; where one is missing the sizes decide.
std::vector<double> factors_of(std::initializer_list<MaybeReal> factors) {
  std::vector<double> out;
  for (auto& factor : factors) {
    if (!factor) return {};
    out.push_back(*factor);
  }
  return out;
}
std::vector<double> factors_or_none(Factors factors) { return factors.value_or(std::vector<double>()); }
Shape size_or_none(const std::optional<Shape>& size) { return size.value_or(Shape()); }

Tensor nearest_exact(In x, const Shape& size, const std::vector<double>& factors) {
  InterpolateOptions options{.mode = InterpolateMode::kNearestExact};
  if (factors.empty())
    options.size = size;
  else
    options.scale_factor = factors;
  return interpolate(x, options);
}

Tensor sampled(In x, In grid, Int mode, Int padding, bool align_corners) {
  constexpr GridSampleMode kModes[] = {GridSampleMode::kBilinear, GridSampleMode::kNearest, GridSampleMode::kBicubic};
  constexpr GridSamplePaddingMode kPaddings[] = {GridSamplePaddingMode::kZeros, GridSamplePaddingMode::kBorder,
                                                 GridSamplePaddingMode::kReflection};
  check(mode >= 0 && mode < std::ssize(kModes), "grid_sampler: there is no mode {}", mode);
  check(padding >= 0 && padding < std::ssize(kPaddings), "grid_sampler: there is no padding mode {}", padding);
  return grid_sample(x, grid, kModes[mode], kPaddings[padding], align_corners);
}

// The sizes are told, not the windows.
Tensor unpooled(In x, const Tensor& indices, Sizes size) {
  const int64_t pooled = size.rank();
  check(x.dim() > pooled, "max_unpool{}d: sizes {} for an input {}", pooled, size, x.sizes());
  Shape rest = x.sizes();
  rest.resize(size_t(x.dim() - pooled));
  Shape flat = rest, out = rest;
  flat.push_back(size.numel());
  out.append(size);
  return scatter(zeros(flat, x.tensor().options()), -1, indices.flatten(-pooled), flatten(x, -pooled)).view(out);
}

// Of the torchvision library. Rows of `rois` are an image's number and x1, y1, x2, y2.
Tensor roi_align(const Tensor& x, const Tensor& rois, double scale, Int height, Int width, Int sampling, bool aligned) {
  check(sampling > 0, "torchvision.roi_align: a sampling_ratio is needed; without, regions differ in their samples");
  check(rois.dim() == 2, "torchvision.roi_align: expected rois [n, 5], got {}", rois.sizes());
  auto edge = [&](int64_t which) { return rois.select(1, which) * scale - (aligned ? 0.5 : 0.0); };
  auto side = [&](int64_t low, int64_t high) {
    return aligned ? edge(high) - edge(low) : clamp_min(edge(high) - edge(low), 1.0);
  };
  const Regions regions{edge(2), edge(1), side(2, 4), side(1, 3), rois.select(1, 0).to(kInt64)};
  return aligned_regions(x, regions, {height, width, sampling, sampling});
}

// It is linear in the images.
Tensor roi_align_backward(const Tensor& grad, const Tensor& rois, double scale, Int height, Int width,
                          const Dim& images, const Dim& channels, const Dim& down, const Dim& right, Int sampling,
                          bool aligned) {
  AutoGradMode enabled(true);
  auto f = [&](const TensorList& x) {
    return TensorList{roi_align(x[0], rois, scale, height, width, sampling, aligned)};
  };
  return func::vjp(f, {zeros({images, channels, down, right}, grad.options())}).second({grad})[0];
}

}  // namespace

std::span<const Function> pool_functions() {
  static const Function kList[] = {
      {"max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], bool "
       "ceil_mode=False) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool1d(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
       "dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool1d_with_indices(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
       "ceil_mode=False) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool2d(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
       "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
       "ceil_mode=False) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool3d(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
       "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       [](In x, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil_mode) {
         return max_pool3d_with_indices(x, kernel, stride, padding, dilation, ceil_mode);
       }},
      {"max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
       "padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       [](In grad, In x, Ignored, Ignored, Ignored, Ignored, Ignored, In indices) {
         return max_pool2d_with_indices_backward(grad, x, indices);
       }},
      {"max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] "
       "padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       [](In grad, In x, Ignored, Ignored, Ignored, Ignored, Ignored, In indices) {
         return max_pool3d_with_indices_backward(grad, x, indices);
       }},
      {"avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool "
       "count_include_pad=True) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool counts_pad) {
         return avg_pool1d(x, kernel, stride, padding, ceil_mode, counts_pad);
       }},
      {"avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool counts_pad, MaybeInt divisor) {
         return avg_pool2d(x, kernel, stride, padding, ceil_mode, counts_pad, divisor);
       }},
      {"avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None) -> Tensor",
       [](In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool counts_pad, MaybeInt divisor) {
         return avg_pool3d(x, kernel, stride, padding, ceil_mode, counts_pad, divisor);
       }},
      {"avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
       "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       [](In grad, In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool counts_pad, MaybeInt divisor) {
         return avg_pool2d_backward(grad, x, kernel, stride, padding, ceil_mode, counts_pad, divisor);
       }},
      {"avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
       "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       [](In grad, In x, Ints kernel, Ints stride, Ints padding, bool ceil_mode, bool counts_pad, MaybeInt divisor) {
         return avg_pool3d_backward(grad, x, kernel, stride, padding, ceil_mode, counts_pad, divisor);
       }},
      {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", adaptive_avg_pool1d},
      {"adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_avg_pool2d},
      {"_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", adaptive_avg_pool2d},
      {"_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", _adaptive_avg_pool2d_backward},
      {"adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_avg_pool3d},
      {"_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", adaptive_avg_pool3d},
      {"_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor", _adaptive_avg_pool3d_backward},
      {"adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", adaptive_max_pool1d},
      {"adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", adaptive_max_pool2d},
      {"adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", adaptive_max_pool3d},
      {"fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, "
       "Tensor)",
       [](In x, Ints kernel, Ints size, In samples) { return fractional_max_pool2d(x, kernel, size, samples); }},
      {"fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, "
       "Tensor)",
       [](In x, Ints kernel, Ints size, In samples) { return fractional_max_pool3d(x, kernel, size, samples); }},
      {"fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
       "indices) -> "
       "Tensor",
       [](In grad, In x, Ignored, Ignored, In indices) { return max_pool2d_with_indices_backward(grad, x, indices); }},
      {"fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
       "indices) -> "
       "Tensor",
       [](In grad, In x, Ignored, Ignored, In indices) { return max_pool3d_with_indices_backward(grad, x, indices); }},

      // --- resizing
      {"upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       [](In x, Sizes size, MaybeReal l) { return upsample_nearest1d(x, size, factors_of({l})); }},
      {"upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
       [](In x, Sizes size, MaybeReal h, MaybeReal w) {
         return upsample_nearest2d(x, size, factors_of({h, w}));
       }},
      {"upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       [](In x, Sizes size, MaybeReal d, MaybeReal h, MaybeReal w) {
         return upsample_nearest3d(x, size, factors_of({d, h, w}));
       }},
      {"upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return upsample_nearest1d(x, size_or_none(size), factors_or_none(factors));
       }},
      {"upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return upsample_nearest2d(x, size_or_none(size), factors_or_none(factors));
       }},
      {"upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return upsample_nearest3d(x, size_or_none(size), factors_or_none(factors));
       }},
      {"_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       [](In x, Sizes size, MaybeReal l) { return nearest_exact(x, size, factors_of({l})); }},
      {"_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
       "Tensor",
       [](In x, Sizes size, MaybeReal h, MaybeReal w) {
         return nearest_exact(x, size, factors_of({h, w}));
       }},
      {"_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, "
       "float? scales_w=None) -> Tensor",
       [](In x, Sizes size, MaybeReal d, MaybeReal h, MaybeReal w) {
         return nearest_exact(x, size, factors_of({d, h, w}));
       }},
      {"_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return nearest_exact(x, size_or_none(size), factors_or_none(factors));
       }},
      {"_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return nearest_exact(x, size_or_none(size), factors_or_none(factors));
       }},
      {"_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
       [](In x, const std::optional<Shape>& size, Factors factors) {
         return nearest_exact(x, size_or_none(size), factors_or_none(factors));
       }},
      {"upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
       [](In x, Sizes size, bool align, MaybeReal l) { return upsample_linear1d(x, size, align, factors_of({l})); }},
      {"upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       [](In x, Sizes size, bool align, MaybeReal h, MaybeReal w) {
         return upsample_bilinear2d(x, size, align, factors_of({h, w}));
       }},
      {"upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
       "scales_h=None, float? scales_w=None) -> Tensor",
       [](In x, Sizes size, bool align, MaybeReal d, MaybeReal h, MaybeReal w) {
         return upsample_trilinear3d(x, size, align, factors_of({d, h, w}));
       }},
      {"upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
       "scales_w=None) -> Tensor",
       [](In x, Sizes size, bool align, MaybeReal h, MaybeReal w) {
         return upsample_bicubic2d(x, size, align, factors_of({h, w}));
       }},
      {"upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       [](In x, const std::optional<Shape>& size, bool align, Factors factors) {
         return upsample_linear1d(x, size_or_none(size), align, factors_or_none(factors));
       }},
      {"upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       [](In x, const std::optional<Shape>& size, bool align, Factors factors) {
         return upsample_bilinear2d(x, size_or_none(size), align, factors_or_none(factors));
       }},
      {"upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       [](In x, const std::optional<Shape>& size, bool align, Factors factors) {
         return upsample_trilinear3d(x, size_or_none(size), align, factors_or_none(factors));
       }},
      {"upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
       "Tensor",
       [](In x, const std::optional<Shape>& size, bool align, Factors factors) {
         return upsample_bicubic2d(x, size_or_none(size), align, factors_or_none(factors));
       }},

      // --- reading at positions
      {"grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       sampled},
      {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       sampled},
      {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
       "Tensor",
       sampled},
      {"affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", affine_grid},
      {"torchvision::roi_align.default(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt "
       "pooled_width, int sampling_ratio, bool aligned) -> Tensor",
       roi_align},
      {"torchvision::_roi_align_backward.default(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, "
       "SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool "
       "aligned) -> Tensor",
       roi_align_backward},
      {"max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor", unpooled},
      {"max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
       [](In x, const Tensor& indices, Sizes size, Ignored, Ignored) { return unpooled(x, indices, size); }},
  };
  return kList;
}

}  // namespace sinter::interop
