#pragma once
// Convolutions, pools and resizing, over one, two and three spatial dimensions. Inputs are [batch, channels, …]; those of
// convolutions may be [channels, …]. No methods of Tensor.
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// One number per spatial dimension; a single one stands for all, none for the default.
struct SpatialList : IntList {
  SpatialList() = default;
  template <std::integral T>
  SpatialList(T value) : IntList({int64_t(value)}) {}
  SpatialList(std::initializer_list<int64_t> values) : IntList(values) {}
  SpatialList(const IntList& values) : IntList(values) {}
};
// The list with one number for each of `rank` spatial dimensions; the Error names the op and the parameter.
IntList expand_spatial(const char* op, const char* what, const SpatialList& list, int64_t rank, int64_t standard);

// kSame: zeros are added so that the output is as large as the input (stride 1 only).
enum class Padding : uint8_t { kValid, kSame };

// The general form: weight is [out, in / groups, …], or [in, out / groups, …] when transposed.
Tensor convolution(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,
                   const SpatialList& padding, const SpatialList& dilation, bool transposed,
                   const SpatialList& output_padding, int64_t groups);

// Convolution of [n, c, l].
Tensor conv1d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {}, const SpatialList& stride = 1,
              const SpatialList& padding = 0, const SpatialList& dilation = 1, int64_t groups = 1);
// Convolution of [n, c, h, w].
Tensor conv2d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {}, const SpatialList& stride = 1,
              const SpatialList& padding = 0, const SpatialList& dilation = 1, int64_t groups = 1);
// Convolution of [n, c, d, h, w].
Tensor conv3d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {}, const SpatialList& stride = 1,
              const SpatialList& padding = 0, const SpatialList& dilation = 1, int64_t groups = 1);
// The same with the padding by name.
Tensor conv1d(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,
              Padding padding, const SpatialList& dilation = 1, int64_t groups = 1);
Tensor conv2d(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,
              Padding padding, const SpatialList& dilation = 1, int64_t groups = 1);
Tensor conv3d(const TensorArg& x, const TensorArg& weight, const Tensor& bias, const SpatialList& stride,
              Padding padding, const SpatialList& dilation = 1, int64_t groups = 1);
// Convolution of [l, n, c] with a weight [k, c, out].
Tensor conv_tbc(const TensorArg& x, const TensorArg& weight, const Tensor& bias, int64_t pad = 0);  // no method
// Transposed convolutions: the gradient of a convolution as a layer of its own; weight is [in, out / groups, …].
Tensor conv_transpose1d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {},
                        const SpatialList& stride = 1, const SpatialList& padding = 0,
                        const SpatialList& output_padding = 0, int64_t groups = 1, const SpatialList& dilation = 1);
Tensor conv_transpose2d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {},
                        const SpatialList& stride = 1, const SpatialList& padding = 0,
                        const SpatialList& output_padding = 0, int64_t groups = 1, const SpatialList& dilation = 1);
Tensor conv_transpose3d(const TensorArg& x, const TensorArg& weight, const Tensor& bias = {},
                        const SpatialList& stride = 1, const SpatialList& padding = 0,
                        const SpatialList& output_padding = 0, int64_t groups = 1, const SpatialList& dilation = 1);

// Gradients of input, weight and bias, each where its mask is set (undefined elsewhere).
std::tuple<Tensor, Tensor, Tensor> convolution_backward(const TensorArg& grad_output, const TensorArg& input,
                                                        const TensorArg& weight, const SpatialList& stride,
                                                        const SpatialList& padding, const SpatialList& dilation,
                                                        bool transposed, const SpatialList& output_padding,
                                                        int64_t groups,
                                                        const std::array<bool, 3>& output_mask = {true, true, true});

// --- pools over the last 1, 2 or 3 dimensions; whatever dimensions come before are kept. An empty stride is the kernel

// The largest element of each window; padding never wins.
Tensor max_pool1d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, const SpatialList& dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, const SpatialList& dilation = 1, bool ceil_mode = false);
Tensor max_pool3d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, const SpatialList& dilation = 1, bool ceil_mode = false);
// The same, and where each came from: its row-major position among the pooled dimensions of x.
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const TensorArg& x, const SpatialList& kernel,
                                                   const SpatialList& stride = {}, const SpatialList& padding = 0,
                                                   const SpatialList& dilation = 1, bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& x, const SpatialList& kernel,
                                                   const SpatialList& stride = {}, const SpatialList& padding = 0,
                                                   const SpatialList& dilation = 1, bool ceil_mode = false);
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const TensorArg& x, const SpatialList& kernel,
                                                   const SpatialList& stride = {}, const SpatialList& padding = 0,
                                                   const SpatialList& dilation = 1, bool ceil_mode = false);
// The gradient of the input: grad added up at the indices.
Tensor max_pool2d_with_indices_backward(const TensorArg& grad_output, const TensorArg& x, const TensorArg& indices);
Tensor max_pool3d_with_indices_backward(const TensorArg& grad_output, const TensorArg& x, const TensorArg& indices);

// The mean of each window; divisor_override replaces the count of its elements.
Tensor avg_pool1d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});
Tensor avg_pool3d(const TensorArg& x, const SpatialList& kernel, const SpatialList& stride = {},
                  const SpatialList& padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                  std::optional<int64_t> divisor_override = {});
Tensor avg_pool2d_backward(const TensorArg& grad_output, const TensorArg& x, const SpatialList& kernel,
                           const SpatialList& stride = {}, const SpatialList& padding = 0, bool ceil_mode = false,
                           bool count_include_pad = true, std::optional<int64_t> divisor_override = {});
Tensor avg_pool3d_backward(const TensorArg& grad_output, const TensorArg& x, const SpatialList& kernel,
                           const SpatialList& stride = {}, const SpatialList& padding = 0, bool ceil_mode = false,
                           bool count_include_pad = true, std::optional<int64_t> divisor_override = {});

// Means over windows chosen so that the result has the given size: [floor(o*in/out), ceil((o+1)*in/out)). One number stands
// for all dimensions.
Tensor adaptive_avg_pool1d(const TensorArg& x, const Shape& output_size);
Tensor adaptive_avg_pool2d(const TensorArg& x, const Shape& output_size);
Tensor adaptive_avg_pool3d(const TensorArg& x, const Shape& output_size);
Tensor _adaptive_avg_pool2d_backward(const TensorArg& grad_output, const TensorArg& x);
Tensor _adaptive_avg_pool3d_backward(const TensorArg& grad_output, const TensorArg& x);
// The largest elements of the same windows, and where each came from.
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const TensorArg& x, const Shape& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const TensorArg& x, const Shape& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const TensorArg& x, const Shape& output_size);

// (sum x^p)^(1/p) over each window; of x itself, not of its magnitude.
Tensor lp_pool1d(const TensorArg& x, double norm_type, const SpatialList& kernel, const SpatialList& stride = {},
                 bool ceil_mode = false);
Tensor lp_pool2d(const TensorArg& x, double norm_type, const SpatialList& kernel, const SpatialList& stride = {},
                 bool ceil_mode = false);
Tensor lp_pool3d(const TensorArg& x, double norm_type, const SpatialList& kernel, const SpatialList& stride = {},
                 bool ceil_mode = false);
// The reverse of a max pool with indices: zeros but for its results, back where they came from. An empty output size is the
// one that kernel, stride and padding give.
Tensor max_unpool1d(const TensorArg& x, const Tensor& indices, const SpatialList& kernel, const SpatialList& stride = {},
                    const SpatialList& padding = 0, const Shape& output_size = {});
Tensor max_unpool2d(const TensorArg& x, const Tensor& indices, const SpatialList& kernel, const SpatialList& stride = {},
                    const SpatialList& padding = 0, const Shape& output_size = {});
Tensor max_unpool3d(const TensorArg& x, const Tensor& indices, const SpatialList& kernel, const SpatialList& stride = {},
                    const SpatialList& padding = 0, const Shape& output_size = {});

// Max pools whose windows begin at drawn places, so that the result has any size, and where each element came from: of
// the pooled sizes the first and the last window touch the ends. random_samples, in [0, 1), are [n, c, 2] (last
// dimension first) or [n, c, 3]; n may be left out of x.
std::tuple<Tensor, Tensor> fractional_max_pool2d(const TensorArg& x, const SpatialList& kernel_size,
                                                 const SpatialList& output_size, const TensorArg& random_samples);
std::tuple<Tensor, Tensor> fractional_max_pool3d(const TensorArg& x, const SpatialList& kernel_size,
                                                 const SpatialList& output_size, const TensorArg& random_samples);

// --- windows side by side; nn::functional::unfold and fold are the same

// [n, c, h, w] → [n, c * kernel, windows]: every window as a column, zeros outside. n may be left out.
Tensor im2col(const TensorArg& x, const SpatialList& kernel_size, const SpatialList& dilation = 1,
              const SpatialList& padding = 0, const SpatialList& stride = 1);
// [n, c * kernel, windows] → [n, c, h, w]: the columns added up where their windows lie.
Tensor col2im(const TensorArg& x, const Shape& output_size, const SpatialList& kernel_size,
              const SpatialList& dilation = 1, const SpatialList& padding = 0, const SpatialList& stride = 1);

// --- reading at given positions

enum class GridSampleMode : uint8_t { kBilinear, kNearest, kBicubic };
enum class GridSamplePaddingMode : uint8_t { kZeros, kBorder, kReflection };

// x, [n, c, h, w] or [n, c, d, h, w], read at the positions of a grid, [n, …, 2] or [n, …, 3]: (x, y) or (x, y, z), from -1
// to 1 between the outer edges of x, or the middles of its outermost elements when align_corners.
Tensor grid_sample(const TensorArg& x, const TensorArg& grid, GridSampleMode mode = GridSampleMode::kBilinear,
                   GridSamplePaddingMode padding_mode = GridSamplePaddingMode::kZeros, bool align_corners = false);
// The grid of an affine map, [n, 2, 3] or [n, 3, 4], for a result of `size`: [n, c, h, w] or [n, c, d, h, w].
Tensor affine_grid(const TensorArg& theta, const Shape& size, bool align_corners = false);

// --- resizing of images and their like

enum class InterpolateMode : uint8_t { kNearest, kNearestExact, kLinear, kBilinear, kTrilinear, kBicubic, kArea };

struct InterpolateOptions {
  Shape size = {};                        // of the spatial dimensions; or
  std::vector<double> scale_factor = {};  // one, or one per spatial dimension
  InterpolateMode mode = InterpolateMode::kNearest;
  std::optional<bool> align_corners = {};
  bool recompute_scale_factor = false;  // step by the ratio of the sizes even when a factor is given
  bool antialias = false;               // not available
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
// [n, g k, …] → [n, k g, …]: the first channel of every group, then the second, …
Tensor channel_shuffle(const TensorArg& x, int64_t groups);

}  // namespace sinter
