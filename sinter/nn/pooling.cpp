#include "sinter/base/error.h"
#include "sinter/nn/conv.h"
#include "sinter/ops/creation.h"

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

FractionalMaxPoolBase::FractionalMaxPoolBase(const FractionalMaxPoolOptions& options) : OptionsLayer(options) {
  reset();
}

void FractionalMaxPoolBase::reset() {
  check(options.output_size().empty() != options.output_ratio().empty(),
        "nn::FractionalMaxPool: give either an output_size or an output_ratio");
  for (double ratio : options.output_ratio())
    check(ratio > 0 && ratio < 1, "nn::FractionalMaxPool: output_ratio {} is not between 0 and 1", ratio);
  if (!options._random_samples().defined()) return;
  options._random_samples(options._random_samples().detach().clone());
  _random_samples = register_buffer("_random_samples", options._random_samples());
}

std::string FractionalMaxPoolBase::extra_repr() const {
  if (options.output_ratio().empty())
    return format("kernel_size={}, output_size={}", options.kernel_size(), options.output_size());
  std::string ratios;
  for (double ratio : options.output_ratio()) ratios += (ratios.empty() ? "" : ", ") + double_to_string(ratio);
  return format("kernel_size={}, output_ratio=[{}]", options.kernel_size(), ratios);
}

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

TensorPair fractional_max_pool_with_indices(int64_t rank, const TensorArg& x, const FractionalMaxPoolOptions& o) {
  UserPosition here(x.where());
  const char* op = rank == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  check(x.dim() == rank + 1 || x.dim() == rank + 2, "{}: expected an input of {} or {} dimensions, got {}", op,
        rank + 2, rank + 1, x.sizes());
  check(o.output_size().empty() != o.output_ratio().empty(), "{}: give either an output_size or an output_ratio", op);
  SpatialList size = o.output_size();
  const auto& ratios = o.output_ratio();
  check(ratios.empty() || ratios.size() == 1 || ratios.size() == size_t(rank), "{}: expected {} output ratios, got {}",
        op, rank, ratios.size());
  for (int64_t d = 0; size.size() < size_t(rank) && !ratios.empty(); ++d)
    size.push_back(int64_t(double(x.size(d - rank).to_int()) * ratios[ratios.size() == 1 ? 0 : size_t(d)]));
  Tensor samples = o._random_samples();
  if (!samples.defined())
    samples = rand({x.dim() == rank + 1 ? Dim(1) : x.size(0), x.size(-rank - 1), rank}, x.tensor().options());
  return (rank == 2 ? sinter::fractional_max_pool2d : sinter::fractional_max_pool3d)(x, o.kernel_size(), size, samples);
}

}  // namespace functional

}  // namespace sinter::nn
