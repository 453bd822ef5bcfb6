#pragma once
// Factorisations of the matrices in the last two dimensions: the ops that sinter/ops/linalg.h is made of. Operands are f32 or
// f64. The result of a matrix that cannot be factored is told by `info`, or by an Error where the caller says who fails.
#include <string>
#include <tuple>
#include <vector>

#include "sinter/graph/attrs.h"
#include "sinter/ops/registry.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// --- what the ops are told, for the kernels of a device that take them whole
struct FactorAttrs {
  std::string fails;  // the function whose Error a matrix without a factorisation is; none: `info` tells
  SINTER_FIELDS(fails)
};
struct TriangularAttrs {
  bool upper = false, unitriangular = false;
  SINTER_FIELDS(upper, unitriangular)
};
struct QrAttrs {
  bool complete = false;  // all columns of Q, and as many rows of R
  bool only_r = false;
  SINTER_FIELDS(complete, only_r)
};
struct VectorAttrs {
  bool vectors = true;
  SINTER_FIELDS(vectors)
};

}  // namespace sinter

namespace sinter::factor {

// The Errors of a batch, where `fails` is not empty, from LAPACK's numbers: the first matrix that is none's.
void check_lu(const std::string& fails, const std::vector<int64_t>& info);
void check_cholesky(const std::string& fails, const std::vector<int64_t>& info);
void check_ldl(const std::string& fails, const std::vector<int64_t>& info);
void check_eigh(const std::vector<int64_t>& info);
// -1 stands for a matrix that is not finite.
void check_eig(const std::vector<int64_t>& info);
void check_svd(const std::vector<int64_t>& info);

struct Lu {
  Tensor lu, pivots, info;
};
// P L U in one matrix, pivots counted from 1, and where the first zero on U's diagonal is. `fails`: whose Error it is.
Lu lu(const Tensor& a, const std::string& fails = {});
// The gradient of what was factored, from that of the factors in one matrix.
Tensor lu_gradient(const Tensor& lu, const Tensor& pivots, const Tensor& g);
// The rows that the swaps of `pivots` bring to each place of `rows`: (Pᵀ B)[i] = B[permutation[i]].
Tensor permutation(const Tensor& pivots, const Dim& rows);
// P B, or Pᵀ B, for P of those swaps.
Tensor permuted(const Tensor& b, const Tensor& pivots, bool transposed);

// L of the lower triangle's L Lᵀ, NaN where there is none, and the order of the first minor that is not positive.
std::tuple<Tensor, Tensor> cholesky(const Tensor& a, const std::string& fails = {});
// A⁻¹B of a triangle of A; A and B have the same batch.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unitriangular = false);

enum class QrMode : uint8_t { kReduced, kComplete, kR };
// Q (undefined where only R is wanted) and R.
std::tuple<Tensor, Tensor> qr(const Tensor& a, QrMode mode);

// R above, and below the diagonal the vectors of the min(m, n) reflections whose product is Q; their factors.
std::tuple<Tensor, Tensor> geqrf(const Tensor& a);

// L and D of a symmetric matrix in one lower triangle, with their pivots, from the lower triangle (Dense::ldl).
Lu ldl(const Tensor& a, const std::string& fails = {});
// A⁻¹B from these; of one batch.
Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b);

// Eigenvalues in ascending order and eigenvectors of the symmetric matrix in the lower triangle.
std::tuple<Tensor, Tensor> eigh(const Tensor& a);
Tensor eigvalsh(const Tensor& a);
// U, S, Vᵀ with min(m, n) singular values in descending order.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a);
Tensor svdvals(const Tensor& a);
// Eigenvalues and eigenvectors of any square matrix, real or complex; complex.
std::tuple<Tensor, Tensor> eig(const Tensor& a);
Tensor eigvals(const Tensor& a);
Tensor matrix_exp(const Tensor& a);
// Of the positive matrix in the lower triangle.
Tensor matrix_sqrth(const Tensor& a);
// U and H with A = U H, of as many rows as columns or more.
std::tuple<Tensor, Tensor> polar(const Tensor& a);

// Small helpers on batches of matrices.
inline Tensor transposed(const Tensor& a) { return a.transpose(-2, -1); }
// [..., n] → [..., n, n] with zeros off the diagonal.
Tensor diagonal_matrix(const Tensor& diagonal);
Tensor identity_like(const Tensor& a);

}  // namespace sinter::factor

namespace sinter {

// Of spectral.cpp, eig.cpp, ldl.cpp and matrix_root.cpp, for the family's list.
OpFamily spectral_ops();
OpFamily eig_ops();
OpFamily ldl_ops();
OpFamily matrix_root_ops();

}  // namespace sinter
