#pragma once
// Pools over the last 1, 2 or 3 dimensions; whatever dimensions come before are kept. An empty stride is the kernel.
#include <optional>
#include <tuple>

#include "sinter/ops/conv.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

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

// Means over windows chosen so that the result has the given size: [floor(o*in/out), ceil((o+1)*in/out)).
Tensor adaptive_avg_pool1d(const TensorArg& x, const Shape& output_size);
Tensor adaptive_avg_pool2d(const TensorArg& x, const Shape& output_size);
Tensor adaptive_avg_pool3d(const TensorArg& x, const Shape& output_size);
Tensor _adaptive_avg_pool2d_backward(const TensorArg& grad_output, const TensorArg& x);
Tensor _adaptive_avg_pool3d_backward(const TensorArg& grad_output, const TensorArg& x);
// The largest elements of the same windows, and where each came from.
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const TensorArg& x, const Shape& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const TensorArg& x, const Shape& output_size);
std::tuple<Tensor, Tensor> adaptive_max_pool3d(const TensorArg& x, const Shape& output_size);

}  // namespace sinter
