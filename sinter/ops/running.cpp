// Running extremes and sums of exponentials along a dimension, and formulas over neighbours along one.
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct RunningAttrs {
  int64_t dim = 0;
  SINTER_FIELDS(dim)
};

// The values alone. Users get positions with them, and the gradient through those.
template <class Self>
struct RunningExtreme : Scan {
  using Attributes = RunningAttrs;
  static constexpr NotDifferentiable grad{"cummax and cummin are differentiated through the positions they find"};
  static std::vector<Type> infer(const OpCall& call) {
    wrap_dim(call.name(), call.as<RunningAttrs>().dim, call.rank(0));
    return {Type{call.inputs[0].dtype, call.shape(0), call.inputs[0].device}};
  }
  static int64_t scan_dim(const OpCall& call) {
    return call.rank(0) == 0 ? 0 : wrap_dim(call.name(), call.as<RunningAttrs>().dim, call.rank(0));
  }
  static Elem element(ElementBuilder& b) { return b.load(0, b.i); }
  SINTER_SAMPLES("x[5] | dim=0", "x[2, 37] | dim=1", "x[19, 18] | dim=0", "x[3, 0] | dim=1")
};
struct RunningMax : RunningExtreme<RunningMax> {
  static constexpr auto name = "_cummax";
  static constexpr Combine combine = Combine::kMax;
};
struct RunningMin : RunningExtreme<RunningMin> {
  static constexpr auto name = "_cummin";
  static constexpr Combine combine = Combine::kMin;
};

// The position is the last one so far whose element equals the extreme so far, or is NaN.
template <class Extreme>
std::tuple<Tensor, Tensor> running(const char* op, const TensorArg& x, int64_t dim) {
  UserPosition here(x.where(), op);
  int64_t d = wrap_dim(op, dim, x.dim());
  if (x.dim() == 0) return {clone(x), zeros({}, x.tensor().options().dtype(kInt64))};
  Tensor plain = x.tensor().detach(), extreme = call<Extreme>({plain}, RunningAttrs{d});
  Tensor reached = plain == extreme;
  if (is_floating(x.dtype())) reached = reached | isnan(plain);
  Tensor last = call<RunningMax>({where(reached, positions_along(plain, d), 0)}, RunningAttrs{d});
  return {gather(x, d, last), last};
}

}  // namespace

std::tuple<Tensor, Tensor> cummax(const TensorArg& x, int64_t dim) { return running<RunningMax>("cummax", x, dim); }
std::tuple<Tensor, Tensor> cummin(const TensorArg& x, int64_t dim) { return running<RunningMin>("cummin", x, dim); }

// Sums over the last 1, 2, 4, … elements, each from two of the sums before: no shift fits a whole line.
Tensor logcumsumexp(const TensorArg& x, int64_t dim) {
  UserPosition here(x.where());
  check(is_floating(x.dtype()), "logcumsumexp: expected a floating tensor, got {}", x.dtype());
  int64_t d = wrap_dim("logcumsumexp", dim, x.dim());
  if (x.dim() == 0) return clone(x);
  int64_t size = x.size(d).to_int(x.where());
  bool half = x.dtype() == kFloat16 || x.dtype() == kBFloat16;
  Tensor sums = half ? to(x, kFloat32) : clone(x);
  for (int64_t step = 1; step < size; step *= 2) {
    Tensor joined = logaddexp(sums.slice(d, step), sums.slice(d, 0, size - step));
    sums = cat({sums.slice(d, 0, step), joined}, d);
  }
  return to(sums, x.dtype());
}

Tensor diff(const TensorArg& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  UserPosition here(x.where());
  check(x.dim() > 0, "diff: a 0-d tensor has no neighbours");
  check(n >= 0, "diff: differences cannot be taken {} times", n);
  int64_t d = wrap_dim("diff", dim, x.dim());
  Tensor y = x.tensor();
  if (n == 0) return clone(x);
  if (prepend.defined() || append.defined()) {
    TensorList pieces;
    if (prepend.defined()) pieces.push_back(prepend);
    pieces.push_back(y);
    if (append.defined()) pieces.push_back(append);
    y = cat(pieces, d);
  }
  for (int64_t i = 0; i < n && y.size(d) > 0; ++i) {
    Tensor after = y.slice(d, 1), before = y.slice(d, 0, y.size(d) - 1);
    y = y.dtype() == kBool ? logical_xor(after, before) : after - before;
  }
  return y;
}

// --- integrals and slopes

namespace {

// y[j] + y[j + 1] along a dimension.
Tensor neighbour_sums(const Tensor& y, int64_t d) {
  Dim size = y.size(d);
  check(size > 0, "trapezoid: dimension {} of {} is empty", d, y.sizes());
  return y.slice(d, 1) + y.slice(d, 0, size - 1);
}

// The distances between samples at x, along dimension d of y.
Tensor distances(const char* op, const TensorArg& y, const Tensor& x, int64_t d) {
  if (x.dim() != 1) return diff(x, 1, d - y.dim());
  check(x.size(0) == y.size(d), "{}: {} coordinates for dimension {} of {}", op, x.size(0), d, y.sizes());
  Shape along(size_t(y.dim() - d), Dim(1));
  along[0] = x.size(0) - 1;
  return diff(x).reshape(along);
}

}  // namespace

Tensor trapezoid(const TensorArg& y, const Scalar& dx, int64_t dim) {
  UserPosition here(y.where());
  if (y.dim() == 0) return zeros({}, y.tensor().options());
  int64_t d = wrap_dim("trapezoid", dim, y.dim());
  if (y.size(d) == 0) return sum(y, {d}) * dx / 2.;
  return sum(neighbour_sums(y.tensor(), d), {d}) * dx / 2.;
}
Tensor trapezoid(const TensorArg& y, const Tensor& x, int64_t dim) {
  UserPosition here(y.where());
  check(y.dim() > 0 && x.dim() > 0, "trapezoid: expected tensors with dimensions, got {} and {}", y.sizes(), x.sizes());
  int64_t d = wrap_dim("trapezoid", dim, y.dim());
  Tensor parts = neighbour_sums(y.tensor(), d) * distances("trapezoid", y, x, d);
  return sum(parts, {d - y.dim()}) / 2.;
}
Tensor cumulative_trapezoid(const TensorArg& y, const Scalar& dx, int64_t dim) {
  UserPosition here(y.where());
  check(y.dim() > 0, "cumulative_trapezoid: expected a tensor with dimensions, got a number");
  int64_t d = wrap_dim("cumulative_trapezoid", dim, y.dim());
  return cumsum(neighbour_sums(y.tensor(), d), d) * dx / 2.;
}
Tensor cumulative_trapezoid(const TensorArg& y, const Tensor& x, int64_t dim) {
  UserPosition here(y.where());
  check(y.dim() > 0 && x.dim() > 0, "cumulative_trapezoid: expected tensors with dimensions, got {} and {}", y.sizes(),
        x.sizes());
  int64_t d = wrap_dim("cumulative_trapezoid", dim, y.dim());
  return cumsum(neighbour_sums(y.tensor(), d) * distances("cumulative_trapezoid", y, x, d), d - y.dim()) / 2.;
}

namespace {

IntList dims_or_all(const TensorArg& x, const IntList& dims) {
  if (!dims.empty()) return wrap_dims("gradient", dims, x.dim());
  IntList all;
  for (int64_t d = 0; d < x.dim(); ++d) all.push_back(d);
  return all;
}

// Inside by the weighted mean of both slopes, at the edges by one slope or by both, extended. `h` are the distances.
Tensor slope(const Tensor& x, const Tensor& h, int64_t d, int64_t edge_order) {
  check(edge_order == 1 || edge_order == 2, "gradient: the order at the edges is 1 or 2, not {}", edge_order);
  Dim size = x.size(d);
  check(size > edge_order, "gradient: dimension {} of {} needs more than {} samples", d, x.sizes(), edge_order);
  Tensor slopes = diff(x, 1, d) / h;
  Tensor first = slopes.slice(d, 0, 1), last = slopes.slice(d, size - 2);
  if (size == 2) return cat({first, last}, d);
  auto at = [&](const Tensor& t, Dim start, Dim stop) { return t.size(d) == 1 ? t : t.slice(d, start, stop); };
  Tensor before = at(h, 0, size - 2), after = at(h, 1, size - 1);
  Tensor inside = (slopes.slice(d, 1) * before + slopes.slice(d, 0, size - 2) * after) / (before + after);
  if (edge_order == 2) {
    auto bent = [&](const Tensor& edge, const Tensor& next, const Tensor& near, const Tensor& far) {
      return edge + (edge - next) * near / (near + far);
    };
    Tensor h0 = at(h, 0, 1), h1 = at(h, 1, 2), g0 = at(h, size - 2, size - 1), g1 = at(h, size - 3, size - 2);
    first = bent(first, slopes.slice(d, 1, 2), h0, h1);
    last = bent(last, slopes.slice(d, size - 3, size - 2), g0, g1);
  }
  return cat({first, inside, last}, d);
}

// A number as distances that are all the same.
Tensor even(const Tensor& x, const Scalar& spacing) {
  return full(Shape(size_t(x.dim()), Dim(1)), spacing, x.options());
}

TensorArg floating(const TensorArg& x) {
  return is_differentiable(x.dtype()) ? x : TensorArg(to(x, get_default_dtype()), x.where());
}

}  // namespace

TensorList gradient(const TensorArg& given, const Scalar& spacing, const IntList& dims, int64_t edge_order) {
  UserPosition here(given.where());
  const TensorArg x = floating(given);
  TensorList out;
  for (int64_t d : dims_or_all(x, dims)) out.push_back(slope(x.tensor(), even(x.tensor(), spacing), d, edge_order));
  return out;
}
TensorList gradient(const TensorArg& given, const std::vector<Scalar>& spacing, const IntList& dims,
                    int64_t edge_order) {
  UserPosition here(given.where());
  const TensorArg x = floating(given);
  IntList named = dims_or_all(x, dims);
  check(named.size() == spacing.size(), "gradient: {} spacings for {} dimensions", int64_t(spacing.size()),
        int64_t(named.size()));
  TensorList out;
  for (size_t j = 0; j < named.size(); ++j)
    out.push_back(slope(x.tensor(), even(x.tensor(), spacing[j]), named[j], edge_order));
  return out;
}
TensorList gradient(const TensorArg& given, const TensorList& coordinates, const IntList& dims, int64_t edge_order) {
  UserPosition here(given.where());
  const TensorArg x = floating(given);
  IntList named = dims_or_all(x, dims);
  check(named.size() == coordinates.size(), "gradient: coordinates of {} dimensions for {}",
        int64_t(coordinates.size()), int64_t(named.size()));
  TensorList out;
  for (size_t j = 0; j < named.size(); ++j) {
    check(coordinates[j].dim() == 1, "gradient: coordinates must be vectors, not of shape {}", coordinates[j].sizes());
    Tensor h = distances("gradient", x, coordinates[j], named[j]);
    Shape whole(size_t(named[j]), Dim(1));
    whole.append(h.sizes());
    out.push_back(slope(x.tensor(), h.reshape(whole), named[j], edge_order));
  }
  return out;
}

OpFamily running_ops() {
  static constexpr const Op* kOps[] = {&op_of<RunningMax>, &op_of<RunningMin>};
  return kOps;
}

}  // namespace sinter
