// Images and volumes read at positions that a tensor gives.
#include "sinter/ops/contract.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// Along one dimension of the input: its size, and the position of every element of the result.
struct Axis {
  Dim size;
  Tensor position;
};

// Positions held inside the input. Where they are moved to a bound no gradient flows, as in PyTorch.
Tensor held_inside(const Tensor& position, const Dim& size) {
  Tensor number = where(isnan(position), 0, position);
  Tensor bounded = minimum(clamp_min(number, 0), size - 1);
  return where((number > 0) & (number < size - 1), number, bounded.detach());
}

// Positions thrown back at the ends: at the middle of the outermost elements, or at their outer edge.
Tensor reflected(const Tensor& position, const Dim& size, bool align_corners) {
  Dim span = align_corners ? size - 1 : size;
  if (align_corners && size == 1) return zeros_like(position);
  double low = align_corners ? 0 : -0.5;
  Tensor distance = abs(position - low), extra = fmod(distance, span);
  Tensor flips = floor((distance / span).detach());
  return where(remainder(flips, 2) == 0, extra, span - extra) + low;
}

Tensor padded_position(const Tensor& position, const Dim& size, GridSamplePaddingMode padding, bool align_corners) {
  if (padding == GridSamplePaddingMode::kZeros) return position;
  if (padding == GridSamplePaddingMode::kBorder) return held_inside(position, size);
  return held_inside(reflected(position, size, align_corners), size);
}

// What of one dimension an element of the result reads: places, each with its weight; undefined where that is 1.
struct Tap {
  Tensor place, weight;
};
using Taps = std::vector<Tap>;

Taps linear_taps(const Tensor& position) {
  Tensor low = floor(position).detach();
  Tensor above = position - low;
  return {{low, 1 - above}, {low + 1, above}};
}

Taps cubic_taps(const Tensor& position) {
  Tensor low = floor(position).detach(), t = position - low;
  Taps taps;
  auto weights = cubic_weights(t);
  for (int64_t tap = 0; tap < 4; ++tap) taps.push_back({low + (tap - 1), weights[size_t(tap)]});
  return taps;
}

// The elements of x, [n, c, all], at one place per dimension, each place [n, …]; zero where one lies outside.
Tensor read(const Tensor& x, const std::vector<Axis>& axes, const TensorList& places, const Tensor& weight) {
  Tensor inside, flat;
  for (size_t d = 0; d < axes.size(); ++d) {
    Tensor valid = (places[d] >= 0) & (places[d] <= axes[d].size - 1);
    inside = d == 0 ? valid : inside & valid;
  }
  for (size_t d = 0; d < axes.size(); ++d) {
    Tensor index = where(inside, places[d], 0).to(kInt64);
    flat = d == 0 ? index : flat * axes[d].size + index;
  }
  Dim n = x.size(0), c = x.size(1);
  Tensor index = flat.view({n, 1, -1});
  Tensor value = gather(x, 2, index.expand({n, c, index.size(2)}));
  if (weight.defined()) value = value * weight.reshape({n, 1, -1});
  return where(inside.view({n, 1, -1}), value, 0);
}

}  // namespace

Tensor grid_sample(const TensorArg& x_arg, const TensorArg& grid_arg, GridSampleMode mode,
                   GridSamplePaddingMode padding_mode, bool align_corners) {
  constexpr auto op = "grid_sample";
  UserPosition here(x_arg.where());
  const Tensor &x = tensor_operand(op, x_arg), &grid = tensor_operand(op, grid_arg);
  int64_t spatial = x.dim() - 2;
  check((spatial == 2 || spatial == 3) && grid.dim() == x.dim(),
        "{}: expected an input and a grid of 4 dimensions each, or of 5, got {} and {}", op, x.sizes(), grid.sizes());
  check(grid.size(0) == x.size(0) && grid.size(-1) == spatial,
        "{}: for an input {} the grid must be [{}, …, {}], got {}", op, x.sizes(), x.size(0), spatial, grid.sizes());
  check(x.is_floating_point() && x.dtype() == grid.dtype(),
        "{}: input and grid must have one floating dtype, got {} and {}", op, x.dtype(), grid.dtype());
  check(mode != GridSampleMode::kBicubic || spatial == 2, "{}: bicubic is for inputs of 4 dimensions, got {}", op,
        x.sizes());
  std::vector<Axis> axes;
  for (int64_t d = 0; d < spatial; ++d) {
    check(x.size(d + 2) >= 1, "{}: the input {} has nothing to read", op, x.sizes());
    // The grid names the last dimension first.
    Tensor g = widened(grid.select(-1, spatial - 1 - d));
    const Dim size = x.size(d + 2);
    axes.push_back({size, ((g + 1) * (align_corners ? size - 1 : size) - (align_corners ? 0 : 1)) * 0.5});
  }
  bool cubic = mode == GridSampleMode::kBicubic;
  auto padded = [&](const Tensor& position, const Axis& axis) {
    return padded_position(position, axis.size, padding_mode, align_corners);
  };
  std::vector<Taps> taps;
  for (auto& axis : axes) {
    if (cubic) {
      taps.push_back(cubic_taps(axis.position));
      for (auto& tap : taps.back()) tap.place = padded(tap.place, axis);
    } else if (mode == GridSampleMode::kNearest) {
      taps.push_back({{round(padded(axis.position, axis)).detach(), {}}});
    } else {
      taps.push_back(linear_taps(padded(axis.position, axis)));
    }
  }
  Shape out = with_tail(x.sizes(), spatial, {});
  for (int64_t d = 1; d <= spatial; ++d) out.push_back(grid.size(d));
  Tensor flat = widened(x).flatten(2), sum;
  size_t per_axis = taps[0].size(), count = 1;
  for (size_t d = 0; d < axes.size(); ++d) count *= per_axis;
  for (size_t corner = 0; corner < count; ++corner) {
    TensorList places;
    Tensor weight;
    size_t rest = corner;
    for (auto& of_axis : taps) {
      const Tap& tap = of_axis[rest % per_axis];
      rest /= per_axis;
      places.push_back(tap.place);
      if (tap.weight.defined()) weight = weight.defined() ? weight * tap.weight : tap.weight;
    }
    Tensor term = read(flat, axes, places, weight);
    sum = sum.defined() ? sum + term : term;
  }
  return narrowed(sum.view(out), x.dtype());
}

Tensor affine_grid(const TensorArg& theta_arg, const Shape& size, bool align_corners) {
  constexpr auto op = "affine_grid";
  UserPosition here(theta_arg.where());
  const Tensor& theta = tensor_operand(op, theta_arg);
  int64_t spatial = size.rank() - 2;
  check(spatial == 2 || spatial == 3, "{}: expected a size [n, c, h, w] or [n, c, d, h, w], got {}", op, size);
  check(theta.is_floating_point() && theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial &&
            theta.size(2) == spatial + 1,
        "{}: for the size {} theta must be floating and [{}, {}, {}], got {} {}", op, size, size[0], spatial,
        spatial + 1, theta.dtype(), theta.sizes());
  TensorOptions options = widened(theta).options();
  Shape plane(size.begin() + 2, size.end());
  TensorList coordinates;
  // x, then y, then z: the last dimension first.
  for (int64_t d = spatial - 1; d >= 0; --d) {
    const Dim n = plane[size_t(d)];
    check(n >= 1, "{}: sizes must be positive, got {}", op, size);
    Tensor i = arange_of_size(n, options) * 2;
    Tensor along = align_corners ? (n == 1 ? i : i / (n - 1) - 1) : (i + 1) / n - 1;
    Shape shape(size_t(spatial), 1);
    shape[size_t(d)] = n;
    coordinates.push_back(along.view(shape).expand(plane));
  }
  coordinates.push_back(ones({}, options).expand(plane));
  Tensor base =
      stack(coordinates, -1).view({1, plane.numel(), spatial + 1}).expand({size[0], plane.numel(), spatial + 1});
  Shape out{size[0]};
  out.append(plane);
  out.push_back(spatial);
  return narrowed(matmul(base, widened(theta).transpose(1, 2)).view(out), theta.dtype());
}

}  // namespace sinter
