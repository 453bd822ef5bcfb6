// Pools that are formulas over others: power means, and what undoes a max pool.
#include <cmath>

#include "sinter/ops/contract.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

Tensor power_pool(const char* op, const TensorArg& x_arg, int64_t pooled, double p, const SpatialList& kernel,
                  const SpatialList& stride, bool ceil_mode) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand(op, x_arg);
  check(p != 0, "{}: norm_type must not be 0", op);
  Tensor powers = pow(widened(x), p), mean;
  double count = 1;
  for (int64_t k : expand_spatial(op, "kernel", kernel, pooled, 1)) count *= double(k);
  mean = pooled == 1   ? avg_pool1d(powers, kernel, stride, 0, ceil_mode)
         : pooled == 2 ? avg_pool2d(powers, kernel, stride, 0, ceil_mode)
                       : avg_pool3d(powers, kernel, stride, 0, ceil_mode);
  return narrowed(pow(mean * count, 1 / p), x.dtype());
}

Tensor unpool(const char* op, const TensorArg& x_arg, const Tensor& indices, int64_t pooled, const SpatialList& kernel,
              const SpatialList& stride, const SpatialList& padding, const Shape& output_size) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand(op, x_arg);
  check(x.dim() == pooled + 1 || x.dim() == pooled + 2, "{}: expected an input of {} or {} dimensions, got {}", op,
        pooled + 2, pooled + 1, x.sizes());
  check(indices.defined() && indices.dtype() == kInt64 && indices.dim() == x.dim(),
        "{}: expected i64 indices of the input's shape {}", op, x.sizes());
  IntList window = expand_spatial(op, "kernel", kernel, pooled, 1),
          step = expand_spatial(op, "stride", stride.empty() ? kernel : stride, pooled, 1),
          pad = expand_spatial(op, "padding", padding, pooled, 0);
  Shape size;
  for (int64_t d = 0; d < pooled; ++d)
    size.push_back((x.size(d - pooled) - 1) * step[size_t(d)] - 2 * pad[size_t(d)] + window[size_t(d)]);
  if (!output_size.empty()) {
    // The last sizes count, so that those of a whole tensor may be given.
    check(output_size.rank() >= pooled, "{}: expected {} output sizes, got {}", op, pooled, output_size);
    Shape given(output_size.end() - pooled, output_size.end());
    for (int64_t d = 0; d < pooled; ++d) {
      Dim slack = given[size_t(d)] - size[size_t(d)];
      check(slack > -step[size_t(d)] && slack < step[size_t(d)], "{}: output sizes {} are too far from {}", op, given,
            size);
    }
    size = given;
  }
  Shape out = with_tail(x.sizes(), pooled, size);
  Tensor zero = zeros(with_tail(x.sizes(), pooled, {size.numel()}), x.options());
  return scatter(zero, -1, indices.flatten(-pooled), x.flatten(-pooled)).view(out);
}

}  // namespace

#define SINTER_POOL(n)                                                                                             \
  Tensor lp_pool##n##d(const TensorArg& x, double norm_type, const SpatialList& kernel, const SpatialList& stride, \
                       bool ceil_mode) {                                                                           \
    return power_pool("lp_pool" #n "d", x, n, norm_type, kernel, stride, ceil_mode);                               \
  }                                                                                                                \
  Tensor max_unpool##n##d(const TensorArg& x, const Tensor& indices, const SpatialList& kernel,                    \
                          const SpatialList& stride, const SpatialList& padding, const Shape& output_size) {       \
    return unpool("max_unpool" #n "d", x, indices, n, kernel, stride, padding, output_size);                       \
  }
SINTER_POOL(1)
SINTER_POOL(2)
SINTER_POOL(3)
#undef SINTER_POOL

}  // namespace sinter
