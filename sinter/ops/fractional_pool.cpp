// Max pools whose windows begin at drawn places.
#include "sinter/ops/contract.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// Where the windows of one dimension begin, [n, c, windows], from a sample for each channel, [n, c]. In the samples'
// dtype, as in PyTorch: another rounding would be another window.
Tensor window_starts(const Tensor& sample, const Dim& in, int64_t windows, int64_t kernel) {
  Tensor last = full(with_tail(sample.sizes(), 0, {1}), in - kernel, sample.options().dtype(kInt64));
  if (windows == 1) return last;
  Tensor step = full({}, in - kernel, sample.options()) / full({}, windows - 1, sample.options());
  Tensor shift = sample.unsqueeze(-1), number = arange(windows - 1, sample.options());
  Tensor first = trunc((number + shift) * step).to(kInt64) - trunc(shift * step).to(kInt64);
  return cat({first, last}, -1);
}

std::tuple<Tensor, Tensor> fractional_max_pool(const char* op, int64_t pooled, const TensorArg& x_arg,
                                               const SpatialList& kernel_size, const SpatialList& output_size,
                                               const TensorArg& samples_arg) {
  UserPosition here(x_arg.where(), op);
  const Tensor &given = tensor_operand(op, x_arg), &samples = tensor_operand(op, samples_arg);
  check(given.dim() == pooled + 1 || given.dim() == pooled + 2, "{}: expected an input of {} or {} dimensions, got {}",
        op, pooled + 2, pooled + 1, given.sizes());
  check(given.is_floating_point() && samples.dtype() == given.dtype(), "{}: an input of {} and random samples of {}",
        op, given.dtype(), samples.dtype());
  const bool batched = given.dim() == pooled + 2;
  const Tensor x = batched ? given : given.unsqueeze(0);
  check(samples.dim() == 3 && samples.size(0) == x.size(0) && samples.size(1) == x.size(1) && samples.size(2) == pooled,
        "{}: expected random samples [{}, {}, {}], got {}", op, x.size(0), x.size(1), pooled, samples.sizes());
  const IntList kernel = expand_spatial(op, "kernel", kernel_size, pooled, 1),
                size = expand_spatial(op, "output size", output_size, pooled, 1);
  // Coordinates of each element of each window: [n, c, windows…, elements…], row-major among the pooled dimensions.
  Tensor position;
  Shape windows{x.size(0), x.size(1)};
  for (int64_t d = 0; d < pooled; ++d) {
    const Dim in = x.size(d - pooled);
    const int64_t k = kernel[size_t(d)], out = size[size_t(d)];
    check(k >= 1 && out >= 1, "{}: kernel {} and output size {} must be positive", op, kernel, size);
    check(in >= k + out - 1, "{}: {} windows of {} elements do not fit a dimension of {}", op, out, k, in);
    // Of two dimensions the first sample is for the last one.
    Tensor starts = window_starts(samples.detach().select(-1, pooled == 2 ? 1 - d : d), in, out, k);
    Shape place{x.size(0), x.size(1)}, inside(size_t(2 * pooled), 1);
    for (int64_t e = 0; e < 2 * pooled; ++e) place.push_back(e == d ? out : 1);
    inside[size_t(pooled + d)] = k;
    Tensor along = starts.view(place) + arange(k, starts.options()).view(inside);
    position = position.defined() ? position * in + along : along;
    windows.push_back(out);
  }
  position = position.flatten(-pooled);
  const Tensor flat = x.flatten(-pooled);
  Tensor seen = gather(flat.detach(), -1, position.flatten(2)).view(position.sizes());
  Tensor indices = gather(position, -1, argmax(seen, -1, true)).squeeze(-1);
  Tensor out = gather(flat, -1, indices.flatten(2)).view(windows);
  if (batched) return {out, indices};
  return {out.squeeze(0), indices.squeeze(0)};
}

}  // namespace

std::tuple<Tensor, Tensor> fractional_max_pool2d(const TensorArg& x, const SpatialList& kernel_size,
                                                 const SpatialList& output_size, const TensorArg& random_samples) {
  return fractional_max_pool("fractional_max_pool2d", 2, x, kernel_size, output_size, random_samples);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d(const TensorArg& x, const SpatialList& kernel_size,
                                                 const SpatialList& output_size, const TensorArg& random_samples) {
  return fractional_max_pool("fractional_max_pool3d", 3, x, kernel_size, output_size, random_samples);
}

}  // namespace sinter
