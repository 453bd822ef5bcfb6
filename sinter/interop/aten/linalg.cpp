// Linear algebra.
#include "sinter/ops/linalg.h"
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/reduce.h"

namespace sinter::interop {

namespace {

// A tolerance given as a tensor, which is the same for all matrices.
MaybeReal single(const Tensor& tolerance) {
  if (!tolerance.defined()) return std::nullopt;
  check(tolerance.numel() == 1, "one tolerance for each matrix, {}, is not supported; give a single one",
        tolerance.sizes());
  return tolerance.item<double>();
}

// In place of what was not asked for.
Tensor nothing_like(In A) { return zeros({0}, A.tensor().options()); }

}  // namespace

std::span<const Function> linalg_functions() {
  static const Function kList[] = {
      {"linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
       [](In A, In B, bool left) { return linalg::solve(A, B, left); }},
      {"linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> "
       "Tensor",
       [](In A, In B, bool upper, bool left, bool unitriangular) {
         return linalg::solve_triangular(A, B, upper, left, unitriangular);
       }},
      {"linalg_inv(Tensor A) -> Tensor", [](In A) { return linalg::inv(A); }},
      {"linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
       [](In A, bool check_errors) { return linalg::inv_ex(A, check_errors); }},
      {"inverse(Tensor self) -> Tensor", [](In A) { return linalg::inv(A); }},
      {"linalg_det(Tensor A) -> Tensor", [](In A) { return linalg::det(A); }},
      {"det(Tensor self) -> Tensor", [](In A) { return linalg::det(A); }},
      {"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", [](In A) { return linalg::slogdet(A); }},
      {"slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", [](In A) { return linalg::slogdet(A); }},
      {"logdet(Tensor self) -> Tensor", logdet},
      {"linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> "
       "Tensor",
       [](In A, MaybeReal atol, MaybeReal rtol, bool hermitian) { return linalg::pinv(A, atol, rtol, hermitian); }},
      {"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
       [](In A, bool upper) { return linalg::cholesky(A, upper); }},
      {"linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
       [](In A, bool upper, bool check_errors) { return linalg::cholesky_ex(A, upper, check_errors); }},
      {"cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", cholesky_solve},
      {"cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_inverse},
      {"linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
       [](In A, Text mode) { return linalg::qr(A, mode); }},
      {"linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
       [](In A, bool pivot) { return linalg::lu_factor(A, pivot); }},
      {"linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, "
       "Tensor info)",
       [](In A, bool pivot, bool check_errors) { return linalg::lu_factor_ex(A, pivot, check_errors); }},
      {"linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
       [](In A, bool pivot) { return linalg::lu(A, pivot); }},
      {"linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
       [](In LU, In pivots, In B, bool left, bool adjoint) { return linalg::lu_solve(LU, pivots, B, left, adjoint); }},
      {"linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
       [](In A, Text triangle) { return linalg::eigh(A, triangle); }},
      {"linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
       [](In A, Text triangle) { return linalg::eigvalsh(A, triangle); }},
      {"_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
       [](In A, Text triangle, bool compute_v) {
         return compute_v ? linalg::eigh(A, triangle) : std::tuple(linalg::eigvalsh(A, triangle), nothing_like(A));
       }},
      {"_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, "
       "Tensor S, "
       "Tensor Vh)",
       [](In A, bool full_matrices, bool compute_uv, Unset) {
         if (compute_uv) return linalg::svd(A, full_matrices);
         return std::tuple(nothing_like(A), linalg::svdvals(A), nothing_like(A));
       }},
      {"linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
       [](In A, bool full_matrices, Unset) { return linalg::svd(A, full_matrices); }},
      {"linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", [](In A, Unset) { return linalg::svdvals(A); }},
      {"svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
       [](In A, bool some, bool compute_uv) { return svd(A, some, compute_uv); }},
      {"linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", [](In A) { return linalg::eig(A); }},
      {"linalg_eigvals(Tensor self) -> Tensor", [](In A) { return linalg::eigvals(A); }},
      {"linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
       [](In A, bool hermitian) { return linalg::ldl_factor(A, hermitian); }},
      {"linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor "
       "pivots, "
       "Tensor info)",
       [](In A, bool hermitian, bool check_errors) { return linalg::ldl_factor_ex(A, hermitian, check_errors); }},
      {"linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
       [](In LD, In pivots, In B, bool hermitian) { return linalg::ldl_solve(LD, pivots, B, hermitian); }},
      {"linalg_polar(Tensor A) -> (Tensor U, Tensor H)", [](In A) { return linalg::polar(A); }},
      {"linalg_matrix_sqrth(Tensor self) -> Tensor", [](In A) { return linalg::matrix_sqrth(A); }},
      {"geqrf(Tensor self) -> (Tensor a, Tensor tau)", geqrf},
      {"ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", ormqr},
      {"orgqr(Tensor self, Tensor input2) -> Tensor", orgqr},
      {"linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
       [](In A, In tau) { return linalg::householder_product(A, tau); }},
      {"linalg_matrix_power(Tensor self, int n) -> Tensor", [](In A, Int n) { return linalg::matrix_power(A, n); }},
      {"matrix_power(Tensor self, int n) -> Tensor", [](In A, Int n) { return linalg::matrix_power(A, n); }},
      {"linalg_matrix_exp(Tensor self) -> Tensor", [](In A) { return linalg::matrix_exp(A); }},
      {"matrix_exp(Tensor self) -> Tensor", [](In A) { return linalg::matrix_exp(A); }},
      {"triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
       "(Tensor solution, Tensor cloned_coefficient)",
       triangular_solve},
      {"linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", [](In x, MaybeInt N) { return linalg::vander(x, N); }},

      {"linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
       "info)",
       [](In A, In B, bool left, bool check_errors) { return linalg::solve_ex(A, B, left, check_errors); }},
      {"lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
       [](In B, In LU, In pivots) { return linalg::lu_solve(LU, pivots, B); }},
      {"lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
       "Tensor L, "
       "Tensor U)",
       [](In LU, In pivots, bool data, bool swaps) { return lu_unpack(LU, pivots, data, swaps); }},
      {"_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
       [](In A, bool pivot, bool check_errors) { return linalg::lu_factor_ex(A, pivot, check_errors); }},
      {"linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
       "residuals, Tensor rank, Tensor singular_values)",
       [](In A, In B, MaybeReal rcond, const std::optional<std::string>& driver) {
         return linalg::lstsq(A, B, rcond, driver.value_or("gelsy"));
       }},
      {"linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> "
       "Tensor",
       [](In A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
         return linalg::pinv(A, single(atol), single(rtol), hermitian);
       }},
      {"pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor", pinverse},
      {"linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
       "-> "
       "Tensor",
       [](In A, MaybeReal atol, MaybeReal rtol, bool hermitian) {
         return linalg::matrix_rank(A, atol, rtol, hermitian);
       }},
      {"linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
       "hermitian=False) -> Tensor",
       [](In A, const Tensor& atol, const Tensor& rtol, bool hermitian) {
         return linalg::matrix_rank(A, single(atol), single(rtol), hermitian);
       }},
      {"linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
       [](In A, const std::optional<Scalar>& p) { return linalg::cond(A, p); }},
      {"linalg_cond.p_str(Tensor self, str p) -> Tensor", [](In A, Text p) { return linalg::cond(A, p); }},
      {"linalg_tensorinv(Tensor self, int ind=2) -> Tensor", [](In A, Int ind) { return linalg::tensorinv(A, ind); }},
      {"linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
       [](In A, In B, MaybeInts dims) { return linalg::tensorsolve(A, B, dims); }},
      {"linalg_matmul(Tensor self, Tensor other) -> Tensor", [](In a, In b) { return matmul(a, b); }},
      {"vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
       [](In x, MaybeInt N, bool increasing) { return vander(x, N, increasing); }},
      {"frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", frobenius_norm},
      {"nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", nuclear_norm},
      {"nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
       [](In A, Ints dim, bool keepdim) { return linalg::matrix_norm(A, "nuc", dim, keepdim); }},

      // --- norms
      {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
       "-> Tensor",
       [](In x, const Scalar& ord, MaybeInts dim, bool keepdim, MaybeType dtype) {
         return linalg::vector_norm(x, ord, dim, keepdim, dtype);
       }},
      {"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) "
       "-> Tensor",
       [](In A, const Scalar& ord, Ints dim, bool keepdim, MaybeType dtype) {
         return linalg::matrix_norm(A, ord, dim, keepdim, dtype);
       }},
      {"linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
       "ScalarType? dtype=None) -> Tensor",
       [](In A, Text ord, Ints dim, bool keepdim, MaybeType dtype) {
         return linalg::matrix_norm(A, ord, dim, keepdim, dtype);
       }},
      {"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
       "Tensor",
       [](In x, const std::optional<Scalar>& ord, MaybeInts dim, bool keepdim, MaybeType dtype) {
         return linalg::norm(x, ord, dim, keepdim, dtype);
       }},
      {"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
       "Tensor",
       [](In x, Text ord, MaybeInts dim, bool keepdim, MaybeType dtype) {
         return linalg::norm(x, ord, dim, keepdim, dtype);
       }},
  };
  return kList;
}

}  // namespace sinter::interop
