#include "sinter/base/error.h"
#include "sinter/nn/conv.h"

namespace sinter::nn {

std::string PoolBase::extra_repr() const {
  auto& stride = options.stride().empty() ? options.kernel_size() : options.stride();
  return format("kernel_size={}, stride={}, padding={}", options.kernel_size(), stride, options.padding());
}

std::string LPPoolBase::extra_repr() const {
  auto& stride = options.stride().empty() ? options.kernel_size() : options.stride();
  return format("norm_type={}, kernel_size={}, stride={}", options.norm_type(), options.kernel_size(), stride);
}

std::string AdaptivePoolBase::extra_repr() const { return format("output_size={}", options.output_size()); }

namespace functional {

namespace {

// One of three functions by the number of dimensions.
template <class F>
F by_rank(int64_t rank, F one, F two, F three) {
  return rank == 1 ? one : rank == 2 ? two : three;
}

Shape sizes_of(const AdaptivePoolOptions& o) { return Shape(std::span<const int64_t>{o.output_size()}); }

}  // namespace

Tensor max_pool(int64_t rank, const TensorArg& x, const PoolOptions& o) {
  auto pool = by_rank(rank, sinter::max_pool1d, sinter::max_pool2d, sinter::max_pool3d);
  return pool(x, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}

TensorPair max_pool_with_indices(int64_t rank, const TensorArg& x, const PoolOptions& o) {
  auto pool =
      by_rank(rank, sinter::max_pool1d_with_indices, sinter::max_pool2d_with_indices, sinter::max_pool3d_with_indices);
  return pool(x, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}

Tensor max_unpool(int64_t rank, const TensorArg& x, const Tensor& indices, const PoolOptions& o,
                  const Shape& output_size) {
  auto unpool = by_rank(rank, sinter::max_unpool1d, sinter::max_unpool2d, sinter::max_unpool3d);
  return unpool(x, indices, o.kernel_size(), o.stride(), o.padding(), output_size);
}

Tensor avg_pool(int64_t rank, const TensorArg& x, const PoolOptions& o) {
  if (rank == 1) {
    check(!o.divisor_override(), "avg_pool1d: divisor_override is for 2 and 3 dimensions");
    return sinter::avg_pool1d(x, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad());
  }
  auto pool = rank == 2 ? sinter::avg_pool2d : sinter::avg_pool3d;
  return pool(x, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(), o.divisor_override());
}

Tensor lp_pool(int64_t rank, const TensorArg& x, const LPPoolOptions& o) {
  auto pool = by_rank(rank, sinter::lp_pool1d, sinter::lp_pool2d, sinter::lp_pool3d);
  return pool(x, o.norm_type(), o.kernel_size(), o.stride(), o.ceil_mode());
}

Tensor adaptive_avg_pool(int64_t rank, const TensorArg& x, const AdaptivePoolOptions& o) {
  auto pool = by_rank(rank, sinter::adaptive_avg_pool1d, sinter::adaptive_avg_pool2d, sinter::adaptive_avg_pool3d);
  return pool(x, sizes_of(o));
}

TensorPair adaptive_max_pool(int64_t rank, const TensorArg& x, const AdaptivePoolOptions& o) {
  auto pool = by_rank(rank, sinter::adaptive_max_pool1d, sinter::adaptive_max_pool2d, sinter::adaptive_max_pool3d);
  return pool(x, sizes_of(o));
}

}  // namespace functional

}  // namespace sinter::nn
