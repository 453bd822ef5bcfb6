// Formulas over orderings and counts: medians, modes, quantiles, histograms, repeated elements, covariances.
#include <cmath>
#include <limits>

#include "sinter/ops/checked.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// What is read of x along a dimension at one position of each line, and that position.
std::tuple<Tensor, Tensor> read_at(const TensorArg& x, const Tensor& position, int64_t d, bool keepdim) {
  Tensor value = gather(x, d, position);
  if (keepdim) return {value, position};
  return {squeeze(value, d), squeeze(position, d)};
}

}  // namespace

Tensor nanmean(const TensorArg& x, const IntList& dims, bool keepdim, std::optional<DType> dtype) {
  UserPosition here(x.where());
  check(is_floating(x.dtype()), "nanmean: expected a floating tensor, got {}", x.dtype());
  return nansum(x, dims, keepdim, dtype) / sum(logical_not(isnan(x)), dims, keepdim);
}

std::tuple<Tensor, Tensor> aminmax(const TensorArg& x, std::optional<int64_t> dim, bool keepdim) {
  UserPosition here(x.where());
  IntList dims = dim ? IntList{*dim} : IntList{};
  return {amin(x, dims, keepdim), amax(x, dims, keepdim)};
}

std::tuple<Tensor, Tensor> std_mean(const TensorArg& x, const IntList& dims, int64_t correction, bool keepdim) {
  UserPosition here(x.where());
  return {sinter::std(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}

Tensor cov(const TensorArg& given, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  UserPosition here(given.where());
  check(given.dim() <= 2, "cov: expected variables in rows, got shape {}", given.sizes());
  Tensor x = atleast_2d(is_differentiable(given.dtype()) ? given.tensor() : to(given, get_default_dtype()));
  auto check_weights = [&](const char* what, const Tensor& w, bool integers) {
    check(w.dim() == 1 && w.size(0) == x.size(1), "cov: {} of shape {} for {} observations", what, w.sizes(),
          x.size(1));
    check(is_integral(w.dtype()) == integers, "cov: {} cannot be of {}", what, w.dtype());
  };
  Tensor weights, total = full({}, x.size(1), x.options().dtype(real_dtype(x.dtype()))), spread = total;
  if (fweights.defined()) {
    check_weights("fweights", fweights, true);
    weights = fweights.to(total.dtype());
  }
  if (aweights.defined()) {
    check_weights("aweights", aweights, false);
    weights = weights.defined() ? weights * aweights : aweights;
  }
  if (weights.defined()) total = spread = weights.sum();
  if (aweights.defined()) spread = (weights * aweights).sum() / total;
  Tensor middle = weights.defined() ? (x * weights).sum({1}, true) / total : x.mean({1}, true);
  Tensor divisor = aweights.defined() ? total - correction * spread : total - correction;
  Tensor apart = x - middle, weighted = weights.defined() ? apart * weights : apart;
  Tensor out = matmul(apart, conj(weighted).t()) / clamp_min(divisor, 0);
  return x.size(0).same_as(1) ? out.reshape({}) : out;  // of one variable, a number
}

Tensor corrcoef(const TensorArg& x) {
  UserPosition here(x.where());
  check(x.dim() <= 2, "corrcoef: expected variables in rows, got shape {}", x.sizes());
  Tensor c = cov(x);
  if (c.dim() == 0) return c / c;
  Tensor deviation = sqrt(diagonal(c));
  return clamp(c / deviation.unsqueeze(1) / deviation, -1, 1);
}

// --- orderings

Tensor msort(const TensorArg& x) { return x.dim() == 0 ? clone(x) : std::get<0>(sort(x, 0)); }

std::tuple<Tensor, Tensor> nanmedian(const TensorArg& x, int64_t dim, bool keepdim) {
  UserPosition here(x.where());
  if (!is_floating(x.dtype()) || x.dim() == 0) return median(x, dim, keepdim);
  int64_t d = wrap_dim("nanmedian", dim, x.dim());
  check(x.size(d) > 0, "nanmedian: dimension {} of {} is empty", d, x.sizes());
  auto [values, positions] = sort(x.tensor().detach(), d);
  Tensor numbers = logical_not(isnan(values)).sum({d}, true);
  return read_at(x, gather(positions, d, floor_divide(clamp_min(numbers - 1, 0), 2)), d, keepdim);
}
Tensor nanmedian(const TensorArg& x) {
  UserPosition here(x.where());
  return std::get<0>(nanmedian(flatten(x), 0));
}

// Of elements in order each run counts up to its length; the first place with the largest count ends the run wanted.
std::tuple<Tensor, Tensor> mode(const TensorArg& x, int64_t dim, bool keepdim) {
  UserPosition here(x.where());
  if (x.dim() == 0) return sort(x, dim);
  int64_t d = wrap_dim("mode", dim, x.dim());
  Dim size = x.size(d);
  check(size > 0, "mode: dimension {} of {} is empty", d, x.sizes());
  auto [values, positions] = sort(x.tensor().detach(), d);
  Tensor begins = constant_pad_nd(ne(values.slice(d, 1), values.slice(d, 0, size - 1)).movedim(d, -1), {1, 0}, true);
  Tensor places = positions_along(values, d);
  Tensor start = std::get<0>(cummax(where(begins.movedim(-1, d), places, 0), d));
  return read_at(x, gather(positions, d, argmax(places - start, d, true)), d, keepdim);
}

namespace {

// `shares` of the first `count` elements of lines in order, with the shares along the last dimension.
Tensor between(const Tensor& sorted, const Tensor& shares, const Tensor& count, std::string_view interpolation) {
  Tensor rank = shares * clamp_min(count - 1, 0).to(shares.dtype());
  if (interpolation == "lower") return gather(sorted, -1, floor(rank).to(kInt64));
  if (interpolation == "higher") return gather(sorted, -1, ceil(rank).to(kInt64));
  if (interpolation == "nearest") return gather(sorted, -1, round(rank).to(kInt64));
  Tensor below = floor(rank), weight = interpolation == "midpoint" ? full_like(rank, 0.5) : rank - below;
  Tensor low = gather(sorted, -1, below.to(kInt64)), high = gather(sorted, -1, ceil(rank).to(kInt64));
  return lerp(low, high, weight);
}

Tensor quantile_of(const char* op, const TensorArg& given, const TensorArg& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool skip_nan) {
  UserPosition here(given.where(), op);
  const Tensor x = given.tensor();
  check(x.dtype() == kFloat32 || x.dtype() == kFloat64, "{}: expected f32 or f64, got {}", op, x.dtype());
  check(interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
            interpolation == "midpoint" || interpolation == "nearest",
        "{}: interpolation '{}' is not linear, lower, higher, midpoint or nearest", op, interpolation);
  check(q.dim() <= 1, "{}: the shares must be a number or a vector, not of shape {}", op, q.sizes());
  check(q.is_scalar() || q.dtype() == x.dtype(), "{}: shares of {} for elements of {}", op, q.dtype(), x.dtype());
  Tensor shares = q.is_scalar() ? full({}, q, x.options()) : q.tensor();
  shares = checked(shares, (shares >= 0) & (shares <= 1), Fault::kQuantileShare);
  int64_t d = dim ? wrap_dim(op, *dim, x.dim()) : 0;
  Tensor lines = !dim || x.dim() == 0 ? x.flatten() : x.movedim(d, -1);
  check(lines.size(-1) > 0, "{}: shape {} has no elements to choose from", op, x.sizes());
  Tensor sorted = std::get<0>(sort(lines, -1));
  Tensor nan = isnan(sorted), numbers = sum(logical_not(nan), {-1}, true);
  Shape at = lines.sizes();
  at.back() = shares.numel();
  Tensor whole = shares.reshape({-1}).expand(at);
  Tensor out = skip_nan ? between(sorted, whole, numbers.expand(at), interpolation)
                        : between(sorted, whole, full_like(numbers, sorted.size(-1)).expand(at), interpolation);
  if (!skip_nan) out = where(any(nan, {-1}, true), std::numeric_limits<double>::quiet_NaN(), out);
  // The shares to the front, or away; then the dimension that was reduced.
  out = shares.dim() == 0 ? out.squeeze(-1) : out.movedim(-1, 0);
  if (!keepdim) return out;
  if (dim && x.dim() > 0) return out.unsqueeze(shares.dim() + d);
  for (int64_t k = 0; k < x.dim(); ++k) out = out.unsqueeze(-1);
  return out;
}

}  // namespace

Tensor quantile(const TensorArg& x, const TensorArg& q, std::optional<int64_t> dim, bool keepdim,
                std::string_view interpolation) {
  return quantile_of("quantile", x, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile(const TensorArg& x, const TensorArg& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation) {
  return quantile_of("nanquantile", x, q, dim, keepdim, interpolation, true);
}

// --- repeated elements

namespace {

using Uniques = std::tuple<Tensor, Tensor, Tensor>;

// Runs begin where `begins` is true, at `starts`: which of them each element belongs to, and how long they are.
Uniques runs(const Tensor& first_of_each, const Tensor& begins, const Tensor& starts, bool return_inverse,
             bool return_counts) {
  Tensor place = cumsum(begins, 0) - 1, counts;
  // Added to the starts and not to zeros: their number comes with them.
  if (return_counts) counts = index_add(starts, 0, place, ones_like(place)) - starts;
  return {first_of_each, return_inverse ? place : Tensor(), counts};
}

// Where a row differs from the one before; rows are those of a matrix.
Tensor run_begins(const Tensor& rows) {
  Tensor differs = any(ne(rows.slice(0, 1), rows.slice(0, 0, rows.size(0) - 1)), {1});
  return constant_pad_nd(differs, {1, 0}, true);
}

}  // namespace

Uniques unique_consecutive(const TensorArg& x, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  UserPosition here(x.where());
  check(!dim || x.dim() > 0, "unique_consecutive: a 0-d tensor has no dimension {}", dim.value_or(0));
  int64_t d = dim ? wrap_dim("unique_consecutive", *dim, x.dim()) : 0;
  Tensor lines = dim ? x.tensor() : flatten(x);
  Tensor begins, starts, kept;
  if (lines.size(d) == 0) {
    begins = zeros({0}, x.tensor().options().dtype(kBool));
    starts = zeros({0}, x.tensor().options().dtype(kInt64));
    kept = lines;
  } else {
    Dim count = lines.size(d);
    begins = run_begins(lines.detach().movedim(d, 0).reshape({count, dim ? lines.numel() / count : Dim(1)}));
    starts = nonzero(begins).reshape({-1});
    kept = index_select(lines.detach(), d, starts);
  }
  auto [values, inverse, counts] = runs(kept, begins, starts, return_inverse, return_counts);
  return {values, return_inverse && !dim ? inverse.reshape(x.sizes()) : inverse, counts};
}

// Rows are put in order by each column in turn, from the last to the first, which keeps the order of equals.
Uniques unique_dim(const TensorArg& x, int64_t dim, bool, bool return_inverse, bool return_counts) {
  UserPosition here(x.where());
  check(x.dim() > 0, "unique_dim: a 0-d tensor has no dimension {}", dim);
  int64_t d = wrap_dim("unique_dim", dim, x.dim());
  Dim count = x.size(d);
  check(count > 0 || x.tensor().numel() == 0, "unique_dim: dimension {} of {} is empty", d, x.sizes());
  if (count == 0) return unique_consecutive(x, return_inverse, return_counts, d);
  int64_t columns = Dim(x.tensor().numel() / count).to_int(x.where());
  Tensor rows = x.tensor().detach().movedim(d, 0).reshape({count, columns});
  Tensor order = arange_of_size(count, TensorOptions(kInt64).device(rows.device()));
  for (int64_t c = columns; c-- > 0;) order = order.index_select(0, argsort(rows.select(1, c).index_select(0, order)));
  Tensor begins = run_begins(rows.index_select(0, order)), starts = nonzero(begins).reshape({-1});
  Tensor kept = index_select(x.tensor().detach(), d, order.index_select(0, starts));
  auto [values, place, counts] = runs(kept, begins, starts, return_inverse, return_counts);
  return {values, return_inverse ? scatter(zeros_like(place), 0, order, place) : Tensor(), counts};
}

// --- histograms

namespace {

// The bounds as tensors: those given, or the least and the greatest element; a range of no width is widened by the
// margin on both sides.
std::pair<Tensor, Tensor> range_of(const Tensor& x, std::optional<std::array<double, 2>> range, double margin) {
  if (range && (*range)[0] == (*range)[1]) range = {{(*range)[0] - margin, (*range)[1] + margin}};
  if (range)
    return {full({}, (*range)[0], x.options()), full({}, (*range)[1], x.options())};
  if (x.numel() == 0) return {full({}, 0, x.options()), full({}, 1, x.options())};
  Tensor low = x.amin(), high = x.amax();
  Tensor finite = isfinite(low) & isfinite(high);
  low = checked(low, finite, Fault::kHistogramRange);
  Tensor flat = (low == high).to(x.dtype()) * margin;
  return {low - flat, high + flat};
}

// `amount` of each element added up by bin; what is in none counts nothing.
Tensor counted(const Tensor& bin, const Tensor& inside, const Tensor& amount, const Dim& bins) {
  Tensor to_add = where(inside, amount, 0), at = where(inside, bin, 0);
  return index_add(zeros({bins}, amount.options()), 0, at.flatten(), to_add.flatten());
}

void check_histogram(const char* op, const TensorArg& x, int64_t bins) {
  check(is_floating(x.dtype()), "{}: expected a floating tensor, got {}", op, x.dtype());
  check(bins > 0, "{}: {} is not a number of bins", op, bins);
}

// The edges of so many equal parts.
Tensor equal_edges(const char* op, const Tensor& x, int64_t bins, const std::optional<std::array<double, 2>>& range) {
  check(!range || (std::isfinite((*range)[0]) && std::isfinite((*range)[1]) && (*range)[0] <= (*range)[1]),
        "{}: [{}, {}] is no range", op, range ? (*range)[0] : 0, range ? (*range)[1] : 0);
  auto [first, last] = range_of(x, range, 0.5);
  Tensor share = linspace(0, 1, bins + 1, x.options());
  return where(share == 1, last, first + (last - first) * share);
}

}  // namespace

Tensor histc(const TensorArg& given, int64_t bins, const Scalar& min, const Scalar& max) {
  UserPosition here(given.where());
  check_histogram("histc", given, bins);
  double low = min.to_double(), high = max.to_double();
  check(std::isfinite(low) && std::isfinite(high) && low <= high, "histc: [{}, {}] is no range", low, high);
  Tensor x = given.tensor().detach();
  auto [first, last] = low == high ? range_of(x, {}, 1) : range_of(x, {{low, high}}, 1);
  Tensor inside = (x >= first) & (x <= last);
  Tensor bin = trunc((where(inside, x, first) - first) * double(bins) / (last - first)).to(kInt64);
  return counted(minimum(bin, bins - 1), inside, ones_like(x), bins);
}

std::tuple<Tensor, Tensor> histogram(const TensorArg& given, const Tensor& edges, const Tensor& weight, bool density) {
  UserPosition here(given.where());
  Tensor x = given.tensor().detach();
  check(edges.dim() == 1, "histogram: the edges must be a vector, not of shape {}", edges.sizes());
  Dim bins = edges.size(0) - 1;
  check(bins > 0, "histogram: a bin needs two edges, but there are {}", edges.size(0));
  check(is_floating(x.dtype()) && edges.dtype() == x.dtype(), "histogram: elements of {} and edges of {}", x.dtype(),
        edges.dtype());
  check(!weight.defined() || (weight.dtype() == x.dtype() && weight.dim() == x.dim()),
        "histogram: weights of {} and shape {} for elements of {} and shape {}",
        weight.defined() ? weight.dtype() : kBool, weight.defined() ? weight.sizes() : Shape(), x.dtype(), x.sizes());
  Tensor first = edges.select(0, 0), last = edges.select(0, bins);
  Tensor inside = (x >= first) & (x <= last);
  Tensor bin = minimum(searchsorted(edges.detach(), x, false, true) - 1, bins - 1);
  Tensor hist = counted(bin, inside, weight.defined() ? weight.detach() : ones_like(x), bins);
  if (density) hist = hist / hist.sum() / diff(edges);
  return {hist, edges};
}
std::tuple<Tensor, Tensor> histogram(const TensorArg& given, int64_t bins,
                                     const std::optional<std::array<double, 2>>& range, const Tensor& weight,
                                     bool density) {
  UserPosition here(given.where());
  check_histogram("histogram", given, bins);
  return histogram(given, equal_edges("histogram", given.tensor().detach(), bins, range), weight, density);
}

std::tuple<Tensor, TensorList> histogramdd(const TensorArg& given, const TensorList& edges, const Tensor& weight,
                                           bool density) {
  UserPosition here(given.where());
  const int64_t dims = int64_t(edges.size());
  check(is_floating(given.dtype()) && given.dim() >= 2 && given.size(-1) == dims,
        "histogramdd: expected points of {} coordinates, [..., {}], got {} {}", dims, dims, given.dtype(),
        given.sizes());
  const Tensor x = given.tensor().detach().reshape({-1, dims});
  check(!weight.defined() || (weight.dtype() == x.dtype() && weight.sizes() == removed(given.sizes(), given.dim() - 1)),
        "histogramdd: expected a weight for each point {} of {}", removed(given.sizes(), given.dim() - 1), x.dtype());
  Tensor place = zeros({x.size(0)}, x.options().dtype(kInt64)),
         inside = zeros({x.size(0)}, x.options().dtype(kBool)) == 0;
  Shape bins;
  for (int64_t d = 0; d < dims; ++d) {
    const Tensor &edge = edges[size_t(d)], column = x.select(1, d);
    check(edge.dim() == 1 && edge.size(0) > 1 && edge.dtype() == x.dtype(),
          "histogramdd: the edges of a coordinate are a vector of {}, of at least two, not {} {}", x.dtype(),
          edge.dtype(), edge.sizes());
    bins.push_back(edge.size(0) - 1);
    inside = inside & (column >= edge.select(0, 0)) & (column <= edge.select(0, -1));
    place = place * bins.back() +
            minimum(searchsorted(edge.detach(), column.contiguous(), false, true) - 1, bins.back() - 1);
  }
  Tensor amount = weight.defined() ? weight.detach().flatten() : ones({x.size(0)}, x.options());
  Tensor hist = counted(place, inside, amount, bins.numel()).view(bins);
  if (density) {
    hist = hist / hist.sum();
    for (int64_t d = 0; d < dims; ++d) {
      Shape along(size_t(dims), 1);
      along[size_t(d)] = bins[size_t(d)];
      hist = hist / diff(edges[size_t(d)]).view(along);
    }
  }
  return {hist, edges};
}
std::tuple<Tensor, TensorList> histogramdd(const TensorArg& given, const IntList& bins,
                                           const std::optional<std::vector<double>>& range, const Tensor& weight,
                                           bool density) {
  UserPosition here(given.where());
  check(given.dim() >= 2 && given.size(-1) == int64_t(bins.size()),
        "histogramdd: numbers of bins {} for points of shape {}", bins, given.sizes());
  check(!range || range->size() == 2 * bins.size(), "histogramdd: a range of {} coordinates has {} bounds, not {}",
        bins.size(), 2 * bins.size(), range ? range->size() : 0);
  TensorList edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    check_histogram("histogramdd", given, bins[d]);
    std::optional<std::array<double, 2>> bounds;
    if (range) bounds = {{(*range)[2 * d], (*range)[2 * d + 1]}};
    edges.push_back(equal_edges("histogramdd", given.tensor().detach().select(-1, int64_t(d)), bins[d], bounds));
  }
  return histogramdd(given, edges, weight, density);
}
std::tuple<Tensor, TensorList> histogramdd(const TensorArg& given, int64_t bins,
                                           const std::optional<std::vector<double>>& range, const Tensor& weight,
                                           bool density) {
  UserPosition here(given.where());
  check(given.dim() >= 2, "histogramdd: expected points, [..., coordinates], got shape {}", given.sizes());
  return histogramdd(given, IntList(size_t(given.size(-1).to_int()), bins), range, weight, density);
}

}  // namespace sinter
