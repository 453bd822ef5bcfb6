// Norms of vectors and matrices, and what singular values tell: rank, condition, pseudo-inverse, least squares.
#include <algorithm>
#include <cmath>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/linalg_parts.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

using factor::transposed;

struct PinvAttrs {
  std::optional<double> atol, rtol;
  bool hermitian = false;
  SINTER_FIELDS(atol, rtol, hermitian)
};

// The magnitude up to which values count as zero. rtol is the dtype's own unless it or an atol is given.
Tensor threshold_of(const Tensor& a, const Tensor& values, const PinvAttrs& tolerance) {
  Tensor largest = amax_if_any(values, {-1}, true);
  double atol = tolerance.atol.value_or(0);
  double relative = tolerance.rtol.value_or(atol > 0 ? 0 : a.dtype() == kFloat32 ? 0x1p-23 : 0x1p-52);
  Tensor bound = largest * relative;
  if (!tolerance.rtol && atol <= 0) bound = bound * max(a.size(-2), a.size(-1));
  return clamp_min(bound, atol);
}

struct Pinv : Composite {
  static constexpr auto name = "linalg_pinv";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = PinvAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    call.as<PinvAttrs>().hermitian ? check_square(call) : check_matrices(call);
    auto& a = call.inputs[0];
    return {Type{a.dtype, batch_with(a.shape, {a.shape.back(), a.shape[a.shape.size() - 2]}), a.device}};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& a = inputs[0].tensor();
    auto& tolerance = attrs.as<PinvAttrs>();
    auto inverse_of = [&](const Tensor& values) {
      Tensor kept = abs(values) > threshold_of(a, abs(values), tolerance);
      return where(kept, reciprocal(where(kept, values, 1)), 0).unsqueeze(-2);
    };
    if (tolerance.hermitian) {
      auto [values, vectors] = factor::eigh(a);
      return {matmul(vectors * inverse_of(values), transposed(vectors))};
    }
    auto [u, s, vt] = factor::svd(a);
    return {matmul(transposed(vt) * inverse_of(s), transposed(u))};
  }
  // With P the result: -(P K)ᵀ + K Pᵀ - A P K Pᵀ + Pᵀ P (gᵀ - K A), K = gᵀ P; for tall matrices the mirror image.
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      const Tensor &a = c[0].tensor(), &p = c.out();
      Tensor g = transposed(c.grad()), pt = transposed(p);
      if (a.size(-2) <= a.size(-1)) {
        Tensor k = matmul(g, p), kp = matmul(k, pt);
        return kp - transposed(matmul(p, k)) - matmul(a, matmul(p, kp)) + matmul(pt, matmul(p, g - matmul(k, a)));
      }
      Tensor k = matmul(p, g), pk = matmul(pt, k);
      return pk - transposed(matmul(k, p)) + matmul(matmul(g - matmul(a, k), p), pt) - matmul(matmul(pk, p), a);
    });
  }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 2e-3};
  SINTER_SAMPLES("x[4, 2, 2] |", "x[4, 3, 2] |", "x[4, 2, 3] |", "x[6, 1] | rtol=0.001", "x[7, 5, 4] |", "x[0, 3] |",
                 "x[3, 0] |")
};

PinvAttrs tolerance_of(std::optional<double> atol, std::optional<double> rtol, bool hermitian = false) {
  return {atol, rtol, hermitian};
}

// The values of a norm that reduces two dimensions to one number.
Tensor at_end(const Tensor& x, int64_t rows, int64_t columns) { return movedim(x, {rows, columns}, {-2, -1}); }

// The result of a norm over the last two dimensions, with both back in their places as 1.
Tensor put_back(const Tensor& x, int64_t rows, int64_t columns) {
  return x.unsqueeze(std::min(rows, columns)).unsqueeze(std::max(rows, columns));
}

struct MatrixDims {
  Tensor a;
  int64_t rows, columns;
};
MatrixDims matrix_dims(const TensorArg& A, const IntList& dim, std::optional<DType> dtype) {
  Tensor a = tensor_operand("linalg.matrix_norm", A);
  if (dtype) a = a.to(*dtype);
  check(is_differentiable(a.dtype()), "linalg.matrix_norm: expected a floating or complex tensor, got {}", a.dtype());
  check(a.dim() >= 2 && dim.size() == 2, "linalg.matrix_norm: expected two dimensions of at least two, got {} of {}",
        dim, a.sizes());
  int64_t rows = wrap_dim("linalg.matrix_norm", dim[0], a.dim()),
          columns = wrap_dim("linalg.matrix_norm", dim[1], a.dim());
  check(rows != columns, "linalg.matrix_norm: dimension {} is named twice", rows);
  return {a, rows, columns};
}

}  // namespace

namespace linalg {

Tensor pinv(const TensorArg& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  UserPosition here(A.where());
  Tensor a = hermitian ? square_operand("linalg.pinv", A) : matrix_operand("linalg.pinv", A);
  return call<Pinv>({a}, tolerance_of(atol, rtol, hermitian));
}

Tensor matrix_rank(const TensorArg& A, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  UserPosition here(A.where());
  Tensor a = hermitian ? square_operand("linalg.matrix_rank", A) : matrix_operand("linalg.matrix_rank", A);
  Tensor values = hermitian ? abs(factor::eigvalsh(a)) : factor::svdvals(a);
  return sum(values > threshold_of(a, values, tolerance_of(atol, rtol)), {-1});
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const TensorArg& A, const TensorArg& B, std::optional<double> rcond,
                                                 std::string_view driver) {
  UserPosition here(A.where());
  const char* op = "linalg.lstsq";
  const bool ranks = driver != "gels", values_told = driver == "gelsd" || driver == "gelss";
  check(driver == "gels" || driver == "gelsy" || values_told,
        "{}: driver is \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", not \"{}\"", op, driver);
  Tensor a = matrix_operand(op, A), b = tensor_operand(op, B);
  const bool vector = b.dim() == a.dim() - 1;
  if (vector) b = b.unsqueeze(-1);
  check(b.dim() >= 2 && b.size(-2) == a.size(-2), "{}: matrices {} do not fit right-hand sides {}", op, a.sizes(),
        B.sizes());
  std::tie(a, b) = with_common_batch(op, a, b);
  Dim m = a.size(-2), n = a.size(-1);
  Tensor x = matmul(pinv(a, {}, ranks ? rcond : std::optional<double>(0)), b);
  Tensor residuals = zeros({0}, a.options()), rank = zeros({0}, TensorOptions(kInt64).device(a.device())),
         values = residuals;
  if (ranks) rank = matrix_rank(a, {}, rcond);
  if (values_told) values = factor::svdvals(a).detach();
  if (m > n && driver != "gelsy" && (!ranks || all(rank == n).item<bool>()))
    residuals = square(matmul(a, x) - b).sum({-2});
  return {vector ? x.squeeze(-1) : x, residuals, rank, values};
}

Tensor cond(const TensorArg& A, const std::optional<Scalar>& p) {
  UserPosition here(A.where());
  const double order = p ? p->to_double() : 2;
  if (std::abs(order) == 2) {
    Tensor s = factor::svdvals(matrix_operand("linalg.cond", A));
    check(!s.size(-1).same_as(0), "linalg.cond: a matrix without elements has none, got shape {}", A.sizes());
    Tensor first = s.select(-1, 0), last = s.select(-1, -1);
    return order > 0 ? first / last : last / first;
  }
  Tensor a = square_operand("linalg.cond", A);
  auto [inverse, info] = inv_ex(a);
  return where(info > 0, INFINITY, matrix_norm(a, order) * matrix_norm(inverse, order));
}
Tensor cond(const TensorArg& A, std::string_view p) {
  UserPosition here(A.where());
  Tensor a = square_operand("linalg.cond", A);
  auto [inverse, info] = inv_ex(a);
  return where(info > 0, INFINITY, matrix_norm(a, p) * matrix_norm(inverse, p));
}

Tensor vector_norm(const TensorArg& x_arg, const Scalar& ord, const std::optional<IntList>& dim, bool keepdim,
                   std::optional<DType> dtype) {
  UserPosition here(x_arg.where());
  Tensor x = tensor_operand("linalg.vector_norm", x_arg);
  if (dtype) x = x.to(*dtype);
  check(is_differentiable(x.dtype()), "linalg.vector_norm: expected a floating or complex tensor, got {}", x.dtype());
  return sinter::norm(x, ord, dim.value_or(IntList()), keepdim);
}

Tensor matrix_norm(const TensorArg& A, const Scalar& ord, const IntList& dim, bool keepdim,
                   std::optional<DType> dtype) {
  UserPosition here(A.where());
  auto [a, rows, columns] = matrix_dims(A, dim, dtype);
  const double order = ord.to_double(), magnitude = std::abs(order);
  check(magnitude == 1 || magnitude == 2 || std::isinf(magnitude),
        "linalg.matrix_norm: ord is \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf, not {}", ord);
  Tensor out;
  if (magnitude == 2) {
    Tensor s = svdvals(at_end(a, rows, columns));
    out = put_back(order > 0 ? amax(s, {-1}) : amin(s, {-1}), rows, columns);
  } else {
    if (std::isinf(magnitude)) std::swap(rows, columns);
    Tensor sums = sum(abs(a), {rows}, true);
    out = order > 0 ? amax(sums, {columns}, true) : amin(sums, {columns}, true);
  }
  return keepdim ? out : squeeze(out, IntList{rows, columns});
}
Tensor matrix_norm(const TensorArg& A, std::string_view ord, const IntList& dim, bool keepdim,
                   std::optional<DType> dtype) {
  UserPosition here(A.where());
  check(ord == "fro" || ord == "nuc",
        "linalg.matrix_norm: ord is \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf, not \"{}\"", ord);
  auto [a, rows, columns] = matrix_dims(A, dim, dtype);
  if (ord == "fro") return sinter::norm(a, 2, {rows, columns}, keepdim);
  Tensor total = svdvals(at_end(a, rows, columns)).sum({-1});
  return keepdim ? put_back(total, rows, columns) : total;
}

Tensor norm(const TensorArg& x, const std::optional<Scalar>& ord, const std::optional<IntList>& dim, bool keepdim,
            std::optional<DType> dtype) {
  UserPosition here(x.where());
  if (!ord) return vector_norm(x, 2, dim, keepdim, dtype);
  check(dim || x.dim() == 1 || x.dim() == 2,
        "linalg.norm: with an ord and no dim the tensor must be 1-d or 2-d, got shape {}", x.sizes());
  if (dim ? dim->size() == 2 : x.dim() == 2) return matrix_norm(x, *ord, dim.value_or(IntList{0, 1}), keepdim, dtype);
  return vector_norm(x, *ord, dim, keepdim, dtype);
}
Tensor norm(const TensorArg& x, std::string_view ord, const std::optional<IntList>& dim, bool keepdim,
            std::optional<DType> dtype) {
  UserPosition here(x.where());
  check(dim || x.dim() == 2, "linalg.norm: without dim \"{}\" is of a matrix, got shape {}", ord, x.sizes());
  return matrix_norm(x, ord, dim.value_or(IntList{0, 1}), keepdim, dtype);
}

}  // namespace linalg

OpFamily pseudo_inverse_ops() {
  static const Op* const ops[] = {&op_of<Pinv>};
  return ops;
}

}  // namespace sinter
