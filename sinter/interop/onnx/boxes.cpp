#include "sinter/interop/onnx/boxes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/interop/regions.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Tensor read_corner(const Tensor& planes, const Tensor& index) {
  const Shape sizes = {planes.size(0), planes.size(1), index.size(1)};
  return gather(planes, 2, expand(index.unsqueeze(1), sizes));
}

}  // namespace

Tensor roi_align(In x, In rois, In batch, Text coordinates, Text mode, Int height, Int width, Int sampling, double scale) {
  check(mode == "avg" || mode == "max", "RoiAlign: there is no mode '{}'", mode);
  const bool is_half = coordinates == "half_pixel";
  const Tensor boxes = sub(mul(rois, scale), is_half ? 0.5 : 0.0);
  auto edge = [&](int64_t which) { return select(boxes, 1, which); };
  auto side = [&](int64_t low, int64_t high) {
    const Tensor length = sub(edge(high), edge(low));
    return is_half ? length : clamp_min(length, 1.0);
  };
  const Regions all{edge(1), edge(0), side(1, 3), side(0, 2), batch.tensor().to(kInt64)};
  const bool takes_largest = mode == "max";
  if (sampling > 0) return aligned_regions(x.tensor(), all, {height, width, sampling, sampling, takes_largest});
  // Without a number of samples each region has its own: they are done one by one.
  auto samples = [](const Tensor& length, Int bins) {
    return std::max<int64_t>(int64_t(std::ceil(length.item<double>() / double(bins))), 0);
  };
  TensorList out;
  const int64_t count = rois.size(0);
  for (int64_t r = 0; r < count; ++r) {
    auto one = [&](const Tensor& t) { return t.narrow(0, r, 1); };
    const Regions region{one(all.top), one(all.left), one(all.tall), one(all.wide), one(all.image)};
    out.push_back(aligned_regions(
        x.tensor(), region, {height, width, samples(region.tall, height), samples(region.wide, width), takes_largest}));
  }
  return out.empty() ? zeros({0, x.size(1), height, width}, x.tensor().options()) : cat(out, 0);
}

namespace {

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_of(const double* b, bool is_center) {
  if (is_center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  const double tall = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), wide = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (tall <= 0 || wide <= 0 || a.area() <= 0 || b.area() <= 0) return false;
  const double both = tall * wide;
  return both / (a.area() + b.area() - both) > threshold;
}

}  // namespace

Tensor non_max_suppression(In boxes, In scores, MaybeInt most, MaybeReal overlap, MaybeReal least, bool is_center) {
  const std::vector<double> corners = boxes.tensor().to(kFloat64).to_vector<double>(), points = scores.tensor().to(kFloat64).to_vector<double>();
  check(boxes.dim() == 3 && scores.dim() == 3, "NonMaxSuppression: boxes {} and scores {}", boxes.sizes(), scores.sizes());
  const int64_t batches = scores.size(0), classes = scores.size(1), count = scores.size(2);
  check(boxes.size(0) == batches && boxes.size(1) == count && boxes.size(2) == 4, "NonMaxSuppression: boxes {} and scores {}",
        boxes.sizes(), scores.sizes());
  std::vector<int64_t> out;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes; ++c) {
      const double* score = points.data() + (b * classes + c) * count;
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i)
        if (!least || score[i] > *least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score[i] > score[j]; });
      std::vector<Box> kept;
      for (int64_t i : order) {
        if (int64_t(kept.size()) >= most.value_or(0)) break;
        const Box box = box_of(corners.data() + (b * count + i) * 4, is_center);
        const bool is_hidden = std::any_of(kept.begin(), kept.end(), [&](const Box& k) { return overlaps(k, box, overlap.value_or(0)); });
        if (is_hidden) continue;
        kept.push_back(box);
        out.insert(out.end(), {b, c, i});
      }
    }
  return from_data(out, {int64_t(out.size() / 3), 3}).to(boxes.tensor().device());
}

Tensor deformable_convolution(In x, In weight, In offset, Maybe bias, Maybe mask, MaybeInts dilations, Int group, MaybeInts kernel,
                              Int offset_group, MaybeInts pads, MaybeInts strides) {
  const Windows w = windows_of("DeformConv", x.sizes(), kernel.value_or(IntList(weight.sizes().slice(2))), strides, dilations, pads, "NOTSET");
  check(w.rank() == 2, "DeformConv: windows of {} dimensions", w.rank());
  const Shape sizes = x.sizes();
  const int64_t n = sizes[0], channels = sizes[1], height = offset.size(2), width = offset.size(3);
  const int64_t taps = w.kernel[0] * w.kernel[1], each = channels / offset_group, plane = height * width;
  const TensorOptions options = TensorOptions(x.dtype()).device(x.tensor().device());
  auto grid = [&](size_t d, int64_t count) { return sub(mul(arange_of_size(count, options), w.stride[d]), w.low[d]); };
  const Tensor rows = grid(0, height).view({height, 1}), columns = grid(1, width);
  // [n, groups, taps, 2, h, w]: rows and columns by which places are moved.
  const Tensor moved = reshape(offset, {n, offset_group, taps, 2, height, width});
  const Tensor shares = mask.defined() ? reshape(mask, {n, offset_group, taps, 1, plane}) : Tensor();
  const Tensor planes = reshape(x, {n * offset_group, each, sizes[2] * sizes[3]});
  TensorList read;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Tensor by = select(moved, 2, tap);
    const Tensor y = add(add(select(by, 2, 0), rows), tap / w.kernel[1] * w.dilation[0]).reshape({n * offset_group, plane});
    const Tensor across = add(add(select(by, 2, 1), columns), tap % w.kernel[1] * w.dilation[1]).reshape({n * offset_group, plane});
    const Corners corners = corners_of(y, across, sizes[2], sizes[3], false);
    Tensor value;
    for (size_t c = 0; c < 4; ++c) {
      const Tensor part = mul(read_corner(planes, corners.index[c]), corners.weight[c].unsqueeze(1));
      value = value.defined() ? add(value, part) : part;
    }
    value = value.view({n, offset_group, each, plane});
    if (shares.defined()) value = mul(value, select(shares, 2, tap));
    read.push_back(value.reshape({n, group, channels / group, plane}));
  }
  // [n, group, channels * taps, plane] with the weights of each group.
  const Tensor all = reshape(stack(read, 3), {n, group, channels / group * taps, plane});
  const Tensor weights = reshape(weight, {1, group, weight.size(0) / group, channels / group * taps});
  const Tensor out = reshape(matmul(weights, all), {n, weight.size(0), height, width});
  return bias.defined() ? add(out, bias.view({1, -1, 1, 1})) : out;
}

}  // namespace sinter::interop::onnx
