#include "sinter/interop/onnx/boxes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/windows.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// The four elements around places (y, x) of planes [n, c, h, w], and their shares. Places are [n, k]; what lies outside by a whole
// element counts as nothing.
struct Corners {
  TensorList index;   // of the flattened plane, [n, k]
  TensorList weight;  // [n, k]
};

Tensor read_corner(const Tensor& planes, const Tensor& index) {
  const Shape sizes = {planes.size(0), planes.size(1), index.size(1)};
  return gather(planes, 2, expand(index.unsqueeze(1), sizes));
}

Corners corners_of(const Tensor& y, const Tensor& x, const Dim& height, const Dim& width, bool keeps_edge) {
  const Tensor top = floor(y), left = floor(x);
  Corners out;
  for (int64_t dy : {0, 1})
    for (int64_t dx : {0, 1}) {
      const Tensor row = add(top, dy), column = add(left, dx);
      const Tensor share_y = dy == 0 ? sub(add(top, 1), y) : sub(y, top), share_x = dx == 0 ? sub(add(left, 1), x) : sub(x, left);
      Tensor weight = mul(share_y, share_x);
      if (!keeps_edge) {
        const Tensor inside = logical_and(logical_and(ge(row, 0), lt(row, TensorArg(height))),
                                          logical_and(ge(column, 0), lt(column, TensorArg(width))));
        weight = where(inside, weight, zeros_like(weight));
      }
      const Tensor safe_row = clamp_max(clamp_min(row, 0), TensorArg(height - 1));
      const Tensor safe_column = clamp_max(clamp_min(column, 0), TensorArg(width - 1));
      out.index.push_back(add(mul(safe_row, TensorArg(width)), safe_column).to(kInt64));
      out.weight.push_back(weight);
    }
  return out;
}

}  // namespace

Tensor roi_align(In x, In rois, In batch, Text coordinates, Text mode, Int height, Int width, Int sampling, double scale) {
  check(mode == "avg" || mode == "max", "RoiAlign: there is no mode '{}'", mode);
  const bool is_half = coordinates == "half_pixel";
  const Shape sizes = x.sizes();
  const int64_t count = rois.size(0);
  const Tensor planes = flatten(x, 2);
  TensorList out;
  // Without a number of samples each region has its own: they are done one by one.
  for (int64_t r = 0; r < count; ++r) {
    const Tensor box = sub(mul(select(rois, 0, r), scale), is_half ? 0.5 : 0.0);
    auto side = [&](int64_t low, int64_t high) {
      const Tensor length = sub(select(box, 0, high), select(box, 0, low));
      return is_half ? length : clamp_min(length, 1.0);
    };
    const Tensor wide = side(0, 2), tall = side(1, 3);
    auto samples = [&](const Tensor& length, Int bins) {
      return sampling > 0 ? sampling : std::max<int64_t>(int64_t(std::ceil(length.item<double>() / double(bins))), 0);
    };
    const int64_t rows = samples(tall, height), columns = samples(wide, width);
    auto places = [&](const Tensor& start, const Tensor& length, Int bins, int64_t each) {
      const Tensor at = div(add(arange_of_size(bins * each, TensorOptions(x.dtype()).device(box.device())), 0.5), double(each));
      return add(start, mul(at, div(length, double(bins))));
    };
    Tensor y = places(select(box, 0, 1), tall, height, rows), across = places(select(box, 0, 0), wide, width, columns);
    const Dim down = sizes[2], right = sizes[3];
    auto inside = [](const Tensor& at, const Dim& size) { return logical_and(ge(at, -1.0), le(at, TensorArg(size))); };
    const Tensor is_inside = mul(inside(y, down).unsqueeze(1), inside(across, right)).reshape({1, -1});
    y = clamp_max(clamp_min(y, 0.0), TensorArg(down - 1));
    across = clamp_max(clamp_min(across, 0.0), TensorArg(right - 1));
    const Shape grid = {y.size(0), across.size(0)};
    const Corners corners = corners_of(expand(y.unsqueeze(1), grid).reshape({1, -1}), expand(across, grid).reshape({1, -1}), down, right, true);
    const Tensor plane = index_select(planes, 0, select(batch, 0, r).reshape({1}));
    Tensor value;
    for (size_t c = 0; c < 4; ++c) {
      const Tensor share = mul(corners.weight[c], is_inside.to(x.dtype()));
      const Tensor part = mul(read_corner(plane, corners.index[c]), share.unsqueeze(1));
      value = !value.defined() ? part : mode == "avg" ? add(value, part) : maximum(value, part);
    }
    const Tensor bins = value.view({sizes[1], height, rows, width, columns});
    const int64_t all = std::max<int64_t>(rows * columns, 1);
    out.push_back(mode == "avg" ? div(sum(bins, {2, 4}), all) : amax(bins, {2, 4}));
  }
  return out.empty() ? zeros({0, sizes[1], height, width}, x.tensor().options()) : stack(out, 0);
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
