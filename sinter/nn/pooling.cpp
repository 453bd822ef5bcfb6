#include "sinter/nn/conv.h"

#include "sinter/base/error.h"
#include "sinter/ops/conv.h"

namespace sinter::nn {

std::string PoolBase::extra_repr() const {
  auto& stride = options.stride().empty() ? options.kernel_size() : options.stride();
  return format("kernel_size={}, stride={}, padding={}", options.kernel_size(), stride, options.padding());
}

Tensor MaxPool1dImpl::forward(const TensorArg& x) {
  return max_pool1d(x, options.kernel_size(), options.stride(), options.padding(), options.dilation(),
                    options.ceil_mode());
}

Tensor MaxPool2dImpl::forward(const TensorArg& x) {
  return max_pool2d(x, options.kernel_size(), options.stride(), options.padding(), options.dilation(),
                    options.ceil_mode());
}

Tensor AvgPool1dImpl::forward(const TensorArg& x) {
  return avg_pool1d(x, options.kernel_size(), options.stride(), options.padding(), options.ceil_mode(),
                    options.count_include_pad());
}

Tensor AvgPool2dImpl::forward(const TensorArg& x) {
  return avg_pool2d(x, options.kernel_size(), options.stride(), options.padding(), options.ceil_mode(),
                    options.count_include_pad());
}

Tensor AdaptiveAvgPool1dImpl::forward(const TensorArg& x) {
  return adaptive_avg_pool1d(x, Shape(std::span<const int64_t>(output_size)));
}

Tensor AdaptiveAvgPool2dImpl::forward(const TensorArg& x) {
  return adaptive_avg_pool2d(x, Shape(std::span<const int64_t>(output_size)));
}

std::string AdaptiveAvgPool1dImpl::extra_repr() const { return format("output_size={}", output_size); }
std::string AdaptiveAvgPool2dImpl::extra_repr() const { return format("output_size={}", output_size); }

}  // namespace sinter::nn
