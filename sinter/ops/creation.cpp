#include "sinter/ops/creation.h"

#include <cmath>

#include "sinter/ops/attributes.h"
#include "sinter/ops/checked.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/in_place.h"
#include "sinter/ops/layout.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

template <class Self>
struct Creation : Loop {
  using Attributes = CreationAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<CreationAttrs>();
    for (auto& d : a.size) check(!d.is_number() || d.number() >= 0, "{}: the size {} is negative", call.name(), a.size);
    check(!is_complex(a.dtype), "{}: not defined for complex numbers ({}): make the parts, and join them by complex(re, im)",
          call.name(), a.dtype);
    for (auto& input : call.inputs)
      check(input.rank() == 0, "{}: expected single numbers, got a tensor of shape {}", call.name(), input.shape);
    for (auto& input : call.inputs)
      check(input.weak || input.device.is_cpu() || input.device == a.device,
            "{}: the number is on {}, the result on {}: move one of them with .to(device)", call.name(), input.device, a.device);
    return {Type{a.dtype, a.size, a.device}};
  }
};

const Op& pointwise(std::string_view name) {
  const Op* op = find_op(name);
  SINTER_INTERNAL_ASSERT(op, "no op is called {}", name);
  return *op;
}

struct Full : Creation<Full> {
  static constexpr auto name = "full";
  static Elem element(ElementBuilder& b) { return b.load(0, {}); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return sum(c.grad()); });
  }
  // A complex tensor is made of any number, a real one of a complex number's real part.
  static TensorList on_complex(const ComplexCall& c) {
    CreationAttrs attrs = c.as<CreationAttrs>();
    const bool pairs = is_complex(attrs.dtype);
    attrs.dtype = real_dtype(attrs.dtype);
    if (c[0].is_scalar() && (!pairs || (c[0].scalar().real() == 0 && c[0].scalar().imag() == 0))) {
      if (pairs) attrs.size.push_back(2);
      Tensor out = call<Full>({TensorArg(c[0].scalar().to_double(), c[0].where())}, attrs);
      return {pairs ? view_as_complex(out) : out};
    }
    auto filled = [&](const TensorArg& part) { return call<Full>({part}, attrs); };
    const Parts value = c.parts(0);
    return {pairs ? joined(filled(value.re), filled(value.im)) : filled(value.re)};
  }
  SINTER_SAMPLES("2 | size=[3, 4], dtype=f32", "1.5 | size=[33], dtype=f32", "true | size=[2], dtype=bool",
                 "x[] | size=[2, 17], dtype=f32", "7 | size=[0, 3], dtype=i64", "-1 | size=[], dtype=i32")
};

// Sequences are computed in f64 (or i64) and rounded once, so that a long one ends where it should.
struct Arange : Creation<Arange> {
  static constexpr auto name = "arange";
  static constexpr int inputs = 2;
  static Elem element(ElementBuilder& b) {
    static const Op &add = pointwise("add"), &mul = pointwise("mul");
    DType wide = is_floating(b.call.as<CreationAttrs>().dtype) ? kFloat64 : kInt64;
    return b.apply(add, wide, {b.load(0, {}), b.apply(mul, wide, {b.number(b.i[0]), b.load(1, {})})});
  }
  static constexpr NotDifferentiable grad{"its bounds are numbers"};
  SINTER_SAMPLES("0, 1 | size=[5], dtype=i64", "2, 3 | size=[37], dtype=i32", "0.5, 0.1 | size=[40], dtype=f32",
                 "1, -2 | size=[19], dtype=f64", "0, 1 | size=[0], dtype=i64")
};

struct Linspace : Creation<Linspace> {
  static constexpr auto name = "linspace";
  static constexpr int inputs = 2;
  static Elem element(ElementBuilder& b) {
    static const Op &add = pointwise("add"), &sub = pointwise("sub"), &mul = pointwise("mul"), &div = pointwise("div");
    Elem start = b.load(0, {}), range = b.apply(sub, kFloat64, {b.load(1, {}), start});
    Elem last = b.number(max(b.call.as<CreationAttrs>().size[0] - 1, Dim(1)));
    Elem done = b.apply(div, kFloat64, {b.apply(mul, kFloat64, {b.number(b.i[0]), range}), last});
    return b.apply(add, kFloat64, {start, done});
  }
  static constexpr NotDifferentiable grad{"its bounds are numbers"};
  SINTER_SAMPLES("0, 1 | size=[5], dtype=f32", "-3, 10.5 | size=[33], dtype=f32", "2, 4 | size=[1], dtype=f64",
                 "0, 1 | size=[0], dtype=f32")
};

struct Eye : Creation<Eye> {
  static constexpr auto name = "eye";
  static constexpr int inputs = 0;
  static Elem element(ElementBuilder& b) {
    return b.select({Condition{b.i[0] - b.i[1], 1}}, b.constant(1), b.constant(0));
  }
  static constexpr NotDifferentiable grad{"it has no operands"};
  SINTER_SAMPLES("| size=[3, 3], dtype=f32", "| size=[17, 20], dtype=f32", "| size=[5, 2], dtype=i64", "| size=[0, 0]")
};

// A symbolic size as a value of the graph.
struct DimAttrs {
  Dim value;
  SINTER_FIELDS(value)
};
struct DimValue : Loop {
  static constexpr auto name = "sym_value";
  static constexpr int inputs = 0;
  using Attributes = DimAttrs;
  static std::vector<Type> infer(const OpCall&) { return {Type{kInt64, {}, {}}}; }
  static Elem element(ElementBuilder& b) { return b.number(b.call.as<DimAttrs>().value); }
  static constexpr NotDifferentiable grad{"a size has no slope"};
  SINTER_SAMPLES("| value=7", "| value=-3")
};

struct TriangleAttrs {
  int64_t diagonal = 0;
  SINTER_FIELDS(diagonal)
};
template <class Self>
struct Triangle : Loop {
  using Attributes = TriangleAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    check(call.rank(0) >= 2, "{}: expected at least 2 dimensions, got shape {}", call.name(), call.shape(0));
    return {Type{call.inputs[0].dtype, call.shape(0), call.inputs[0].device}};
  }
  // How far an element lies below the diagonal.
  static Dim below(const ElementBuilder& b) {
    size_t n = b.i.size();
    return b.i[n - 2] - b.i[n - 1] + b.call.as<TriangleAttrs>().diagonal;
  }
  SINTER_SAMPLES("x[3, 4]", "x[4, 3] | diagonal=1", "x[2, 5, 19] | diagonal=-1", "x[17, 18] | diagonal=-20", "x[0, 4]")
};
struct Tril : Triangle<Tril> {
  static constexpr auto name = "tril";
  static constexpr auto on_complex = by_parts<>;
  static Elem element(ElementBuilder& b) { return b.load_if({Condition{below(b)}}, 0, b.i, 0); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return tril(c.grad(), c.as<TriangleAttrs>().diagonal); });
  }
};
struct Triu : Triangle<Triu> {
  static constexpr auto name = "triu";
  static constexpr auto on_complex = by_parts<>;
  static Elem element(ElementBuilder& b) { return b.load_if({Condition{-below(b)}}, 0, b.i, 0); }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return triu(c.grad(), c.as<TriangleAttrs>().diagonal); });
  }
};

Tensor with_grad(Tensor t, const TensorOptions& options) {
  if (options.requires_grad_) t.requires_grad_();
  return t;
}
// Before the op runs: what no tensor may have.
void check_options(const TensorOptions& options) {
  check_available(options.device_);
  check(!options.requires_grad_ || is_differentiable(options.dtype_),
        "a tensor of {} cannot require a gradient; only floating-point and complex tensors can", options.dtype_);
}

// The dtype that numbers make.
TensorOptions options_of(std::initializer_list<Scalar> values) {
  DType dtype = kBool;
  for (auto& v : values)
    dtype = promote_types(dtype, v.is_floating()  ? get_default_dtype()
                                 : v.is_complex() ? complex_dtype(get_default_dtype())
                                                  : v.dtype());
  return dtype;
}

}  // namespace

TensorArg::TensorArg(const Dim& dim, Where where) : where_(where) {
  is_scalar_ = dim.is_number();
  if (is_scalar_) {
    scalar_ = Scalar(dim.number());
    return;
  }
  UserPosition here(where_);
  check(Tracer::current(),
        "the symbolic size {} as a tensor operand needs capture; use .to_int() for its present number", dim);
  tensor_ = call_op(op_of<DimValue>, {}, DimAttrs{dim}, where);
  is_lazy_number_ = true;
}

Tensor full(const Shape& size, const TensorArg& value, const std::optional<TensorOptions>& options) {
  UserPosition here(value.where());
  TensorOptions o = options.value_or(TensorOptions())
                        .over(value.is_scalar() ? options_of({value.scalar()}) : value.tensor().options());
  check_options(o);
  CreationAttrs attrs{size, o.dtype_, o.device_};
  return with_grad(is_complex(o.dtype_) ? call_on_complex(op_of<Full>, {&value, 1}, attrs)[0] : call<Full>({value}, attrs), o);
}
Tensor zeros(const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return full(size, {0, where}, options.over(get_default_dtype()));
}
Tensor ones(const Shape& size, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return full(size, {1, where}, options.over(get_default_dtype()));
}

Tensor full_like(const TensorArg& x, const TensorArg& value, const std::optional<TensorOptions>& options, MemoryFormat format) {
  UserPosition here(x.where());
  const TensorOptions o = options.value_or(TensorOptions()).over(x.tensor().options());
  auto strides = strides_like("full_like", x.tensor(), format);
  if (!strides) return full(x.sizes(), value, o);
  if (auto* tracer = Tracer::current()) {
    Tensor out = full(x.sizes(), value, o);
    tracer->lay_out(out, *strides);
    return out;
  }
  return with_grad(empty_strided(x.sizes(), *strides, o.requires_grad(false)).fill_(value), o);
}
Tensor zeros_like(const TensorArg& x, const std::optional<TensorOptions>& options, MemoryFormat format) {
  UserPosition here(x.where());
  return full_like(x, 0, options, format);
}
Tensor ones_like(const TensorArg& x, const std::optional<TensorOptions>& options, MemoryFormat format) {
  UserPosition here(x.where());
  return full_like(x, 1, options, format);
}
Tensor empty_like(const TensorArg& x, const std::optional<TensorOptions>& options, MemoryFormat format) {
  UserPosition here(x.where());
  if (Tracer::current()) return zeros_like(x, options, format);
  const TensorOptions o = options.value_or(TensorOptions()).over(x.tensor().options());
  auto strides = strides_like("empty_like", x.tensor(), format);
  return strides ? empty_strided(x.sizes(), *strides, o) : empty(x.sizes(), o);
}

Tensor arange(const Scalar& end, const std::optional<TensorOptions>& options, Where where) {
  return arange(0, end, 1, options, where);
}
Tensor arange(const Scalar& start, const Scalar& end, const std::optional<TensorOptions>& options, Where where) {
  return arange(start, end, 1, options, where);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const std::optional<TensorOptions>& options,
              Where where) {
  UserPosition here(where);
  TensorOptions o = options.value_or(TensorOptions()).over(options_of({start, end, step}));
  check_options(o);
  check(step.to_double() != 0, "arange: the step is zero");
  const bool integers = !start.is_floating() && !end.is_floating() && !step.is_floating();
  double count = std::ceil((end.to_double() - start.to_double()) / step.to_double());
  if (integers) {
    int64_t s = step.to_int(), range = end.to_int() - start.to_int();
    count = double(range / s + (range % s != 0 && (range < 0) == (s < 0)));
  }
  check(count >= 0 && count < 0x1p62, "arange: no steps of {} lead from {} to {}", step, start, end);
  return with_grad(call<Arange>({{start, where}, step}, CreationAttrs{{Dim(int64_t(count))}, o.dtype_, o.device_}), o);
}
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options, Where where) {
  UserPosition here(where);
  check_options(options);
  check(step.to_double() != 0, "range: the step is zero");
  double count = std::floor((end.to_double() - start.to_double()) / step.to_double()) + 1;
  check(count >= 1 && count < 0x1p62, "range: no steps of {} lead from {} to {}", step, start, end);
  return with_grad(call<Arange>({{start, where}, step}, CreationAttrs{{Dim(int64_t(count))}, options.dtype_, options.device_}),
                   options);
}
Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options, Where where) {
  return range(start, end, 1, options, where);
}
Tensor arange_of_size(const Dim& count, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return call<Arange>({{0, where}, 1}, CreationAttrs{{count}, options.over(kInt64).dtype_, options.device_});
}
Tensor positions_along(const Tensor& x, int64_t dim) {
  Shape along(size_t(x.dim()), Dim(1));
  along[size_t(dim)] = x.size(dim);
  return arange_of_size(x.size(dim), TensorOptions(kInt64).device(x.device())).view(along);
}
Tensor linspace(const Scalar& start, const Scalar& end, Dim steps, const TensorOptions& options, Where where) {
  UserPosition here(where);
  check_options(options);
  return with_grad(call<Linspace>({{start, where}, end}, CreationAttrs{{steps}, options.dtype_, options.device_}),
                   options);
}
Tensor logspace(const Scalar& start, const Scalar& end, Dim steps, double base, const TensorOptions& options,
                Where where) {
  UserPosition here(where);
  check_options(options);
  TensorOptions wide = options.dtype(kFloat64).requires_grad(false);
  return with_grad(to(pow(base, linspace(start, end, steps, wide)), options.dtype_), options);
}
Tensor eye(Dim rows, const TensorOptions& options, Where where) { return eye(rows, rows, options, where); }
Tensor eye(Dim rows, Dim columns, const TensorOptions& options, Where where) {
  UserPosition here(where);
  check_options(options);
  Tensor ones = call_op(op_of<Eye>, {}, CreationAttrs{{rows, columns}, real_dtype(options.dtype_), options.device_}, where);
  return with_grad(to(ones, options.dtype_), options);
}

Tensor tril(const TensorArg& x, int64_t diagonal) { return call<Tril>({x}, TriangleAttrs{diagonal}); }
Tensor triu(const TensorArg& x, int64_t diagonal) { return call<Triu>({x}, TriangleAttrs{diagonal}); }

namespace {

// Coordinates of the elements for which `wanted(row, column)` holds, as two rows.
template <class F>
Tensor coordinates(const char* op, Dim rows, Dim columns, const TensorOptions& options, const Where& where, F wanted) {
  UserPosition here(where, op);
  check(options.dtype_ == kInt64 || options.dtype_ == kInt32, "{}: positions are i64 or i32, not {}", op, options.dtype_);
  int64_t height = rows.to_int(where), width = columns.to_int(where);
  check(height >= 0 && width >= 0, "{}: a matrix of {} rows and {} columns", op, height, width);
  std::vector<int64_t> down, along;
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j)
      if (wanted(i, j)) {
        down.push_back(i);
        along.push_back(j);
      }
  int64_t count = int64_t(down.size());
  down.insert(down.end(), along.begin(), along.end());
  return from_data(down, {2, count}).to(options);
}

}  // namespace

Tensor tril_indices(Dim rows, Dim columns, int64_t offset, const TensorOptions& options, Where where) {
  return coordinates("tril_indices", rows, columns, options, where, [&](int64_t i, int64_t j) { return j - i <= offset; });
}
Tensor triu_indices(Dim rows, Dim columns, int64_t offset, const TensorOptions& options, Where where) {
  return coordinates("triu_indices", rows, columns, options, where, [&](int64_t i, int64_t j) { return j - i >= offset; });
}

Tensor one_hot(const TensorArg& x, int64_t num_classes) {
  UserPosition here(x.where());
  check(x.dtype() == kInt64, "one_hot: expected i64 classes, got {}", x.dtype());
  if (num_classes < 0) num_classes = amax(x).item<int64_t>() + 1;
  Tensor classes = x.tensor();
  if (Tracer::current() || !classes.device().is_cpu()) {
    classes = checked(classes, (classes >= 0) & (classes < num_classes), Fault::kOneHot);
  } else if (classes.numel() > 0) {
    int64_t low = amin(x).item<int64_t>(), high = amax(x).item<int64_t>();
    check(low >= 0 && high < num_classes, "one_hot: class {} is not among the {} classes", low < 0 ? low : high,
          num_classes);
  }
  return to(eq(classes.unsqueeze(-1), arange(num_classes, classes.options())), kInt64);
}

TensorList meshgrid(const TensorList& tensors, std::string_view indexing, Where where) {
  UserPosition here(where);
  check(indexing == "ij" || indexing == "xy", "meshgrid: indexing '{}' is neither 'ij' nor 'xy'", indexing);
  check(!tensors.empty(), "meshgrid: expected at least one tensor");
  Shape sizes;
  for (auto& t : tensors) {
    check(t.dim() <= 1, "meshgrid: expected tensors of one dimension, got shape {}", t.sizes());
    sizes.push_back(t.numel());
  }
  TensorList grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape at;
    for (size_t d = 0; d < tensors.size(); ++d) at.push_back(d == i ? sizes[i] : Dim(1));
    Tensor grid = tensors[i].reshape(at).expand(sizes);
    grids.push_back(indexing == "xy" && tensors.size() > 1 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

Tensor fill(const TensorArg& x, const TensorArg& value) { return full_like(x, value); }
Tensor copy(const TensorArg& x, const TensorArg& source) {
  UserPosition here(x.where());
  if (source.is_scalar()) return full_like(x, source);
  return clone(to(source, x.dtype()).expand(x.sizes()));
}

const Tensor& Tensor::fill_(const TensorArg& value) const {
  UserPosition here(value.where());
  check(value.dim() == 0, "fill_: the value has shape {}, expected a single number", value.sizes());
  call_op_into(op_of<Full>, {&value, 1}, CreationAttrs{sizes(), dtype(), device()}, *this, value.where());
  return *this;
}
const Tensor& Tensor::zero_(Where where) const {
  UserPosition here(where);
  return fill_({0, where});
}

OpFamily creation_ops() {
  static const Op* const ops[] = {&op_of<Full>,     &op_of<Arange>, &op_of<Linspace>, &op_of<Eye>,
                                  &op_of<DimValue>, &op_of<Tril>,   &op_of<Triu>};
  return ops;
}

}  // namespace sinter
