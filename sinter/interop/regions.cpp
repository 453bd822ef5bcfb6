#include "sinter/interop/regions.h"

#include <algorithm>

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

Corners corners_of(const Tensor& y, const Tensor& x, const Dim& height, const Dim& width, bool keeps_edge) {
  const Tensor top = floor(y), left = floor(x);
  Corners out;
  for (int64_t dy : {0, 1})
    for (int64_t dx : {0, 1}) {
      const Tensor row = add(top, dy), column = add(left, dx);
      const Tensor share_y = dy == 0 ? sub(add(top, 1), y) : sub(y, top),
                   share_x = dx == 0 ? sub(add(left, 1), x) : sub(x, left);
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

Tensor aligned_regions(const Tensor& x, const Regions& regions, const RegionSampling& sampling) {
  const Dim channels = x.size(1), down = x.size(2), right = x.size(3), count = regions.top.size(0);
  // [regions, bins * each]
  auto places = [&](const Tensor& start, const Tensor& length, int64_t bins, int64_t each) {
    const Tensor at = div(add(arange_of_size(bins * each, start.options()), 0.5), double(each));
    return add(start.unsqueeze(1), mul(at, div(length, double(bins)).unsqueeze(1)));
  };
  const Tensor y = places(regions.top, regions.tall, sampling.height, sampling.rows);
  const Tensor across = places(regions.left, regions.wide, sampling.width, sampling.columns);
  auto inside = [](const Tensor& at, const Dim& size) { return logical_and(ge(at, -1.0), le(at, TensorArg(size))); };
  auto within = [](const Tensor& at, const Dim& size) { return clamp_max(clamp_min(at, 0.0), TensorArg(size - 1)); };
  const Shape grid = {count, y.size(1), across.size(1)};
  auto by_rows = [&](const Tensor& t) { return expand(t.unsqueeze(2), grid); };
  auto by_columns = [&](const Tensor& t) { return expand(t.unsqueeze(1), grid); };

  const Tensor is_inside = logical_and(by_rows(inside(y, down)), by_columns(inside(across, right)));
  const Corners corners = corners_of(by_rows(within(y, down)), by_columns(within(across, right)), down, right, true);
  // All images in one row of each channel.
  const Tensor planes = x.transpose(0, 1).reshape({channels, x.size(0) * down * right});
  const Tensor begin = mul(regions.image, TensorArg(down * right)).view({count, 1, 1});
  Tensor value;
  for (size_t c = 0; c < corners.index.size(); ++c) {
    const Tensor read =
        index_select(planes, 1, add(corners.index[c], begin).flatten()).view({channels, count, grid[1], grid[2]});
    const Tensor part = mul(read, where(is_inside, corners.weight[c], 0.0).to(x.dtype()));
    value = !value.defined() ? part : sampling.takes_largest ? maximum(value, part) : add(value, part);
  }
  const Tensor bins = value.view({channels, count, sampling.height, sampling.rows, sampling.width, sampling.columns});
  const Tensor pictures = sampling.takes_largest
                              ? amax(bins, {3, 5})
                              : div(sum(bins, {3, 5}), double(std::max<int64_t>(sampling.rows * sampling.columns, 1)));
  return pictures.transpose(0, 1);
}

}  // namespace sinter::interop
