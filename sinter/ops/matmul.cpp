#include "sinter/ops/matmul.h"

#include "sinter/ops/add_scaled.h"
#include "sinter/ops/autocast.h"
#include "sinter/ops/complex_math.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

Elem multiply(ElementBuilder& b, DType dtype, Elem x, Elem y) {
  static const Op* mul = find_op("mul");
  return b.apply(*mul, compute_dtype(dtype), {x, y});
}

const Tensor& tensor_operand(const char* op, const TensorArg& arg) {
  check(!arg.is_scalar() && arg.tensor().defined(), "{}: expected a tensor, got {}", op,
        arg.is_scalar() ? "the number " + to_string(arg.scalar()) : std::string("an undefined one"));
  return arg.tensor();
}

namespace {

// What mm and bmm share: types of a product whose operands have `rank` dimensions.
std::vector<Type> infer_product(const OpCall& call, int64_t rank) {
  const Shape &a = call.shape(0), &b = call.shape(1);
  check(a.rank() == rank && b.rank() == rank, "{}: expected two {}-d tensors, got shapes {} and {}", call.name(), rank,
        a, b);
  DType dtype = call.inputs[0].dtype;
  check(dtype == call.inputs[1].dtype, "{}: operands have different dtypes {} and {}; convert one with .to()",
        call.name(), dtype, call.inputs[1].dtype);
  check(dtype != kBool, "{}: not defined for bool; convert with .to()", call.name());
  if (rank == 3)
    check(a[0] == b[0], "{}: batch sizes {} and {} differ (shapes {} and {})", call.name(), a[0], b[0], a, b);
  auto n = size_t(rank - 2);
  check(a[n + 1] == b[n], "{}: inner sizes {} and {} differ (shapes {} and {})", call.name(), a[n + 1], b[n], a, b);
  return {Type{dtype, with_tail(a, 1, {b[n + 1]}), call.inputs[0].device}};
}

bool lies_by_columns(const Tensor& matrix) {
  if (matrix.is_traced()) {
    auto* program = ProgramTracer::current();
    if (!program) return false;
    program->layout_matters(matrix);
  }
  auto& impl = matrix.impl();
  return impl.sizes.size() == 2 && impl.sizes[0] > 1 && impl.sizes[1] > 1 && impl.strides[0] == 1 &&
         impl.strides[1] == impl.sizes[0];
}

}  // namespace

struct Mm : Loop {
  static constexpr auto name = "mm";
  static constexpr auto on_complex = complex_math::of_products;
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = 2;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) { return infer_product(call, 2); }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return {call.shape(0)[1]}; }
  static Elem element(ElementBuilder& b) {
    return multiply(b, b.call.inputs[0].dtype, b.load(0, {b.i[0], b.k[0]}), b.load(1, {b.k[0], b.i[1]}));
  }
  // The gradient of an operand that lies in memory by columns lies so too, as in PyTorch: that of a linear layer's weight is
  // then row-major.
  static TensorList grad(const GradCall& c) {
    const Tensor &a = c[0].tensor(), &b = c[1].tensor();
    return c.each([&] { return lies_by_columns(a) ? mm(b, c.grad().t()).t() : mm(c.grad(), b.t()); },
                  [&] { return lies_by_columns(b) ? mm(c.grad().t(), a).t() : mm(a.t(), c.grad()); });
  }
  static constexpr Tolerance tolerance{.ulp = 32, .absolute = 3e-5};
  SINTER_SAMPLES("x[2, 3], x[3, 4]", "x[1, 1], x[1, 1]", "x[17, 33], x[33, 19]", "x[1, 40], x[40, 35]",
                 "x[35, 40], x[40, 1]", "x[0, 3], x[3, 2]", "x[2, 0], x[0, 3]")
};

struct Bmm : Loop {
  static constexpr auto name = "bmm";
  static constexpr auto on_complex = complex_math::of_products;
  static constexpr auto autocast = Autocast::kLow;
  static constexpr int inputs = 2;
  using Attributes = NoAttrs;
  static std::vector<Type> infer(const OpCall& call) { return infer_product(call, 3); }
  static constexpr Combine combine = Combine::kSum;
  static Shape reduction(const OpCall& call) { return {call.shape(0)[2]}; }
  static Elem element(ElementBuilder& b) {
    return multiply(b, b.call.inputs[0].dtype, b.load(0, {b.i[0], b.i[1], b.k[0]}),
                    b.load(1, {b.i[0], b.k[0], b.i[2]}));
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] { return bmm(c.grad(), c[1].tensor().transpose(1, 2)); },
                  [&] { return bmm(c[0].tensor().transpose(1, 2), c.grad()); });
  }
  static constexpr Tolerance tolerance{.ulp = 32, .absolute = 3e-5};
  SINTER_SAMPLES("x[2, 2, 3], x[2, 3, 4]", "x[1, 1, 1], x[1, 1, 1]", "x[3, 17, 20], x[3, 20, 19]",
                 "x[2, 1, 33], x[2, 33, 18]", "x[0, 2, 3], x[0, 3, 2]", "x[2, 2, 0], x[2, 0, 3]")
};

Tensor mm(const TensorArg& a, const TensorArg& b) { return call<Mm>({a, b}); }
Tensor bmm(const TensorArg& a, const TensorArg& b) { return call<Bmm>({a, b}); }

Tensor dot(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  const Tensor &x = tensor_operand("dot", a), &y = tensor_operand("dot", b);
  check(x.dim() == 1 && y.dim() == 1, "dot: expected two vectors, got shapes {} and {}", x.sizes(), y.sizes());
  check(x.size(0) == y.size(0), "dot: vectors of shapes {} and {} differ in size", x.sizes(), y.sizes());
  return mm(x.unsqueeze(0), y.unsqueeze(1)).view({});
}

Tensor mv(const TensorArg& a, const TensorArg& vector) {
  UserPosition here(a.where());
  const Tensor &x = tensor_operand("mv", a), &v = tensor_operand("mv", vector);
  check(x.dim() == 2 && v.dim() == 1, "mv: expected a matrix and a vector, got shapes {} and {}", x.sizes(), v.sizes());
  check(x.size(1) == v.size(0), "mv: inner sizes differ (shapes {} and {})", x.sizes(), v.sizes());
  return mm(x, v.unsqueeze(1)).squeeze(1);
}

Tensor outer(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  const Tensor &x = tensor_operand("outer", a), &y = tensor_operand("outer", b);
  check(x.dim() == 1 && y.dim() == 1, "outer: expected two vectors, got shapes {} and {}", x.sizes(), y.sizes());
  return x.unsqueeze(1) * y.unsqueeze(0);
}

namespace {

Shape batch_of(const Shape& a, const Shape& b) {
  try {
    return broadcast_shapes("matmul", Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  } catch (const Error&) {
    throw_error(format("matmul: the batch dimensions of shapes {} and {} do not broadcast", a, b));
  }
}

}  // namespace

Tensor matmul(const TensorArg& a_arg, const TensorArg& b_arg) {
  UserPosition here(a_arg.where());
  const Tensor &a = tensor_operand("matmul", a_arg), &b = tensor_operand("matmul", b_arg);
  int64_t ra = a.dim(), rb = b.dim();
  check(ra >= 1 && rb >= 1, "matmul: both operands need at least one dimension, got shapes {} and {}", a.sizes(),
        b.sizes());
  Dim inner = a.size(-1), inner_b = b.size(rb == 1 ? 0 : -2);
  check(inner == inner_b, "matmul: inner sizes {} and {} differ (shapes {} and {})", inner, inner_b, a.sizes(),
        b.sizes());
  if (ra == 1 && rb == 1) return dot(a, b);
  if (ra == 1) return matmul(a.unsqueeze(0), b).squeeze(-2);
  if (rb == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  if (rb == 2) {
    if (ra == 2) return mm(a, b);
    // One matrix for all batches: the batch is more rows.
    return mm(a.reshape({with_tail(a.sizes(), 1, {}).numel(), inner}), b).reshape(with_tail(a.sizes(), 1, {b.size(1)}));
  }
  Shape as = a.sizes(), bs = b.sizes();
  Shape batch = batch_of(as, bs);
  auto folded = [&](const Tensor& x) {
    Shape matrix{x.size(-2), x.size(-1)};
    Tensor full = x.sizes().rank() == batch.rank() + 2 && batch.rank() == 1 && x.size(0) == batch[0]
                      ? x
                      : x.expand(with_tail(batch, 0, matrix));
    return batch.rank() == 1 ? full : full.reshape(with_tail({batch.numel()}, 0, matrix));
  };
  Tensor product = bmm(folded(a), folded(b));
  return batch.rank() == 1 ? product : product.reshape(with_tail(batch, 0, {a.size(-2), b.size(-1)}));
}

namespace {

bool is_one(const Scalar& s) { return s.to_double() == 1; }

bool is_whole(const Scalar& number) { return !number.is_floating() || number.to_double() == double(number.to_int()); }

}  // namespace

Tensor add_scaled(const char* op, const TensorArg& input, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  check(is_differentiable(product.dtype()) || (is_whole(beta) && is_whole(alpha)),
        "{}: beta {} and alpha {} must be whole numbers for operands of {}", op, beta, alpha, product.dtype());
  Tensor scaled = is_one(alpha) ? product : product * alpha;
  if (beta.to_double() == 0) return scaled;
  Tensor out = is_one(beta) ? add(input, scaled) : mul(input, beta) + scaled;
  check(out.dim() == scaled.dim(), "{}: the input {} does not broadcast to {}", op, input.sizes(), scaled.sizes());
  return out;
}

Tensor addmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta, const Scalar& alpha) {
  UserPosition here(input.where());
  return add_scaled("addmm", low(input), mm(a, b), beta, alpha);
}

Tensor baddbmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta,
               const Scalar& alpha) {
  UserPosition here(input.where());
  return add_scaled("baddbmm", low(input), bmm(a, b), beta, alpha);
}

Tensor addmv(const TensorArg& input, const TensorArg& a, const TensorArg& vector, const Scalar& beta,
             const Scalar& alpha) {
  UserPosition here(input.where());
  return add_scaled("addmv", input, mv(a, vector), beta, alpha);
}

Tensor linear(const TensorArg& x_arg, const TensorArg& weight, const Tensor& shift) {
  UserPosition here(x_arg.where());
  // The weight before it is transposed: it is converted once.
  const Tensor x = low(tensor_operand("linear", x_arg)), w = low(tensor_operand("linear", weight)), bias = low(shift);
  check(w.dim() == 1 || w.dim() == 2, "linear: expected a weight [out, in] or [in], got {}", w.sizes());
  check(x.dim() >= 1 && x.size(-1) == w.size(-1), "linear: the last size of the input {} is not that of the weight {}",
        x.sizes(), w.sizes());
  check(!bias.defined() || bias.dtype() == x.dtype(),
        "linear: input and bias have different dtypes {} and {}; convert one with .to()", x.dtype(),
        bias.defined() ? bias.dtype() : x.dtype());
  Tensor y = matmul(x, w.dim() == 2 ? w.t() : w);
  return bias.defined() ? y + bias : y;
}

Tensor tensordot(const TensorArg& a_arg, const TensorArg& b_arg, const IntList& dims_a, const IntList& dims_b) {
  UserPosition here(a_arg.where());
  Tensor a = tensor_operand("tensordot", a_arg), b = tensor_operand("tensordot", b_arg);
  check(dims_a.size() == dims_b.size(), "tensordot: {} dims of the first operand, {} of the second", dims_a.size(),
        dims_b.size());
  // wrap_dim lets dimension 0 of a single number pass.
  check(dims_a.empty() || (a.dim() > 0 && b.dim() > 0), "tensordot: shapes {} and {} have no dimensions {} and {}", a.sizes(),
        b.sizes(), dims_a, dims_b);
  Dim inner = 1;
  std::vector<bool> paired_a(size_t(a.dim())), paired_b(size_t(b.dim()));
  IntList wrapped_a, wrapped_b;
  for (size_t i = 0; i < dims_a.size(); ++i) {
    int64_t da = wrap_dim("tensordot", dims_a[i], a.dim()), db = wrap_dim("tensordot", dims_b[i], b.dim());
    check(!paired_a[size_t(da)] && !paired_b[size_t(db)], "tensordot: a dimension is named twice in {} and {}", dims_a,
          dims_b);
    // A size of 1 broadcasts.
    if (a.size(da).same_as(1) && !b.size(db).same_as(1)) b = b.sum({db}, true);
    if (b.size(db).same_as(1) && !a.size(da).same_as(1)) a = a.sum({da}, true);
    check(a.size(da) == b.size(db), "tensordot: sizes differ in dims {} and {} of shapes {} and {}", da, db, a.sizes(),
          b.sizes());
    paired_a[size_t(da)] = paired_b[size_t(db)] = true;
    wrapped_a.push_back(da);
    wrapped_b.push_back(db);
    inner *= a.size(da);
  }
  IntList order_a, order_b = wrapped_b;
  Shape result;
  Dim rows = 1, columns = 1;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (paired_a[size_t(d)]) continue;
    order_a.push_back(d);
    result.push_back(a.size(d));
    rows *= a.size(d);
  }
  order_a.append(wrapped_a);
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (paired_b[size_t(d)]) continue;
    order_b.push_back(d);
    result.push_back(b.size(d));
    columns *= b.size(d);
  }
  return mm(a.permute(order_a).reshape({rows, inner}), b.permute(order_b).reshape({inner, columns})).reshape(result);
}

OpFamily contract_ops() {
  static const Op* const ops[] = {&op_of<Mm>, &op_of<Bmm>, &convolution_op(), &convolution_weight_grad_op()};
  return ops;
}

}  // namespace sinter
