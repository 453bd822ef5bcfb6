#include "sinter/ops/conv.h"

#include <cmath>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// How one dimension is resized: to `out` elements, by the given factor if there is one, else by the ratio of the sizes.
struct Resize {
  int64_t dim;
  Dim in, out;
  std::optional<double> factor;
  bool align_corners;
};

Tensor coordinates(const Tensor& x, const Resize& r, DType dtype) {
  return arange_of_size(r.out, TensorOptions(dtype).device(x.device()));
}

// Where each result element lies in the input, in units of its elements.
Tensor source_positions(const Tensor& x, const Resize& r) {
  Tensor o = coordinates(x, r, kFloat64);
  if (r.align_corners) return o * (r.in - 1) / max(r.out - 1, 1);
  return (r.factor ? (o + 0.5) / *r.factor : (o + 0.5) * r.in / r.out) - 0.5;
}

Tensor clamped(const Tensor& index, const Resize& r) { return minimum(clamp_min(index, 0), r.in - 1); }

Tensor nearest(const Tensor& x, const Resize& r, bool exact) {
  Tensor index;
  if (r.factor)
    index = floor((coordinates(x, r, kFloat64) + (exact ? 0.5 : 0.0)) / *r.factor).to(kInt64);
  else if (exact)
    index = floor_divide((coordinates(x, r, kInt64) * 2 + 1) * r.in, r.out * 2);
  else
    index = floor_divide(coordinates(x, r, kInt64) * r.in, r.out);
  return index_select(x, r.dim, clamped(index, r));
}

// The weight of each result element, shaped to broadcast along r.dim.
Tensor as_weight(const Tensor& weight, const Tensor& x, const Resize& r) {
  Shape shape(size_t(x.dim() - r.dim), 1);
  shape[0] = r.out;
  return weight.to(x.dtype()).view(shape);
}

Tensor linear_between(const Tensor& x, const Resize& r) {
  Tensor position = clamp_min(source_positions(x, r), 0.0), low = floor(position);
  Tensor index = low.to(kInt64);
  Tensor a = index_select(x, r.dim, clamped(index, r)), b = index_select(x, r.dim, clamped(index + 1, r));
  Tensor w = as_weight(position - low, x, r);
  return a * (1 - w) + b * w;
}

Tensor cubic_between(const Tensor& x, const Resize& r) {
  Tensor position = source_positions(x, r), low = floor(position);
  auto weights = cubic_weights(position - low);
  Tensor sum, index = low.to(kInt64);
  for (int64_t tap = 0; tap < 4; ++tap) {
    Tensor term = index_select(x, r.dim, clamped(index + (tap - 1), r)) * as_weight(weights[size_t(tap)], x, r);
    sum = tap == 0 ? term : sum + term;
  }
  return sum;
}

Tensor resize(const char* op, const TensorArg& x_arg, int64_t spatial, Shape size, const std::vector<double>& factors,
              InterpolateMode mode, bool align_corners, bool use_factors = true) {
  UserPosition here(x_arg.where(), op);
  const Tensor& x = tensor_operand(op, x_arg);
  check(x.dim() == spatial + 2, "{}: expected an input [batch, channels, …] with {} spatial dimensions, got {}", op,
        spatial, x.sizes());
  check(factors.empty() || factors.size() == 1 || int64_t(factors.size()) == spatial,
        "{}: expected 1 or {} scale factors, got {}", op, spatial, factors.size());
  check(size.empty() ? !factors.empty() : size.rank() == spatial,
        "{}: expected {} output sizes or scale factors, got sizes {}", op, spatial, size);
  auto factor = [&](int64_t d) { return factors[factors.size() == 1 ? 0 : size_t(d)]; };
  if (size.empty())
    for (int64_t d = 0; d < spatial; ++d) {
      check(factor(d) > 0, "{}: scale factors must be positive, got {}", op, factor(d));
      // A whole factor keeps a symbolic size symbolic.
      bool whole = factor(d) == std::floor(factor(d));
      size.push_back(whole ? x.size(d + 2) * int64_t(factor(d))
                           : Dim(int64_t(std::floor(double(x.size(d + 2).to_int()) * factor(d)))));
    }
  if (mode == InterpolateMode::kArea)
    return spatial == 1   ? adaptive_avg_pool1d(x, size)
           : spatial == 2 ? adaptive_avg_pool2d(x, size)
                          : adaptive_avg_pool3d(x, size);
  bool picks = mode == InterpolateMode::kNearest || mode == InterpolateMode::kNearestExact;
  check(picks || x.is_floating_point(), "{}: expected a floating dtype, got {}", op, x.dtype());
  Tensor y = picks ? x : widened(x);
  for (int64_t d = spatial - 1; d >= 0; --d) {
    Resize r{d + 2, x.size(d + 2), size[size_t(d)], {}, align_corners};
    check(r.in >= 1 && r.out >= 1, "{}: cannot resize {} to {}", op, x.sizes(), size);
    if (use_factors && !factors.empty()) r.factor = factor(d);
    y = picks                               ? nearest(y, r, mode == InterpolateMode::kNearestExact)
        : mode == InterpolateMode::kBicubic ? cubic_between(y, r)
                                            : linear_between(y, r);
  }
  return narrowed(y, x.dtype());
}

}  // namespace

std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double kA = -0.75;
  auto inner = [](const Tensor& d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  auto outside = [](const Tensor& d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  return {outside(t + 1), inner(t), inner(1 - t), outside(2 - t)};
}

Tensor interpolate(const TensorArg& x, const InterpolateOptions& options) {
  UserPosition here(x.where());
  int64_t spatial = tensor_operand("interpolate", x).dim() - 2;
  auto mode = options.mode;
  using enum InterpolateMode;
  check(spatial >= 1 && spatial <= 3,
        "interpolate: expected an input [batch, channels, …] with 1 to 3 spatial dimensions, got {}", x.sizes());
  check(options.size.empty() != options.scale_factor.empty(), "interpolate: give either a size or a scale factor");
  check(!options.antialias, "interpolate: antialias is not available; blur before you shrink, or use mode kArea");
  bool picks = mode == kNearest || mode == kNearestExact || mode == kArea;
  check(!picks || !options.align_corners, "interpolate: align_corners is for linear, bilinear, trilinear and bicubic");
  int64_t wanted = mode == kLinear ? 1 : mode == kBilinear || mode == kBicubic ? 2 : mode == kTrilinear ? 3 : spatial;
  check(spatial == wanted, "interpolate: this mode is for {} spatial dimensions, the input {} has {}", wanted,
        x.sizes(), spatial);
  return resize("interpolate", x, spatial, options.size, options.scale_factor, mode,
                options.align_corners.value_or(false), !options.recompute_scale_factor);
}

Tensor upsample_nearest1d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors) {
  return resize("upsample_nearest1d", x, 1, output_size, scale_factors, InterpolateMode::kNearest, false);
}
Tensor upsample_nearest2d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors) {
  return resize("upsample_nearest2d", x, 2, output_size, scale_factors, InterpolateMode::kNearest, false);
}
Tensor upsample_nearest3d(const TensorArg& x, const Shape& output_size, const std::vector<double>& scale_factors) {
  return resize("upsample_nearest3d", x, 3, output_size, scale_factors, InterpolateMode::kNearest, false);
}
Tensor upsample_linear1d(const TensorArg& x, const Shape& output_size, bool align_corners,
                         const std::vector<double>& scale_factors) {
  return resize("upsample_linear1d", x, 1, output_size, scale_factors, InterpolateMode::kLinear, align_corners);
}
Tensor upsample_bilinear2d(const TensorArg& x, const Shape& output_size, bool align_corners,
                           const std::vector<double>& scale_factors) {
  return resize("upsample_bilinear2d", x, 2, output_size, scale_factors, InterpolateMode::kBilinear, align_corners);
}
Tensor upsample_trilinear3d(const TensorArg& x, const Shape& output_size, bool align_corners,
                            const std::vector<double>& scale_factors) {
  return resize("upsample_trilinear3d", x, 3, output_size, scale_factors, InterpolateMode::kTrilinear, align_corners);
}
Tensor upsample_bicubic2d(const TensorArg& x, const Shape& output_size, bool align_corners,
                          const std::vector<double>& scale_factors) {
  return resize("upsample_bicubic2d", x, 2, output_size, scale_factors, InterpolateMode::kBicubic, align_corners);
}

Tensor pixel_shuffle(const TensorArg& x_arg, int64_t r) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("pixel_shuffle", x_arg);
  check(x.dim() >= 3 && r >= 1 && x.size(-3) % (r * r) == 0,
        "pixel_shuffle: the channels of {} must be a multiple of the factor squared, {}", x.sizes(), r * r);
  Dim c = x.size(-3) / (r * r), h = x.size(-2), w = x.size(-1);
  Shape lead = with_tail(x.sizes(), 3, {});
  Dim batch = lead.numel();
  return x.reshape({batch, c, r, r, h, w}).permute({0, 1, 4, 2, 5, 3}).reshape(with_tail(lead, 0, {c, h * r, w * r}));
}

Tensor pixel_unshuffle(const TensorArg& x_arg, int64_t r) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("pixel_unshuffle", x_arg);
  check(x.dim() >= 3 && r >= 1 && x.size(-2) % r == 0 && x.size(-1) % r == 0,
        "pixel_unshuffle: the last two sizes of {} must be multiples of the factor {}", x.sizes(), r);
  Dim c = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r;
  Shape lead = with_tail(x.sizes(), 3, {});
  Dim batch = lead.numel();
  return x.reshape({batch, c, h, r, w, r}).permute({0, 1, 3, 5, 2, 4}).reshape(with_tail(lead, 0, {c * r * r, h, w}));
}

Tensor channel_shuffle(const TensorArg& x_arg, int64_t groups) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("channel_shuffle", x_arg);
  check(x.dim() >= 3 && groups >= 1 && x.size(1) % groups == 0,
        "channel_shuffle: the channels of {} (dimension 1 of at least 3) do not fall into {} groups", x.sizes(), groups);
  return x.unflatten(1, {groups, x.size(1) / groups}).transpose(1, 2).reshape(x.sizes());
}

}  // namespace sinter
