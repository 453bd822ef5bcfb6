#include "sinter/ops/linalg.h"

#include <algorithm>
#include <cmath>

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/factorizations.h"
#include "sinter/ops/linalg_parts.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/matrices.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

using factor::transposed;

namespace linalg {

// --- factorisations

namespace {

std::tuple<Tensor, Tensor> cholesky_as(const char* op, const TensorArg& A, bool upper, const char* fails) {
  UserPosition here(A.where());
  Tensor a = square_operand(op, A);
  auto [lower, info] = factor::cholesky(upper ? transposed(a) : a, fails);
  return {upper ? transposed(lower) : lower, info};
}

factor::Lu lu_as(const char* op, const TensorArg& A, bool pivot, const char* fails) {
  UserPosition here(A.where());
  check(pivot, "{}: rows are always swapped; pivot = false is not provided", op);
  return factor::lu(matrix_operand(op, A), fails);
}

// The triangle that eigh reads, below the diagonal.
Tensor lower_of(const char* op, const TensorArg& A, std::string_view UPLO) {
  check(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", "{}: UPLO is \"L\" or \"U\", not \"{}\"", op, UPLO);
  Tensor a = square_operand(op, A);
  return UPLO == "L" || UPLO == "l" ? a : transposed(a);
}

// As many orthonormal columns as rows: those of u, and others.
Tensor with_all_columns(const Tensor& u) {
  Dim rows = u.size(-2), columns = u.size(-1);
  if (rows == columns) return u;
  Tensor all = std::get<0>(factor::qr(u.detach(), factor::QrMode::kComplete));
  return cat({u, all.narrow(-1, columns, rows - columns)}, -1);
}

}  // namespace

Tensor cholesky(const TensorArg& A, bool upper) {
  return std::get<0>(cholesky_as("linalg.cholesky", A, upper, "linalg.cholesky"));
}
std::tuple<Tensor, Tensor> cholesky_ex(const TensorArg& A, bool upper, bool check_errors) {
  return cholesky_as("linalg.cholesky_ex", A, upper, check_errors ? "linalg.cholesky_ex" : "");
}

std::tuple<Tensor, Tensor> qr(const TensorArg& A, std::string_view mode) {
  UserPosition here(A.where());
  check(mode == "reduced" || mode == "complete" || mode == "r",
        "linalg.qr: mode is \"reduced\", \"complete\" or \"r\", not \"{}\"", mode);
  Tensor a = matrix_operand("linalg.qr", A);
  auto [q, r] = factor::qr(a, mode == "reduced"    ? factor::QrMode::kReduced
                              : mode == "complete" ? factor::QrMode::kComplete
                                                   : factor::QrMode::kR);
  return {q.defined() ? q : zeros({0}, a.options()), r};
}

std::tuple<Tensor, Tensor> lu_factor(const TensorArg& A, bool pivot) {
  auto f = lu_as("linalg.lu_factor", A, pivot, "linalg.lu_factor");
  return {f.lu, f.pivots};
}
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const TensorArg& A, bool pivot, bool check_errors) {
  auto f = lu_as("linalg.lu_factor_ex", A, pivot, check_errors ? "linalg.lu_factor_ex" : "");
  return {f.lu, f.pivots, f.info};
}
std::tuple<Tensor, Tensor, Tensor> lu(const TensorArg& A, bool pivot) {
  auto f = lu_as("linalg.lu", A, pivot, "");
  return lu_unpack(f.lu, f.pivots);
}

std::tuple<Tensor, Tensor> eigh(const TensorArg& A, std::string_view UPLO) {
  UserPosition here(A.where());
  return factor::eigh(lower_of("linalg.eigh", A, UPLO));
}
Tensor eigvalsh(const TensorArg& A, std::string_view UPLO) {
  UserPosition here(A.where());
  return factor::eigvalsh(lower_of("linalg.eigvalsh", A, UPLO));
}

std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool full_matrices) {
  UserPosition here(A.where());
  auto [u, s, vt] = factor::svd(matrix_operand("linalg.svd", A));
  if (!full_matrices) return {u, s, vt};
  return {with_all_columns(u), s, transposed(with_all_columns(transposed(vt)))};
}
Tensor svdvals(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::svdvals(matrix_operand("linalg.svdvals", A));
}

std::tuple<Tensor, Tensor> eig(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::eig(square_operand("linalg.eig", A, true));
}
Tensor eigvals(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::eigvals(square_operand("linalg.eigvals", A, true));
}

std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const TensorArg& A, bool, bool check_errors) {
  UserPosition here(A.where());
  auto f = factor::ldl(square_operand("linalg.ldl_factor_ex", A), check_errors ? "linalg.ldl_factor_ex" : "");
  return {f.lu, f.pivots, f.info};
}
std::tuple<Tensor, Tensor> ldl_factor(const TensorArg& A, bool) {
  UserPosition here(A.where());
  auto f = factor::ldl(square_operand("linalg.ldl_factor", A), "linalg.ldl_factor");
  return {f.lu, f.pivots};
}
Tensor ldl_solve(const TensorArg& LD, const TensorArg& pivots_arg, const TensorArg& B, bool) {
  UserPosition here(LD.where());
  const char* op = "linalg.ldl_solve";
  Tensor ld = square_operand(op, LD), b = matrix_operand(op, B), pivots = tensor_operand(op, pivots_arg);
  check(b.size(-2) == ld.size(-1), "{}: factors {} do not fit right-hand sides {}", op, ld.sizes(), b.sizes());
  check(is_integral(pivots.dtype()) && pivots.dim() == ld.dim() - 1 && pivots.size(-1) == ld.size(-1),
        "{}: pivots {} {} do not fit factors {}", op, pivots.dtype(), pivots.sizes(), ld.sizes());
  std::tie(ld, b) = with_common_batch(op, ld, b);
  return factor::ldl_solve(ld, pivots.to(kInt32).expand(batch_with(ld.sizes(), {ld.size(-1)})), b);
}

std::tuple<Tensor, Tensor> polar(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::polar(matrix_operand("linalg.polar", A));
}

namespace {

// What reflections are stored in: their vectors as columns, beginning with a 1, and their factors.
std::pair<Tensor, Tensor> reflections_of(const char* op, const TensorArg& A, const TensorArg& tau_arg) {
  Tensor a = matrix_operand(op, A, true), tau = tensor_operand(op, tau_arg);
  check(
      tau.dim() == a.dim() - 1 && tau.size(-1) <= a.size(-1) && tau.size(-1) <= a.size(-2) && tau.dtype() == a.dtype(),
      "{}: {} of {} numbers do not fit vectors {} of {}", op, tau.sizes(), tau.dtype(), a.sizes(), a.dtype());
  return {a.tril(-1) + eye(a.size(-2), a.size(-1), a.options()), tau};
}

// What the reflection makes of x, or with its conjugate factor.
Tensor reflected(const Tensor& x, const Tensor& vectors, const Tensor& tau, int64_t k, bool conjugate) {
  Tensor v = vectors.narrow(-1, k, 1), factor = tau.narrow(-1, k, 1).unsqueeze(-1);
  return x - (conjugate ? conj(factor) : factor) * matmul(v, matmul(conj(transposed(v)), x));
}

}  // namespace

Tensor householder_product(const TensorArg& A, const TensorArg& tau_arg) {
  UserPosition here(A.where());
  const char* op = "linalg.householder_product";
  auto [vectors, tau] = reflections_of(op, A, tau_arg);
  check(vectors.size(-1) <= vectors.size(-2), "{}: vectors {} have more columns than rows", op, vectors.sizes());
  Tensor out = eye(vectors.size(-2), vectors.size(-1), vectors.options()).expand(vectors.sizes());
  for (int64_t k = int64_t(tau.size(-1)); k-- > 0;) out = reflected(out, vectors, tau, k, false);
  return out;
}

// --- functions of a matrix

Tensor matrix_power(const TensorArg& A, int64_t n) {
  UserPosition here(A.where());
  Tensor a = tensor_operand("linalg.matrix_power", A);
  check(a.dim() >= 2 && a.size(-2) == a.size(-1), "linalg.matrix_power: the matrices must be square, got shape {}",
        a.sizes());
  if (n < 0) a = inv(a), n = -n;
  if (n == 0) return eye(a.size(-1), a.options()).expand(a.sizes()).clone();
  if (n == 1) return a.clone();
  Tensor out;
  for (; n > 0; n /= 2) {
    if (n % 2) out = out.defined() ? matmul(out, a) : a;
    if (n > 1) a = matmul(a, a);
  }
  return out;
}

Tensor matrix_exp(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::matrix_exp(square_operand("linalg.matrix_exp", A));
}

Tensor matrix_sqrth(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::matrix_sqrth(square_operand("linalg.matrix_sqrth", A));
}

// --- products

namespace {

// Where to cut a chain of matrices of sizes[i] x sizes[i + 1] for the fewest multiplications.
Tensor product_of(const TensorList& tensors, const std::vector<std::vector<size_t>>& cuts, size_t first, size_t last) {
  if (first == last) return tensors[first];
  size_t cut = cuts[first][last];
  return mm(product_of(tensors, cuts, first, cut), product_of(tensors, cuts, cut + 1, last));
}

Tensor cheapest_product(const TensorList& tensors) {
  const size_t n = tensors.size();
  std::vector<double> sizes{double(int64_t(tensors[0].size(0)))};
  for (auto& t : tensors) sizes.push_back(double(int64_t(t.size(1))));
  std::vector cost(n, std::vector<double>(n, 0.0));
  std::vector cuts(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost[i][j] = INFINITY;
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (c < cost[i][j]) cost[i][j] = c, cuts[i][j] = k;
      }
    }
  return product_of(tensors, cuts, 0, n - 1);
}

}  // namespace

Tensor multi_dot(const TensorList& tensors, Where where) {
  UserPosition here(where);
  check(tensors.size() >= 2, "linalg.multi_dot: expected at least two tensors, got {}", tensors.size());
  TensorList matrices = tensors;
  const bool from_vector = tensors.front().dim() == 1, to_vector = tensors.back().dim() == 1;
  if (from_vector) matrices.front() = matrices.front().unsqueeze(0);
  if (to_vector) matrices.back() = matrices.back().unsqueeze(1);
  for (size_t i = 0; i < matrices.size(); ++i) {
    check(matrices[i].dim() == 2, "linalg.multi_dot: tensor {} is no matrix, its shape is {}", i, tensors[i].sizes());
    check(i == 0 || matrices[i - 1].size(1) == matrices[i].size(0), "linalg.multi_dot: shapes {} and {} do not fit",
          tensors[i ? i - 1 : 0].sizes(), tensors[i].sizes());
  }
  Tensor out = cheapest_product(matrices);
  if (to_vector) out = out.squeeze(1);
  return from_vector ? out.squeeze(0) : out;
}

Tensor cross(const TensorArg& a_arg, const TensorArg& b_arg, int64_t dim) {
  UserPosition here(a_arg.where());
  const Tensor &a = tensor_operand("linalg.cross", a_arg), &b = tensor_operand("linalg.cross", b_arg);
  check(a.dim() == b.dim(), "linalg.cross: shapes {} and {} differ in rank", a.sizes(), b.sizes());
  int64_t d = wrap_dim("linalg.cross", dim, a.dim());
  check(a.size(d) == 3 && b.size(d) == 3, "linalg.cross: dimension {} of {} and {} is not of size 3", dim, a.sizes(),
        b.sizes());
  return a.roll(-1, d) * b.roll(-2, d) - a.roll(-2, d) * b.roll(-1, d);
}

Tensor vecdot(const TensorArg& a, const TensorArg& b, int64_t dim) {
  UserPosition here(a.where());
  const Tensor &x = tensor_operand("linalg.vecdot", a), &y = tensor_operand("linalg.vecdot", b);
  check(x.dtype() == y.dtype(), "linalg.vecdot: dtypes {} and {} differ; convert one with .to()", x.dtype(), y.dtype());
  Tensor product = conj(x) * y;
  return sum(product, {dim}, false, product.dtype());
}

Tensor vander(const TensorArg& x_arg, std::optional<int64_t> N) {
  UserPosition here(x_arg.where());
  Tensor x = tensor_operand("linalg.vander", x_arg);
  if (x.dim() == 0) x = x.reshape({1});
  check(x.dim() >= 1 && N.value_or(1) >= 1, "linalg.vander: expected a vector and N >= 1, got shape {} and N = {}",
        x.sizes(), N.value_or(1));
  Dim count = N ? Dim(*N) : x.size(-1);
  Shape rest = x.sizes();
  rest.push_back(count - 1);
  Tensor column = x.unsqueeze(-1), base = is_differentiable(x.dtype()) ? column : column.to(kInt64);
  return cumprod(cat({ones_like(base), base.expand(rest)}, -1), -1);
}

Tensor diagonal(const TensorArg& A, int64_t offset, int64_t dim1, int64_t dim2) {
  return sinter::diagonal(A, offset, dim1, dim2);
}

// --- tensors as matrices

Tensor tensorinv(const TensorArg& A, int64_t ind) {
  UserPosition here(A.where());
  const Tensor& a = tensor_operand("linalg.tensorinv", A);
  check(ind > 0 && ind <= a.dim(), "linalg.tensorinv: ind {} must be positive and at most the rank of {}", ind,
        a.sizes());
  const Shape sizes = a.sizes();
  Shape front(sizes.begin(), sizes.begin() + ind), back(sizes.begin() + ind, sizes.end()), out = back;
  check(front.numel() == back.numel(),
        "linalg.tensorinv: the first {} sizes of {} and the rest have different products", ind, a.sizes());
  out.append(front);
  return inv(a.reshape({front.numel(), back.numel()})).reshape(out);
}

Tensor tensorsolve(const TensorArg& A, const TensorArg& B, const std::optional<IntList>& dims) {
  UserPosition here(A.where());
  Tensor a = tensor_operand("linalg.tensorsolve", A);
  const Tensor& b = tensor_operand("linalg.tensorsolve", B);
  if (dims) {
    IntList last;
    for (int64_t d = a.dim() - int64_t(dims->size()); d < a.dim(); ++d) last.push_back(d);
    a = movedim(a, *dims, last);
  }
  check(a.dim() >= b.dim(), "linalg.tensorsolve: shapes {} and {} do not fit", a.sizes(), b.sizes());
  const Shape sizes = a.sizes();
  Shape result(sizes.begin() + b.dim(), sizes.end());
  check(result.numel() == b.numel(), "linalg.tensorsolve: shapes {} and {} do not fit", a.sizes(), b.sizes());
  return solve(a.reshape({b.numel(), result.numel()}), b.reshape({b.numel()})).reshape(result);
}

}  // namespace linalg

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const TensorArg& LU, const TensorArg& pivots, bool unpack_data, bool unpack_pivots) {
  UserPosition here(LU.where());
  Tensor lu = matrix_operand("lu_unpack", LU), swaps = tensor_operand("lu_unpack", pivots);
  Dim m = lu.size(-2), n = lu.size(-1), k = min(m, n);
  check(swaps.dim() == lu.dim() - 1 && swaps.size(-1) == k, "lu_unpack: pivots {} do not fit matrices {}", swaps.sizes(), lu.sizes());
  Tensor permutation, lower, upper;
  if (unpack_pivots) {
    Tensor rows = eye(m, lu.options()).expand(batch_with(lu.sizes(), {m, m}));
    permutation = factor::permuted(rows, swaps, false);
  }
  if (unpack_data) {
    lower = lu.narrow(-1, 0, k).tril(-1) + eye(m, k, lu.options());
    upper = lu.narrow(-2, 0, k).triu();
  }
  return {permutation, lower, upper};
}
Tensor lu_solve(const TensorArg& B, const TensorArg& LU, const TensorArg& pivots) { return linalg::lu_solve(LU, pivots, B); }
Tensor frobenius_norm(const TensorArg& x, const IntList& dim, bool keepdim) {
  return linalg::vector_norm(x, 2, dim.empty() ? std::nullopt : std::optional(dim), keepdim);
}
Tensor nuclear_norm(const TensorArg& A, bool keepdim) { return linalg::matrix_norm(A, "nuc", {-2, -1}, keepdim); }

// --- older names

Tensor vander(const TensorArg& x, std::optional<int64_t> N, bool increasing) {
  UserPosition here(x.where());
  Tensor powers = linalg::vander(x, N);
  return increasing ? powers : powers.flip(-1);
}
Tensor cholesky(const TensorArg& A, bool upper) { return linalg::cholesky(A, upper); }
Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, bool upper) {
  UserPosition here(B.where());
  Tensor b = matrix_operand("cholesky_solve", B), l = square_operand("cholesky_solve", L);
  check(b.size(-2) == l.size(-1), "cholesky_solve: factors {} do not fit right-hand sides {}", l.sizes(), b.sizes());
  std::tie(l, b) = with_common_batch("cholesky_solve", l, b);
  if (upper) l = transposed(l);
  return factor::solve_triangular(transposed(l), factor::solve_triangular(l, b, false), true);
}
Tensor cholesky_inverse(const TensorArg& L, bool upper) {
  UserPosition here(L.where());
  Tensor l = square_operand("cholesky_inverse", L);
  return cholesky_solve(factor::identity_like(l), l, upper);
}
std::tuple<Tensor, Tensor> qr(const TensorArg& A, bool some) { return linalg::qr(A, some ? "reduced" : "complete"); }
std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool some, bool compute_uv) {
  UserPosition here(A.where());
  if (compute_uv) {
    auto [u, s, vt] = linalg::svd(A, !some);
    return {u, s, transposed(vt)};
  }
  Tensor a = matrix_operand("svd", A);
  auto square = [&](const Dim& n) { return zeros(batch_with(a.sizes(), {n, n}), a.options()); };
  return {square(a.size(-2)), linalg::svdvals(a), square(a.size(-1))};
}
Tensor pinverse(const TensorArg& A, double rcond) { return linalg::pinv(A, {}, rcond); }
Tensor matrix_power(const TensorArg& A, int64_t n) { return linalg::matrix_power(A, n); }
Tensor matrix_exp(const TensorArg& A) { return linalg::matrix_exp(A); }
Tensor orgqr(const TensorArg& A, const TensorArg& tau) { return linalg::householder_product(A, tau); }
std::tuple<Tensor, Tensor> geqrf(const TensorArg& A) {
  UserPosition here(A.where());
  return factor::geqrf(matrix_operand("geqrf", A));
}
Tensor ormqr(const TensorArg& A, const TensorArg& tau_arg, const TensorArg& C, bool left, bool transpose) {
  UserPosition here(A.where());
  auto [vectors, tau] = linalg::reflections_of("ormqr", A, tau_arg);
  Tensor c = matrix_operand("ormqr", C, true);
  check(c.size(left ? -2 : -1) == vectors.size(-2), "ormqr: reflections {} do not fit {} {}", vectors.sizes(),
        left ? "rows of" : "columns of", c.sizes());
  // C Q is the adjoint of Qᴴ Cᴴ.
  const bool adjoint = left == transpose;
  if (!left) c = conj(transposed(c));
  const int64_t count = int64_t(tau.size(-1));
  for (int64_t n = 0; n < count; ++n) c = linalg::reflected(c, vectors, tau, adjoint ? n : count - 1 - n, adjoint);
  return left ? c : conj(transposed(c));
}
Tensor chain_matmul(const TensorList& matrices, Where where) {
  if (matrices.size() == 1) return matrices[0];
  return linalg::multi_dot(matrices, where);
}

}  // namespace sinter
