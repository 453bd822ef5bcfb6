#pragma once
// Resizing of images and their like: inputs are [batch, channels, …].
#include <optional>
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter {

enum class InterpolateMode : uint8_t { kNearest, kNearestExact, kLinear, kBilinear, kTrilinear, kBicubic, kArea };

struct InterpolateOptions {
  Shape size = {};                        // of the spatial dimensions; or
  std::vector<double> scale_factor = {};  // one, or one per spatial dimension
  InterpolateMode mode = InterpolateMode::kNearest;
  std::optional<bool> align_corners = {};
  bool recompute_scale_factor = false;  // step by the ratio of the sizes even when a factor is given
};

// Resizes the spatial dimensions: interpolate(x, {.scale_factor = {2}, .mode = InterpolateMode::kBilinear}).
Tensor interpolate(const TensorArg& x, const InterpolateOptions& options);

// The forms that exported graphs name. An empty size follows from the factors; factors, where given, set the step.
Tensor upsample_nearest1d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors = {});
Tensor upsample_nearest2d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors = {});
Tensor upsample_nearest3d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors = {});
Tensor upsample_linear1d(const TensorArg& x, const Shape& output_size, bool align_corners,
                         const std::vector<double>& scale_factors = {});
Tensor upsample_bilinear2d(const TensorArg& x, const Shape& output_size, bool align_corners,
                           const std::vector<double>& scale_factors = {});
Tensor upsample_trilinear3d(const TensorArg& x, const Shape& output_size, bool align_corners,
                            const std::vector<double>& scale_factors = {});
Tensor upsample_bicubic2d(const TensorArg& x, const Shape& output_size, bool align_corners,
                          const std::vector<double>& scale_factors = {});

// [..., c r², h, w] → [..., c, h r, w r], and back.
Tensor pixel_shuffle(const TensorArg& x, int64_t upscale_factor);
Tensor pixel_unshuffle(const TensorArg& x, int64_t downscale_factor);

}  // namespace sinter
