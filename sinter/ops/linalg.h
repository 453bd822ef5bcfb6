#pragma once
// Dense linear algebra on the matrices in the last two dimensions, batched over those before, and distances. Matrices
// are f32 or f64; those of solve, inv, det, slogdet, eig and householder_product may be complex. LAPACK
// (libopenblas0-pthread) is used where it is installed; tensors of an NVIDIA GPU are factored by cuSOLVER, many small
// matrices on the host.
#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

namespace linalg {

// --- systems. A singular matrix is an Error that names the batch element; the _ex forms tell it in their last result, `info`,
// unless check_errors

// X of A X = B, or of X A = B. B may be a vector for each matrix.
Tensor solve(const TensorArg& A, const TensorArg& B, bool left = true);
std::tuple<Tensor, Tensor> solve_ex(const TensorArg& A, const TensorArg& B, bool left = true,
                                    bool check_errors = false);
// The same where A is a triangle; zeros on its diagonal give infinities.
Tensor solve_triangular(const TensorArg& A, const TensorArg& B, bool upper, bool left = true,
                        bool unitriangular = false);
// A⁻¹.
Tensor inv(const TensorArg& A);
std::tuple<Tensor, Tensor> inv_ex(const TensorArg& A, bool check_errors = false);
// The determinant; also as its sign and the logarithm of its magnitude.
Tensor det(const TensorArg& A);
std::tuple<Tensor, Tensor> slogdet(const TensorArg& A);
// X that minimises |A X - B|, the shortest one; squared residuals, ranks and singular values where the driver ("gels", "gelsy",
// "gelsd", "gelss") tells them, else empty. Residuals also need full rank, which is read on the host.
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const TensorArg& A, const TensorArg& B,
                                                 std::optional<double> rcond = {}, std::string_view driver = "gelsy");
// The pseudo-inverse: singular values up to max(atol, rtol * the largest) count as zero; rtol is max(m, n) eps by default.
Tensor pinv(const TensorArg& A, std::optional<double> atol = {}, std::optional<double> rtol = {},
            bool hermitian = false);
// A single tolerance is the relative one, as LibTorch has it.
template <std::floating_point Real>
Tensor pinv(const TensorArg& A, Real rcond, GivenBool hermitian = false) {
  return pinv(A, {}, double(rcond), hermitian.value);
}
// A⁻¹ of a tensor seen as a matrix of its first `ind` dimensions and the rest.
Tensor tensorinv(const TensorArg& A, int64_t ind = 2);
// X of tensordot(A, X) = B; `dims` of A are moved to its end first.
Tensor tensorsolve(const TensorArg& A, const TensorArg& B, const std::optional<IntList>& dims = {});

// --- factorisations. Signs of eigenvectors and singular vectors, which are open, are such that the first large element of an
// eigenvector, or of a column of U, is positive

// L with A = L Lᵀ, or Lᵀ if upper, from the lower (upper) triangle of A. NaN where `info` is not zero.
Tensor cholesky(const TensorArg& A, bool upper = false);
std::tuple<Tensor, Tensor> cholesky_ex(const TensorArg& A, bool upper = false, bool check_errors = false);
// Q and R with A = Q R: "reduced", "complete" (square Q) or "r" (no Q: an empty tensor).
std::tuple<Tensor, Tensor> qr(const TensorArg& A, std::string_view mode = "reduced");
// L and U in one matrix and the rows swapped, from 1. A zero on the diagonal of U is an Error, or told by `info`.
std::tuple<Tensor, Tensor> lu_factor(const TensorArg& A, bool pivot = true);
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const TensorArg& A, bool pivot = true, bool check_errors = false);
// P, L, U with A = P L U.
std::tuple<Tensor, Tensor, Tensor> lu(const TensorArg& A, bool pivot = true);
// X of A X = B (Aᵀ X = B if adjoint, X A = B if not left) from lu_factor's results.
Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, const TensorArg& B, bool left = true,
                bool adjoint = false);
// Eigenvalues and eigenvectors (columns of length 1) of any square matrix, both complex, in no particular order. Of
// each vector the first large element is real and positive; PyTorch's phases are others, and it refuses gradients that
// depend on them.
std::tuple<Tensor, Tensor> eig(const TensorArg& A);
Tensor eigvals(const TensorArg& A);
// Eigenvalues of a symmetric matrix in ascending order, and eigenvectors, from one triangle.
std::tuple<Tensor, Tensor> eigh(const TensorArg& A, std::string_view UPLO = "L");
Tensor eigvalsh(const TensorArg& A, std::string_view UPLO = "L");
// U, S, Vᵀ with A = U diag(S) Vᵀ, S descending; with full_matrices U and Vᵀ are square.
std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool full_matrices = true);
Tensor svdvals(const TensorArg& A);
// The columns of the product of the reflections 1 - tau v vᴴ that are stored below A's diagonal.
Tensor householder_product(const TensorArg& A, const TensorArg& tau);
// L and D of the symmetric matrix A = P L D Lᵀ Pᵀ in one lower triangle, D of blocks of one or two rows, and LAPACK's
// pivots, from A's lower triangle; no gradients, as in PyTorch. `hermitian` makes no difference for real matrices. A
// zero in D is an Error, or told by `info`.
std::tuple<Tensor, Tensor> ldl_factor(const TensorArg& A, bool hermitian = false);
std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const TensorArg& A, bool hermitian = false, bool check_errors = false);
// X of A X = B from ldl_factor's results.
Tensor ldl_solve(const TensorArg& LD, const TensorArg& pivots, const TensorArg& B, bool hermitian = false);
// U and H with A = U H: U has orthonormal columns, H is symmetric and has no negative eigenvalues. As many rows as
// columns or more.
std::tuple<Tensor, Tensor> polar(const TensorArg& A);

// --- functions of a matrix

// A times itself n times; n < 0 inverts.
Tensor matrix_power(const TensorArg& A, int64_t n);
// 1 + A + A²/2 + …
Tensor matrix_exp(const TensorArg& A);
// The symmetric X without negative eigenvalues with X X = A, from the lower triangle of such an A; negative eigenvalues
// count as 0.
Tensor matrix_sqrth(const TensorArg& A);
// How many singular values (magnitudes of eigenvalues if hermitian) exceed max(atol, rtol * the largest).
Tensor matrix_rank(const TensorArg& A, std::optional<double> atol = {}, std::optional<double> rtol = {},
                   bool hermitian = false);
// |A| |A⁻¹| in a matrix norm: 2 (by singular values) unless told otherwise. Infinite for a singular matrix.
Tensor cond(const TensorArg& A, const std::optional<Scalar>& p = {});
Tensor cond(const TensorArg& A, std::string_view p);

// --- norms

// (Σ|x|^ord)^(1/ord) over `dim` or all; ord may be 0 or infinite.
Tensor vector_norm(const TensorArg& x, const Scalar& ord = 2, const std::optional<IntList>& dim = {},
                   bool keepdim = false, std::optional<DType> dtype = {});
// "fro", "nuc", or 1, -1, inf, -inf (sums of columns or rows), 2, -2 (singular values).
Tensor matrix_norm(const TensorArg& A, const Scalar& ord, const IntList& dim = {-2, -1}, bool keepdim = false,
                   std::optional<DType> dtype = {});
Tensor matrix_norm(const TensorArg& A, std::string_view ord = "fro", const IntList& dim = {-2, -1},
                   bool keepdim = false, std::optional<DType> dtype = {});
// A vector norm, or with an ord over two dimensions a matrix norm. Without ord: the 2-norm of all elements.
Tensor norm(const TensorArg& x, const std::optional<Scalar>& ord = {}, const std::optional<IntList>& dim = {},
            bool keepdim = false, std::optional<DType> dtype = {});
Tensor norm(const TensorArg& x, std::string_view ord, const std::optional<IntList>& dim = {}, bool keepdim = false,
            std::optional<DType> dtype = {});

// --- products

// The product of matrices in the cheapest order; the first and the last may be vectors.
Tensor multi_dot(const TensorList& tensors, Where where = Where::current());
// The product at right angles of vectors of 3 along a dimension.
Tensor cross(const TensorArg& a, const TensorArg& b, int64_t dim = -1);
// Σ a b along a dimension.
Tensor vecdot(const TensorArg& a, const TensorArg& b, int64_t dim = -1);
// Powers 0 … N - 1 of each element (as many as there are elements by default), as rows.
Tensor vander(const TensorArg& x, std::optional<int64_t> N = {});
Tensor diagonal(const TensorArg& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);

}  // namespace linalg

// --- PyTorch's older names of the same

// P, L and U of the factors in one matrix; undefined what is not to be unpacked.
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const TensorArg& LU, const TensorArg& pivots, bool unpack_data = true,
                                             bool unpack_pivots = true);  // no method
// X of A X = B from the factors of A.
Tensor lu_solve(const TensorArg& B, const TensorArg& LU, const TensorArg& pivots);  // no method
// The root of the sum of squares of all elements, or of those along these dimensions.
Tensor frobenius_norm(const TensorArg& x, const IntList& dim = {}, bool keepdim = false);  // no method
// The sum of the singular values.
Tensor nuclear_norm(const TensorArg& A, bool keepdim = false);  // no method
Tensor inverse(const TensorArg& A);
Tensor det(const TensorArg& A);
std::tuple<Tensor, Tensor> slogdet(const TensorArg& A);
// The powers as columns from the greatest down, unless increasing.
Tensor vander(const TensorArg& x, std::optional<int64_t> N = {}, bool increasing = false);  // no method
// log(det(A)): NaN where the determinant is negative.
Tensor logdet(const TensorArg& A);
Tensor cholesky(const TensorArg& A, bool upper = false);
// X of A X = B from the factor L (or its transpose) of A.
Tensor cholesky_solve(const TensorArg& B, const TensorArg& L, bool upper = false);
Tensor cholesky_inverse(const TensorArg& L, bool upper = false);
std::tuple<Tensor, Tensor> qr(const TensorArg& A, bool some = true);
// U, S and V, not transposed. Without compute_uv, U and V are zeros.
std::tuple<Tensor, Tensor, Tensor> svd(const TensorArg& A, bool some = true, bool compute_uv = true);
Tensor pinverse(const TensorArg& A, double rcond = 1e-15);
// X of A X = B for a triangle of A, and A.
std::tuple<Tensor, Tensor> triangular_solve(const TensorArg& B, const TensorArg& A, bool upper = true,
                                            bool transpose = false, bool unitriangular = false);
Tensor matrix_power(const TensorArg& A, int64_t n);
Tensor matrix_exp(const TensorArg& A);
Tensor orgqr(const TensorArg& A, const TensorArg& tau);
// R in the upper triangle, and below it and in tau the reflections whose product is Q: what householder_product and
// ormqr take. No gradients, as in PyTorch.
std::tuple<Tensor, Tensor> geqrf(const TensorArg& A);
// Q C for the product Q of those reflections, all of its columns: Qᴴ C if transpose, C Q or C Qᴴ if not left.
Tensor ormqr(const TensorArg& A, const TensorArg& tau, const TensorArg& C, bool left = true, bool transpose = false);

// --- products

Tensor ger(const TensorArg& a, const TensorArg& b);
Tensor chain_matmul(const TensorList& matrices, Where where = Where::current());
// The sum of a matrix's diagonal.
Tensor trace(const TensorArg& A);
// As linalg::cross; without dim along the first dimension of size 3.
Tensor cross(const TensorArg& a, const TensorArg& b, std::optional<int64_t> dim = {});
// All products of an element of a and one of b, in blocks.
Tensor kron(const TensorArg& a, const TensorArg& b);
// x1 weight[o] x2 + bias for every output o.
Tensor bilinear(const TensorArg& x1, const TensorArg& x2, const Tensor& weight, const Tensor& bias = {});  // no method
// The norms of the slices along a dimension, which keep their places; of all elements for dim = -1.
Tensor norm_except_dim(const TensorArg& x, int64_t pow = 2, int64_t dim = 0);  // no method
// beta * input + alpha * outer(a, b).
Tensor addr(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta = 1,
            const Scalar& alpha = 1);  // in place too
// beta * input + alpha * the sum of the products of a batch.
Tensor addbmm(const TensorArg& input, const TensorArg& a, const TensorArg& b, const Scalar& beta = 1,
              const Scalar& alpha = 1);  // in place too
// As dot, of complex vectors with the conjugate of the first.
Tensor vdot(const TensorArg& a, const TensorArg& b);
// Sums of products over the last dimensions; a number scales.
Tensor inner(const TensorArg& a, const TensorArg& b);
// The last `dims` dimensions of a with the first of b.
Tensor tensordot(const TensorArg& a, const TensorArg& b, int64_t dims = 2);

// --- distances

// p-norms of differences of every row of a [..., n, d] and every row of b [..., m, d]. compute_mode 1 always, 2 never takes
// Euclidean distances by a matrix product; 0 does when n or m exceeds 25.
Tensor cdist(const TensorArg& a, const TensorArg& b, double p = 2, std::optional<int64_t> compute_mode = {});
// The same of all pairs of rows of one matrix, each once.
Tensor pdist(const TensorArg& x, double p = 2);
// The p-norm of a - b.
Tensor dist(const TensorArg& a, const TensorArg& b, const Scalar& p = 2);
// Slices along a dimension scaled down to a p-norm of at most maxnorm.
Tensor renorm(const TensorArg& x, const Scalar& p, int64_t dim, const Scalar& maxnorm);  // in place too

}  // namespace sinter SINTER_API
