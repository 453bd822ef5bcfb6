// Distances between vectors, and the products of linalg.h that need no factorisation.
#include <cmath>

#include "sinter/ops/add_scaled.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/linalg_parts.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

// --- distances

namespace {

// From |a|² + |b|² - 2ab; equal rows are at a distance of 0, whose gradient is 0.
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  Tensor of_a = square(a).sum({-1}, true), of_b = square(b).sum({-1}, true);
  Tensor squares = of_a + of_b.transpose(-2, -1) - 2 * matmul(a, b.transpose(-2, -1));
  Tensor zero = squares <= 0;
  return where(zero, 0, sqrt(where(zero, 1, squares)));
}

}  // namespace

Tensor cdist(const TensorArg& a_arg, const TensorArg& b_arg, double p, std::optional<int64_t> compute_mode) {
  UserPosition here(a_arg.where());
  Tensor a = matrix_operand("cdist", a_arg), b = matrix_operand("cdist", b_arg);
  check(p >= 0, "cdist: p = {} must not be negative", p);
  const int64_t mode = compute_mode.value_or(0);
  check(mode >= 0 && mode <= 2, "cdist: compute_mode is 0, 1 or 2, not {}", mode);
  check(a.size(-1) == b.size(-1), "cdist: rows of {} and {} differ in length", a.sizes(), b.sizes());
  std::tie(a, b) = with_common_batch("cdist", a, b);
  const Dim limit = 25;
  if (p == 2 && mode != 2 && (mode == 1 || a.size(-2) > limit || b.size(-2) > limit)) return euclidean_by_product(a, b);
  return norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, {-1});
}

Tensor pdist(const TensorArg& x_arg, double p) {
  UserPosition here(x_arg.where());
  Tensor x = matrix_operand("pdist", x_arg);
  check(x.dim() == 2, "pdist: expected a matrix, got shape {}", x.sizes());
  check(p >= 0, "pdist: p = {} must not be negative", p);
  std::vector<int64_t> first, second;
  const int64_t n = x.size(0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) first.push_back(i), second.push_back(j);
  auto rows = [&](const std::vector<int64_t>& which) {
    return index_select(x, 0, from_data(which, {int64_t(which.size())}).to(x.device()));
  };
  return norm(rows(first) - rows(second), p, {-1});
}

Tensor dist(const TensorArg& a, const TensorArg& b, const Scalar& p) {
  UserPosition here(a.where());
  return norm(sub(a, b), p);
}

Tensor renorm(const TensorArg& x_arg, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  UserPosition here(x_arg.where());
  const Tensor& x = tensor_operand("renorm", x_arg);
  check(is_floating(x.dtype()) && x.dim() >= 2,
        "renorm: expected a floating tensor of at least two dimensions, got {} {}", x.dtype(), x.sizes());
  check(p.to_double() > 0 && maxnorm.to_double() >= 0, "renorm: p = {} must be positive and maxnorm = {} not negative",
        p, maxnorm);
  int64_t kept = wrap_dim("renorm", dim, x.dim());
  IntList others;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != kept) others.push_back(d);
  Tensor wide = widened(x), length = norm(wide, p, others, true);
  Tensor factor = where(length > maxnorm, maxnorm / (length + 1e-7), 1);
  return narrowed(wide * factor, x.dtype());
}

// --- products

Tensor ger(const TensorArg& a, const TensorArg& b) { return outer(a, b); }

Tensor trace(const TensorArg& A) {
  UserPosition here(A.where());
  const Tensor& a = tensor_operand("trace", A);
  check(a.dim() == 2, "trace: expected a matrix, got shape {}", a.sizes());
  return a.diagonal().sum();
}

Tensor cross(const TensorArg& a, const TensorArg& b, std::optional<int64_t> dim) {
  UserPosition here(a.where());
  const Tensor& x = tensor_operand("cross", a);
  for (int64_t d = 0; d < x.dim() && !dim; ++d)
    if (x.size(d) == 3) dim = d;
  check(dim.has_value(), "cross: no dimension of {} has size 3", x.sizes());
  return linalg::cross(a, b, *dim);
}

Tensor kron(const TensorArg& a_arg, const TensorArg& b_arg) {
  UserPosition here(a_arg.where());
  const Tensor &a = tensor_operand("kron", a_arg), &b = tensor_operand("kron", b_arg);
  const int64_t rank = std::max(a.dim(), b.dim());
  auto size_of = [&](const Tensor& x, int64_t d) { return d < rank - x.dim() ? Dim(1) : x.size(d - (rank - x.dim())); };
  Shape of_a, of_b, result;
  for (int64_t d = 0; d < rank; ++d) {
    of_a.append(Shape{size_of(a, d), 1});
    of_b.append(Shape{1, size_of(b, d)});
    result.push_back(size_of(a, d) * size_of(b, d));
  }
  return (a.reshape(of_a) * b.reshape(of_b)).reshape(result);
}

Tensor addr(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta, const Scalar& alpha) {
  UserPosition here(input.where());
  const Tensor product = outer(a, b);
  // Of truth values sums are "or", and factors whether there is a summand.
  if (product.dtype() == kBool && input.dtype() == kBool) {
    Tensor sum = alpha.to_double() == 0 ? zeros_like(product) : product;
    return beta.to_double() == 0 ? sum : logical_or(input, sum);
  }
  return add_scaled("addr", input, product, beta, alpha);
}
Tensor addbmm(const TensorArg& input, const TensorArg& a_arg, const TensorArg& b_arg, const Scalar& beta,
              const Scalar& alpha) {
  UserPosition here(input.where());
  const Tensor &a = tensor_operand("addbmm", a_arg), &b = tensor_operand("addbmm", b_arg);
  check(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
        "addbmm: batches {} and {} of matrices do not fit", a.sizes(), b.sizes());
  // The batch is one more dimension to sum over.
  return add_scaled("addbmm", input, tensordot(a, b, {0, 2}, {0, 1}), beta, alpha);
}
Tensor bilinear(const TensorArg& x1, const TensorArg& x2, const Tensor& weight, const Tensor& bias) {
  UserPosition here(x1.where());
  Tensor y = einsum("...i,oij,...j->...o", {x1.tensor(), weight, x2.tensor()});
  return bias.defined() ? y + bias : y;
}
Tensor norm_except_dim(const TensorArg& x, int64_t pow, int64_t dim) {
  UserPosition here(x.where());
  check(dim >= -1 && dim < x.dim(), "norm_except_dim: {} is no dimension of shape {}, nor -1", dim, x.sizes());
  if (dim == -1) return norm(x, pow);
  IntList others;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim) others.push_back(d);
  return others.empty() ? abs(x) : norm(x, pow, others, true);
}
Tensor vdot(const TensorArg& a, const TensorArg& b) { return dot({conj(a), a.where()}, b); }
Tensor inner(const TensorArg& a, const TensorArg& b) {
  UserPosition here(a.where());
  if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
  check(a.size(-1) == b.size(-1), "inner: last sizes of {} and {} differ", a.sizes(), b.sizes());
  return tensordot(a, b, {-1}, {-1});
}
Tensor tensordot(const TensorArg& a, const TensorArg& b, int64_t dims) {
  UserPosition here(a.where());
  check(dims >= 0 && dims <= a.dim() && dims <= b.dim(),
        "tensordot: shapes {} and {} have no {} dimensions to sum over", a.sizes(), b.sizes(), dims);
  IntList last, first;
  for (int64_t d = 0; d < dims; ++d) last.push_back(a.dim() - dims + d), first.push_back(d);
  return tensordot(a, b, last, first);
}

}  // namespace sinter
