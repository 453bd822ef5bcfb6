// Pools.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// How many windows there are. Rounded up, a last one may begin in the operand or before it, but not in the padding behind it.
int64_t count_of(const Windows& w, int64_t size, size_t d, bool ceil_mode) {
  const int64_t padded = size + w.low[d] + w.high[d], room = padded - w.reach(d);
  check(room >= 0, "windows {} do not fit into an operand of size {}", w.kernel, size);
  int64_t count = room / w.stride[d] + 1;
  if (ceil_mode && room % w.stride[d] != 0 && count * w.stride[d] < size + w.low[d]) ++count;
  return count;
}

IntList counts_of(const Windows& w, const Shape& sizes, bool ceil_mode) {
  IntList out;
  for (size_t d = 0; d < w.kernel.size(); ++d) out.push_back(count_of(w, sizes[d + 2], d, ceil_mode));
  return out;
}

// So many windows as last dimensions: [n, c, out…, kernel…], with `outside` where they reach beyond the operand.
Tensor unfolded(const Tensor& x, const Windows& w, const IntList& counts, const Scalar& outside) {
  Windows all = w;
  for (size_t d = 0; d < w.kernel.size(); ++d)
    all.high[d] = std::max<int64_t>((counts[d] - 1) * w.stride[d] + w.reach(d) - x.size(int64_t(d) + 2) - w.low[d], w.high[d]);
  Tensor out = constant_pad_nd(x, all.pairs(), outside);
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    out = unfold(out, int64_t(d) + 2, w.reach(d), w.stride[d]);
    out = slice(out, -1, {}, {}, w.dilation[d]);
    out = narrow(out, int64_t(d) + 2, 0, counts[d]);
  }
  return out;
}

IntList last_dims(size_t count) {
  IntList out;
  for (size_t d = 0; d < count; ++d) out.push_back(-1 - int64_t(d));
  return out;
}

bool fits_the_pools(const Windows& w, bool ceil_mode, const Shape& sizes) {
  if (!w.is_symmetric() || w.rank() > 3) return false;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    if (w.low[d] * 2 > w.kernel[d]) return false;
    // PyTorch rounds up by the same rule; sizes that the windows reach beyond are left to the general way.
    if (ceil_mode && !sizes[d + 2].is_number()) return false;
  }
  return true;
}

double lowest_of(DType dtype) { return is_floating(dtype) ? -INFINITY : double(iinfo(dtype).min); }

std::tuple<Tensor, Tensor> max_pool(In operand, Ints kernel, Text auto_pad, bool ceil_mode, MaybeInts dilations, MaybeInts pads,
                                    bool by_columns, MaybeInts strides) {
  const Tensor x = operand.tensor();
  const Windows w = windows_of("MaxPool", x.sizes(), kernel, strides, dilations, pads, auto_pad);
  std::tuple<Tensor, Tensor> out;
  if (fits_the_pools(w, ceil_mode, x.sizes()) && is_floating(x.dtype())) {
    auto pool = w.rank() == 1 ? max_pool1d_with_indices : w.rank() == 2 ? max_pool2d_with_indices : max_pool3d_with_indices;
    out = pool(x, w.kernel, w.stride, w.low, w.dilation, ceil_mode);
  } else {
    const Scalar lowest = is_floating(x.dtype()) ? Scalar(lowest_of(x.dtype())) : Scalar(iinfo(x.dtype()).min);
    const IntList counts = counts_of(w, x.sizes(), ceil_mode);
    Tensor windows = unfolded(x, w, counts, lowest);
    windows = flatten(windows, windows.dim() - w.rank(), -1);
    // Where each element of the operand is, in windows of the same kind.
    const Shape plane = x.sizes().slice(2);
    Shape as_image = {1, 1};
    as_image.append(plane);
    const Tensor place = arange_of_size(plane.numel(), TensorOptions(kInt64).device(x.device())).view(as_image);
    Tensor places = unfolded(place, w, counts, Scalar(-1));
    places = expand(flatten(places, places.dim() - w.rank(), -1), windows.sizes());
    // Padding is never the largest: where all is equal the first place inside counts.
    const Tensor largest = amax(windows, IntList{-1}, true);
    const Tensor is_there = logical_and(eq(windows, largest), ge(places, 0));
    const Tensor first = argmax(is_there.to(kInt32), -1, true);
    out = {squeeze(largest, -1), squeeze(gather(places, -1, first), -1)};
  }
  // ONNX counts through the batch and the channels, too.
  const Shape sizes = x.sizes();
  Tensor& places = std::get<1>(out);
  const Dim plane = sizes.slice(2).numel();
  if (by_columns) {
    check(w.rank() == 2, "MaxPool: places by columns of {} dimensions", w.rank());
    const Tensor row = floor_divide(places, TensorArg(sizes[3])), column = remainder(places, TensorArg(sizes[3]));
    places = add(mul(column, TensorArg(sizes[2])), row);
  }
  Shape first = {sizes[0], sizes[1]};
  for (int64_t d = 0; d < w.rank(); ++d) first.push_back(1);
  const Tensor planes = arange_of_size(sizes[0] * sizes[1], TensorOptions(kInt64).device(x.device())).view(first);
  places = add(places, mul(planes, TensorArg(plane)));
  return out;
}

Tensor average_pool(In operand, Ints kernel, Text auto_pad, bool ceil_mode, bool counts_pads, MaybeInts dilations, MaybeInts pads,
                    MaybeInts strides) {
  const Tensor x = operand.tensor();
  const Windows w = windows_of("AveragePool", x.sizes(), kernel, strides, dilations, pads, auto_pad);
  const IntList ones(w.kernel.size(), 1), none(w.kernel.size(), 0);
  if (fits_the_pools(w, ceil_mode, x.sizes()) && w.dilation == ones && !ceil_mode) {
    if (w.rank() == 1) return avg_pool1d(x, w.kernel, w.stride, w.low, ceil_mode, counts_pads);
    if (w.rank() == 2) return avg_pool2d(x, w.kernel, w.stride, w.low, ceil_mode, counts_pads);
    return avg_pool3d(x, w.kernel, w.stride, w.low, ceil_mode, counts_pads);
  }
  const IntList dims = last_dims(w.kernel.size());
  const IntList counts = counts_of(w, x.sizes(), ceil_mode);
  const Tensor total = sum(unfolded(x, w, counts, 0), dims);
  // What counts are the elements inside, or those inside and the pads, but nothing beyond the pads.
  Windows bare = w;
  Tensor weight = ones_like(narrow(narrow(x, 0, 0, 1), 1, 0, 1));
  if (counts_pads) {
    weight = constant_pad_nd(weight, w.pairs(), 1);
    bare.low = bare.high = none;
  }
  return div(total, sum(unfolded(weight, bare, counts, 0), dims));
}

Tensor lp_pool(In operand, Ints kernel, Text auto_pad, bool ceil_mode, MaybeInts dilations, Int p, MaybeInts pads, MaybeInts strides) {
  const Windows w = windows_of("LpPool", operand.sizes(), kernel, strides, dilations, pads, auto_pad);
  const Tensor powers = pow(abs(operand), p);
  return pow(sum(unfolded(powers, w, counts_of(w, operand.sizes(), ceil_mode), 0), last_dims(w.kernel.size())), 1.0 / double(p));
}

IntList spatial_dims(In x) {
  IntList out;
  for (int64_t d = 2; d < x.dim(); ++d) out.push_back(d);
  return out;
}

Tensor unpooled(In x, In places, const std::optional<Shape>& size, Ints kernel, MaybeInts pads, MaybeInts strides) {
  const Windows w = windows_of("MaxUnpool", x.sizes(), kernel, strides, {}, pads, "NOTSET");
  Shape plain = x.sizes().slice(0, 2);
  for (size_t d = 0; d < w.kernel.size(); ++d)
    plain.push_back((x.size(int64_t(d) + 2) - 1) * w.stride[d] - w.low[d] - w.high[d] + w.kernel[d]);
  const Tensor flat = scatter(zeros({plain.numel()}, x.tensor().options()), 0, places.tensor().flatten(), flatten(x));
  // Places count in the plain sizes; in a larger result they have the same coordinates.
  Shape pairs;
  for (int64_t d = x.dim(); size && d-- > 0;) {
    pairs.push_back(0);
    pairs.push_back((*size)[size_t(d)] - plain[size_t(d)]);
  }
  return size ? constant_pad_nd(flat.view(plain), pairs) : flat.view(plain);
}

}  // namespace

std::span<const Function> pool_operators() {
  static const Function kList[] = {
      {"onnx::MaxPool.1(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", int ceil_mode=0, int[]? dilations=None, int[]? "
       "pads=None, int storage_order=0, int[]? strides=None) -> (Tensor, Tensor)",
       max_pool},
      {"onnx::AveragePool.1(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", int ceil_mode=0, int count_include_pad=0, "
       "int[]? dilations=None, int[]? pads=None, int[]? strides=None) -> Tensor",
       average_pool},
      {"onnx::LpPool.2(Tensor X, *, int[] kernel_shape, str auto_pad=\"NOTSET\", int ceil_mode=0, int[]? dilations=None, int p=2, "
       "int[]? pads=None, int[]? strides=None) -> Tensor",
       lp_pool},
      {"onnx::GlobalAveragePool.1(Tensor X) -> Tensor", [](In x) { return mean(x, spatial_dims(x), true); }},
      {"onnx::GlobalMaxPool.1(Tensor X) -> Tensor", [](In x) { return amax(x, spatial_dims(x), true); }},
      {"onnx::GlobalLpPool.2(Tensor X, *, int p=2) -> Tensor",
       [](In x, Int p) { return pow(sum(pow(abs(x), p), spatial_dims(x), true), 1.0 / double(p)); }},
      {"onnx::MaxUnpool.9(Tensor X, Tensor I, int[]? output_shape=None, *, int[] kernel_shape, int[]? pads=None, int[]? "
       "strides=None) -> Tensor",
       unpooled},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
