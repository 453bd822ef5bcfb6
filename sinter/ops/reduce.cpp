#include "sinter/ops/reduce.h"

#include <algorithm>

#include "sinter/ops/autocast.h"
#include "sinter/ops/complex_math.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

#define SINTER_REDUCE_SAMPLES                                                                                     \
  SINTER_SAMPLES("x[2, 3] | dims=[1]", "x[2, 3] | dims=[0], keepdim=true", "x[4, 37]", "x[3, 5, 19] | dims=[-1]", \
                 "x[3, 5, 19] | dims=[1]", "x[2, 3, 4, 21] | dims=[0, 2]", "x[70] | dims=[0]", "x[]",             \
                 "x[18, 33] | dims=[0, 1], keepdim=true", "x[0, 3] | dims=[1]")

DType sum_dtype(const OpCall& call) {
  if (auto& dtype = call.as<ReduceAttrs>().dtype) return *dtype;
  DType d = call.inputs[0].dtype;
  return is_floating(d) ? d : kInt64;
}

// A reduced tensor against the tensor it came from: the reduced dimensions are back with size 1.
Tensor with_dims(const Tensor& reduced, const TensorArg& x, const ReduceAttrs& a) {
  if (a.keepdim || x.dim() == 0) return reduced;
  Shape sizes = x.sizes();
  if (a.dims.empty())
    for (auto& d : sizes) d = 1;
  for (int64_t d : a.dims) sizes[size_t(wrap_dim("reduce", d, x.dim()))] = 1;
  return reduced.reshape(sizes);
}

// The operand in the dtype that is asked for, where that or the operand is complex.
Tensor as_asked(const TensorArg& x, const std::optional<DType>& dtype) { return dtype ? to(x, *dtype) : x.tensor(); }
TensorArg complex_first(const TensorArg& x, const std::optional<DType>& dtype) {
  return dtype && is_complex(*dtype) ? TensorArg(to(x, *dtype), x.where()) : x;
}

// The op, which adds up, on each part.
template <class Op, class A>
TensorList added_by_parts(const ComplexCall& c) {
  A attrs = c.as<A>();
  const TensorArg x(as_asked(c[0], attrs.dtype), c[0].where());
  attrs.dtype = {};
  if (!is_complex(x.dtype())) return {call<Op>({x}, attrs)};
  const Attrs plain = attrs;
  return by_parts<>(ComplexCall{c.op, {&x, 1}, plain});
}

struct Sum : Reduce<Sum> {
  static constexpr auto name = "sum";
  static constexpr auto autocast = Autocast::kWideOnGpu;
  static constexpr Combine combine = Combine::kSum;
  static DType result_dtype(const OpCall& call) { return sum_dtype(call); }
  static TensorList grad(const GradCall& c) {
    return c.each(
        [&] { return to(with_dims(c.grad(), c[0], c.as<ReduceAttrs>()), c[0].dtype()).expand(c[0].sizes()); });
  }
  static TensorList on_complex(const ComplexCall& c) { return added_by_parts<Sum, ReduceAttrs>(c); }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 4e-5};
  SINTER_REDUCE_SAMPLES
};

struct Prod : Reduce<Prod> {
  static constexpr auto name = "prod";
  static constexpr auto autocast = Autocast::kWide;
  static constexpr Combine combine = Combine::kProd;
  static DType result_dtype(const OpCall& call) { return sum_dtype(call); }
  // Through the product of what is not zero, so that a single zero does not divide by itself.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      auto a = c.as<ReduceAttrs>();
      Tensor g = with_dims(c.grad(), c[0], a);
      a.keepdim = true;
      Tensor x = to(c[0], g.dtype()), zero = x == 0, safe = where(zero, 1, x);
      Tensor zeros = sum(zero, a.dims, true), product = call<Prod>({safe}, a);
      Tensor others = where(zero, where(zeros == 1, product, 0), where(zeros == 0, product / safe, 0));
      return to(g * others, c[0].dtype());
    });
  }
  static TensorList on_complex(const ComplexCall& c);
  static constexpr Domain domain_of_inputs{0.8, 1.25};
  static constexpr Tolerance tolerance{.ulp = 64};
  SINTER_REDUCE_SAMPLES
};

// Gradient of an extreme: shared by the elements that equal it.
TensorList grad_of_extreme(const GradCall& c) {
  return c.each([&] {
    auto& a = c.as<ReduceAttrs>();
    // A kernel computes narrow types in f32, and what it computes again is wider than what was stored before.
    bool widens = c[0].tensor().is_traced() && item_size(c[0].dtype()) < item_size(kFloat32);
    auto stored = [&](const Tensor& t) { return widens && is_floating(t.dtype()) ? t.to(kFloat32).to(t.dtype()) : t; };
    Tensor equal = stored(c[0].tensor()) == stored(with_dims(c.out(), c[0], a));
    Tensor share = with_dims(c.grad(), c[0], a) / sum(equal, a.dims, true);
    return where(equal, share, 0);
  });
}

template <class Self>
struct Extreme : Reduce<Self> {
  SINTER_SAMPLES("x[2, 3] | dims=[1]", "x[2, 3] | dims=[0], keepdim=true", "x[4, 37]", "x[3, 5, 19] | dims=[-1]",
                 "x[3, 5, 19] | dims=[1]", "x[2, 3, 4, 21] | dims=[2]", "x[70] | dims=[0]", "x[]", "x[0, 3] | dims=[1]")
};

struct AMax : Extreme<AMax> {
  static constexpr auto name = "amax";
  static constexpr Combine combine = Combine::kMax;
  static DType result_dtype(const OpCall& call) { return call.inputs[0].dtype; }
  static TensorList grad(const GradCall& c) { return grad_of_extreme(c); }
};
struct AMin : Extreme<AMin> {
  static constexpr auto name = "amin";
  static constexpr Combine combine = Combine::kMin;
  static DType result_dtype(const OpCall& call) { return call.inputs[0].dtype; }
  static TensorList grad(const GradCall& c) { return grad_of_extreme(c); }
};

// The position among the reduced elements in row-major order.
Dim position(const ElementBuilder& b, const Shape& extents) {
  Dim at = 0;
  for (size_t d = 0; d < extents.size(); ++d) at = at * extents[d] + b.k[d];
  return at;
}

// Where nothing is there is no position.
template <class Self>
struct Position : Extreme<Self> {
  static std::vector<Type> infer(const OpCall& call) {
    for (auto& d : Extreme<Self>::reduction(call))
      check(!d.is_number() || d.number() > 0, "{}: shape {} has no elements to choose from", call.name(), call.shape(0));
    return Extreme<Self>::infer(call);
  }
};

struct ArgMax : Position<ArgMax> {
  static constexpr auto name = "argmax";
  static constexpr Combine combine = Combine::kArgMax;
  static DType result_dtype(const OpCall&) { return kInt64; }
  static Dim payload(const ElementBuilder& b) { return position(b, reduction(b.call)); }
  static constexpr NotDifferentiable grad{"its result is a position"};
};
struct ArgMin : Position<ArgMin> {
  static constexpr auto name = "argmin";
  static constexpr Combine combine = Combine::kArgMin;
  static DType result_dtype(const OpCall&) { return kInt64; }
  static Dim payload(const ElementBuilder& b) { return position(b, reduction(b.call)); }
  static constexpr NotDifferentiable grad{"its result is a position"};
};

struct Any : Reduce<Any> {
  static constexpr auto name = "any";
  static constexpr Combine combine = Combine::kAny;
  static DType result_dtype(const OpCall&) { return kBool; }
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) { return {call<Any>({complex_math::truth(c.parts(0))}, c.attrs)}; }
  SINTER_REDUCE_SAMPLES
};
struct All : Reduce<All> {
  static constexpr auto name = "all";
  static constexpr Combine combine = Combine::kAll;
  static DType result_dtype(const OpCall&) { return kBool; }
  static constexpr NotDifferentiable grad{"a truth value has no slope"};
  static TensorList on_complex(const ComplexCall& c) { return {call<All>({complex_math::truth(c.parts(0))}, c.attrs)}; }
  SINTER_REDUCE_SAMPLES
};

// Of complex numbers: halves times halves, until one is left.
TensorList Prod::on_complex(const ComplexCall& c) {
  const auto& a = c.as<ReduceAttrs>();
  Tensor x = as_asked(c[0], a.dtype);
  IntList dims;
  Shape kept{1}, result;
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool reduced = a.dims.empty();
    for (int64_t named : a.dims) reduced = reduced || wrap_dim("prod", named, x.dim()) == d;
    if (reduced) dims.push_back(d);
    if (!reduced) kept.push_back(x.size(d));
    if (!reduced || a.keepdim) result.push_back(reduced ? Dim(1) : x.size(d));
  }
  IntList front(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) front[i] = int64_t(i);
  Dim count = 1;
  for (int64_t d : dims) count *= x.size(d);
  kept[0] = count;
  Tensor factors = movedim(x, dims, front).reshape(kept);
  int64_t left = count.to_int();
  if (left == 0) return {ones(result, x.options())};
  for (; left > 1; left = (left + 1) / 2) {
    int64_t half = left / 2;
    Tensor products = factors.narrow(0, 0, half) * factors.narrow(0, half, half);
    factors = left % 2 ? cat({products, factors.narrow(0, left - 1, 1)}, 0) : products;
  }
  return {factors.reshape(result)};
}

#undef SINTER_REDUCE_SAMPLES

// --- running reductions

struct ScanAttrs {
  int64_t dim = 0;
  std::optional<DType> dtype;
  SINTER_FIELDS(dim, dtype)
};
template <class Self>
struct Running : Scan {
  using Attributes = ScanAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<ScanAttrs>();
    wrap_dim(call.name(), a.dim, call.rank(0));
    DType d = call.inputs[0].dtype;
    return {Type{a.dtype ? *a.dtype : is_floating(d) ? d : kInt64, call.shape(0), call.inputs[0].device}};
  }
  static int64_t scan_dim(const OpCall& call) {
    return call.rank(0) == 0 ? 0 : wrap_dim(call.name(), call.as<ScanAttrs>().dim, call.rank(0));
  }
  static Elem element(ElementBuilder& b) { return b.load(0, b.i); }
  SINTER_SAMPLES("x[5] | dim=0", "x[2, 3] | dim=-1", "x[2, 37] | dim=1", "x[19, 18] | dim=0", "x[3, 4, 17] | dim=1",
                 "x[0, 3] | dim=1", "x[3, 0] | dim=1")
};

// The sum of each element and all that follow.
Tensor reverse_cumsum(const Tensor& x, int64_t dim) { return cumsum(x.flip({dim}), dim).flip({dim}); }

struct CumSum : Running<CumSum> {
  static constexpr auto name = "cumsum";
  static constexpr auto autocast = Autocast::kWideOnGpu;
  static constexpr Combine combine = Combine::kSum;
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      if (c[0].dim() == 0) return to(c.grad(), c[0].dtype());
      return to(reverse_cumsum(c.grad(), c.as<ScanAttrs>().dim), c[0].dtype());
    });
  }
  static TensorList on_complex(const ComplexCall& c) { return added_by_parts<CumSum, ScanAttrs>(c); }
  static constexpr Tolerance tolerance{.ulp = 64, .absolute = 4e-5};
};

struct CumProd : Running<CumProd> {
  static constexpr auto name = "cumprod";
  static constexpr auto autocast = Autocast::kWideOnGpu;
  static constexpr Combine combine = Combine::kProd;
  // Before the first zero by division; at the first zero through the products without it; after it nothing arrives.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      const Tensor& g = c.grad();
      if (c[0].dim() == 0) return to(g, c[0].dtype());
      int64_t dim = c.as<ScanAttrs>().dim;
      Tensor x = to(c[0], g.dtype()), zero = x == 0, zeros = cumsum(zero, dim), first = zero & (zeros == 1);
      Tensor before = reverse_cumsum(g * c.out(), dim) / where(zero, 1, x);
      Tensor at = reverse_cumsum(g * cumprod(where(first, 1, x), dim), dim);
      return to(where(zeros == 0, before, where(first, at, 0)), c[0].dtype());
    });
  }
  // Of complex numbers: the products of the last 1, 2, 4, … elements, each from two of the products before.
  static TensorList on_complex(const ComplexCall& c) {
    const auto& a = c.as<ScanAttrs>();
    Tensor x = as_asked(c[0], a.dtype);
    const int64_t dim = wrap_dim("cumprod", a.dim, x.dim());
    if (x.dim() == 0) return {clone(x)};
    const int64_t size = x.size(dim).to_int();
    for (int64_t step = 1; step < size; step *= 2)
      x = cat({x.narrow(dim, 0, step), x.narrow(dim, step, size - step) * x.narrow(dim, 0, size - step)}, dim);
    return {x};
  }
  static constexpr Domain domain_of_inputs{0.8, 1.25};
  static constexpr Tolerance tolerance{.ulp = 64};
};

DType accumulation_dtype(DType d) { return d == kFloat16 || d == kBFloat16 ? kFloat32 : d; }

// How many elements become one.
Dim reduced_count(const char* op, const TensorArg& x, const IntList& dims) {
  const Shape sizes = x.sizes();
  if (dims.empty()) return sizes.numel();
  Dim count = 1;
  if (!sizes.empty())
    for (int64_t d : dims) count = count * sizes[size_t(wrap_dim(op, d, x.dim()))];
  return count;
}

// An extreme of nothing does not exist. Asked here and not when types are inferred: what the data decides is known to a
// program alone, which then waits for it.
const TensorArg& not_empty(const char* op, const TensorArg& x, const IntList& dims) {
  if (x.is_scalar() || !x.tensor().defined()) return x;
  UserPosition here(x.where());
  for (int64_t d = 0; d < x.dim(); ++d) {
    bool reduced = dims.empty() || std::ranges::any_of(dims, [&](int64_t dim) { return wrap_dim(op, dim, x.dim()) == d; });
    check(!reduced || x.size(d) != 0, "{}: shape {} has no elements to choose from", op, x.sizes());
  }
  return x;
}

// sqrt whose gradient at 0 is 0 and not infinite.
Tensor flat_sqrt(const Tensor& x) {
  Tensor zero = x == 0;
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

IntList one_dim(std::optional<int64_t> dim) { return dim ? IntList{*dim} : IntList{}; }

// The extreme along a dimension and its position; the gradient goes to that position alone.
std::tuple<Tensor, Tensor> at_extreme(const Tensor& x, const Tensor& position, int64_t dim, bool keepdim) {
  if (x.dim() == 0) return {x, position};
  Tensor values = x.gather(dim, position);
  if (keepdim) return {values, position};
  return {values.squeeze(dim), position.squeeze(dim)};
}

}  // namespace

Tensor sum(const TensorArg& x, const IntList& dims, bool keepdim, std::optional<DType> dtype) {
  return call<Sum>({complex_first(x, dtype)}, ReduceAttrs{dims, keepdim, dtype});
}

Tensor mean(const TensorArg& x, const IntList& dims, bool keepdim, std::optional<DType> dtype) {
  UserPosition here(x.where());
  DType result = dtype.value_or(x.dtype());
  check(is_differentiable(result), "mean: the mean of {} has no dtype; convert it to a floating one first", x.dtype());
  return to(sum(x, dims, keepdim, accumulation_dtype(result)) / reduced_count("mean", x, dims), result);
}

Tensor prod(const TensorArg& x, std::optional<DType> dtype) {
  return call<Prod>({complex_first(x, dtype)}, ReduceAttrs{{}, false, dtype});
}
Tensor prod(const TensorArg& x, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return call<Prod>({complex_first(x, dtype)}, ReduceAttrs{{dim}, keepdim, dtype});
}
Tensor nansum(const TensorArg& x, const IntList& dims, bool keepdim, std::optional<DType> dtype) {
  UserPosition here(x.where());
  return sum(where(isnan(x), 0, x), dims, keepdim, dtype);
}
Tensor count_nonzero(const TensorArg& x, const IntList& dims) {
  UserPosition here(x.where());
  return sum(x != 0, dims);
}

Tensor amax(const TensorArg& x, const IntList& dims, bool keepdim) {
  return call<AMax>({not_empty(AMax::name, x, dims)}, ReduceAttrs{dims, keepdim, {}});
}
Tensor amax_if_any(const TensorArg& x, const IntList& dims, bool keepdim) {
  return call<AMax>({x}, ReduceAttrs{dims, keepdim, {}});
}
Tensor amin(const TensorArg& x, const IntList& dims, bool keepdim) {
  return call<AMin>({not_empty(AMin::name, x, dims)}, ReduceAttrs{dims, keepdim, {}});
}
Tensor argmax(const TensorArg& x, std::optional<int64_t> dim, bool keepdim) {
  return call<ArgMax>({not_empty(ArgMax::name, x, one_dim(dim))}, ReduceAttrs{one_dim(dim), keepdim, {}});
}
Tensor argmin(const TensorArg& x, std::optional<int64_t> dim, bool keepdim) {
  return call<ArgMin>({not_empty(ArgMin::name, x, one_dim(dim))}, ReduceAttrs{one_dim(dim), keepdim, {}});
}

Tensor max(const Tensor& x, Where where) { return amax({x, where}); }
std::tuple<Tensor, Tensor> max(const Tensor& x, int64_t dim, bool keepdim, Where where) {
  UserPosition here(where);
  return at_extreme(x, argmax(x, dim, true), dim, keepdim);
}
Tensor max(const Tensor& a, const Tensor& b, Where where) { return maximum({a, where}, b); }
Tensor min(const Tensor& x, Where where) { return amin({x, where}); }
std::tuple<Tensor, Tensor> min(const Tensor& x, int64_t dim, bool keepdim, Where where) {
  UserPosition here(where);
  return at_extreme(x, argmin(x, dim, true), dim, keepdim);
}
Tensor min(const Tensor& a, const Tensor& b, Where where) { return minimum({a, where}, b); }

Tensor any(const TensorArg& x, const IntList& dims, bool keepdim) {
  return call<Any>({x}, ReduceAttrs{dims, keepdim, {}});
}
Tensor all(const TensorArg& x, const IntList& dims, bool keepdim) {
  return call<All>({x}, ReduceAttrs{dims, keepdim, {}});
}

std::tuple<Tensor, Tensor> var_mean(const TensorArg& x, const IntList& dims, int64_t correction, bool keepdim) {
  UserPosition here(x.where());
  // The distance from the mean counts, in both directions.
  if (is_complex(x.dtype())) {
    auto [of_real, mean_real] = var_mean(real(x), dims, correction, keepdim);
    auto [of_imag, mean_imag] = var_mean(imag(x), dims, correction, keepdim);
    return {of_real + of_imag, complex(mean_real, mean_imag)};
  }
  check(is_floating(x.dtype()), "var: expected a floating or complex tensor, got {}", x.dtype());
  Tensor wide = to(x, accumulation_dtype(x.dtype()));
  Tensor middle = mean(wide, dims, true);
  // No degrees of freedom left: the division by zero says so.
  Dim divisor = max(reduced_count("var", x, dims) - correction, Dim(0));
  Tensor variance = sum(square(wide - middle), dims, keepdim) / divisor;
  return {to(variance, x.dtype()), to(keepdim ? middle : middle.reshape(variance.sizes()), x.dtype())};
}
Tensor var(const TensorArg& x, const IntList& dims, int64_t correction, bool keepdim) {
  return std::get<0>(var_mean(x, dims, correction, keepdim));
}
Tensor std(const TensorArg& x, const IntList& dims, int64_t correction, bool keepdim) {
  UserPosition here(x.where());
  if (is_complex(x.dtype())) return flat_sqrt(var(x, dims, correction, keepdim));
  check(is_floating(x.dtype()), "std: expected a floating or complex tensor, got {}", x.dtype());
  Tensor wide = to(x, accumulation_dtype(x.dtype()));
  return to(flat_sqrt(var(wide, dims, correction, keepdim)), x.dtype());
}

Tensor norm(const TensorArg& given, const Scalar& p, const IntList& dims, bool keepdim, std::optional<DType> dtype) {
  UserPosition here(given.where());
  TensorArg x = in_f32_on_gpu(dtype ? TensorArg(to(given, *dtype), given.where()) : given);
  if (is_complex(x.dtype())) x = TensorArg(abs(x), given.where());
  check(is_floating(x.dtype()), "norm: expected a floating or complex tensor, got {}", x.dtype());
  const double order = p.to_double();
  if (order == INFINITY) return amax(abs(x), dims, keepdim);
  if (order == -INFINITY) return amin(abs(x), dims, keepdim);
  Tensor wide = to(x, accumulation_dtype(x.dtype()));
  auto total = [&](const Tensor& terms) { return sum(terms, dims, keepdim); };
  if (order == 0) return to(total(to(wide != 0, wide.dtype())), x.dtype());
  if (order == 1) return to(total(abs(wide)), x.dtype());
  if (order == 2) return to(flat_sqrt(total(square(wide))), x.dtype());
  // Where a root or a power has no slope, at zero, no gradient flows.
  Tensor size = abs(wide), none = size == 0;
  Tensor powers = total(where(none, std::pow(0.0, order), pow(where(none, 1, size), p)));
  Tensor flat = order > 0 ? powers == 0 : isinf(powers);
  return to(where(flat, 0, pow(where(flat, 1, powers), 1 / order)), x.dtype());
}

namespace {

bool dim_is_empty(const Tensor& x, int64_t dim) { return x.dim() > 0 && x.size(dim).same_as(0); }

}  // namespace

Tensor logsumexp(const TensorArg& given, const IntList& dims, bool keepdim) {
  UserPosition here(given.where());
  const TensorArg x = in_f32_on_gpu(given);
  check(!is_complex(x.dtype()), "logsumexp: not defined for complex numbers, got {}: write log(sum(exp(x)))", x.dtype());
  Tensor wide = to(x, is_floating(x.dtype()) ? accumulation_dtype(x.dtype()) : get_default_dtype());
  bool empty = std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return dim_is_empty(wide, d); });
  if (empty) return to(log(sum(wide, dims, keepdim)), is_floating(x.dtype()) ? x.dtype() : get_default_dtype());
  // The shift cancels out; an infinite one would leave inf - inf.
  Tensor top = amax_if_any(wide, dims, true).detach();
  Tensor shift = where(isfinite(top), top, 0);
  Tensor total = log(sum(exp(wide - shift), dims, keepdim));
  total = total + (keepdim ? shift : shift.reshape(total.sizes()));
  return is_floating(x.dtype()) ? to(total, x.dtype()) : total;
}

Tensor softmax(const TensorArg& given, int64_t dim, std::optional<DType> dtype) {
  UserPosition here(given.where());
  const TensorArg x = in_f32_on_gpu(given);
  DType result = dtype.value_or(x.dtype());
  check(is_floating(result), "softmax: expected a floating tensor, got {}", result);
  Tensor wide = to(to(x, result), accumulation_dtype(result));
  if (dim_is_empty(wide, dim)) return clone(to(wide, result));
  Tensor e = exp(wide - amax_if_any(wide, {dim}, true).detach());
  return to(e / sum(e, {dim}, true), result);
}
Tensor log_softmax(const TensorArg& given, int64_t dim, std::optional<DType> dtype) {
  UserPosition here(given.where());
  const TensorArg x = in_f32_on_gpu(given);
  DType result = dtype.value_or(x.dtype());
  check(is_floating(result), "log_softmax: expected a floating tensor, got {}", result);
  Tensor wide = to(to(x, result), accumulation_dtype(result));
  if (dim_is_empty(wide, dim)) return clone(to(wide, result));
  Tensor shifted = wide - amax_if_any(wide, {dim}, true).detach();
  return to(shifted - log(sum(exp(shifted), {dim}, true)), result);
}

Tensor cumsum(const TensorArg& x, int64_t dim, std::optional<DType> dtype) {
  return call<CumSum>({complex_first(x, dtype)}, ScanAttrs{dim, dtype});
}
Tensor cumprod(const TensorArg& x, int64_t dim, std::optional<DType> dtype) {
  return call<CumProd>({complex_first(x, dtype)}, ScanAttrs{dim, dtype});
}

OpFamily reduce_ops() {
  static const Op* const ops[] = {&op_of<Sum>,    &op_of<Prod>, &op_of<AMax>, &op_of<AMin>,   &op_of<ArgMax>,
                                  &op_of<ArgMin>, &op_of<Any>,  &op_of<All>,  &op_of<CumSum>, &op_of<CumProd>};
  return ops;
}

}  // namespace sinter
