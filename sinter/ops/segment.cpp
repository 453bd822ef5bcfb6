// Runs of elements reduced.
#include <limits>

#include "sinter/ops/checked.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// What a run begins with.
Scalar start_of(std::string_view reduce, const std::optional<Scalar>& initial) {
  if (initial) return *initial;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return reduce == "max" ? -kInfinity : reduce == "min" ? kInfinity : reduce == "prod" ? 1.0 : 0.0;
}

// Where runs begin, and where the last one ends, from their lengths.
Tensor offsets_of(const Tensor& lengths) {
  Tensor ends = cumsum(lengths, -1);
  return cat({zeros_like(ends.narrow(-1, 0, 1)), ends}, -1);
}

}  // namespace

Tensor segment_reduce(const TensorArg& x_arg, std::string_view reduce, const Tensor& given_lengths,
                      const Tensor& indices, const Tensor& given_offsets, int64_t axis, bool unsafe,
                      const std::optional<Scalar>& initial) {
  constexpr auto op = "segment_reduce";
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand(op, x_arg);
  check(x.is_floating_point(), "{}: expected a floating dtype, got {}", op, x.dtype());
  check(reduce == "sum" || reduce == "mean" || reduce == "max" || reduce == "min" || reduce == "prod",
        "{}: reduce is \"sum\", \"mean\", \"max\", \"min\" or \"prod\", not \"{}\"", op, reduce);
  check(!indices.defined(), "{}: indices are not provided; give lengths or offsets", op);
  check(given_lengths.defined() != given_offsets.defined(), "{}: give either lengths or offsets", op);
  axis = wrap_dim(op, axis, x.dim());
  Tensor given = given_lengths.defined() ? given_lengths : given_offsets;
  bool fits_front = given.dim() == axis + 1;
  for (int64_t d = 0; fits_front && d < axis; ++d) fits_front = given.size(d) == x.size(d);
  check(is_integral(given.dtype()) && fits_front,
        "{}: for axis {} of {} expected integer lengths or offsets [{}…], got {} {}", op, axis, x.sizes(),
        axis > 0 ? "as in front of it, " : "", given.dtype(), given.sizes());
  given = given.to(kInt64);
  const Dim size = x.size(axis), runs = given_lengths.defined() ? given.size(-1) : given.size(-1) - 1;
  check(runs >= 0, "{}: offsets also tell where the last run ends; there are none", op);
  Tensor holds = (given >= 0) & (given <= size);
  if (given_lengths.defined())
    holds = holds & (given.sum({-1}, true) == size);
  else if (runs > 0)
    holds = holds & (given.narrow(-1, 0, 1) >= 0) &
            ((given.narrow(-1, 1, runs) - given.narrow(-1, 0, runs)).amin({-1}, true) >= 0);
  if (!unsafe) given = checked(given, holds, Fault::kSegmentLengths);
  const Tensor offsets = given_lengths.defined() ? offsets_of(given) : given;
  const Tensor starts = offsets.narrow(-1, 0, runs), ends = offsets.narrow(-1, 1, runs), lengths = ends - starts;

  // Of each element the number of its run; what is in none goes into one behind them.
  Tensor place = arange_of_size(size, given.options());
  if (axis > 0) place = place.expand(with_tail(given.sizes(), 1, {size})).contiguous();
  Tensor run = searchsorted(ends.contiguous(), place, false, /*right=*/true);
  run = where(place < offsets.narrow(-1, 0, 1), runs, run);
  Shape along = run.sizes(), result = x.sizes();
  for (int64_t d = axis + 1; d < x.dim(); ++d) along.push_back(1);
  result[size_t(axis)] = runs + 1;
  const Tensor index = run.view(along).expand(x.sizes());
  const Tensor wide = widened(x), start = full(result, start_of(reduce, initial), wide.options());
  const std::string combine = reduce == "max" ? "amax" : reduce == "min" ? "amin" : reduce == "prod" ? "prod" : "sum";
  Tensor out = scatter_reduce(start, axis, index, wide, combine).narrow(axis, 0, runs);
  if (reduce == "mean") {
    Shape counts = lengths.sizes();
    for (int64_t d = axis + 1; d < x.dim(); ++d) counts.push_back(1);
    const Tensor count = lengths.view(counts).to(wide.dtype());
    // Without elements 0 / 0, unless it is told what that is.
    out = out / (initial ? clamp_min(count, 1) : count);
  }
  return narrowed(out, x.dtype());
}

}  // namespace sinter
