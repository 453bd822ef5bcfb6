#pragma once
// Convolutions of one, two and three spatial dimensions. Inputs are [batch, channels, …] or [channels, …].
#include <array>
#include <tuple>

#include "sinter/tensor/tensor.h"

namespace sinter {

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

}  // namespace sinter
