#pragma once
// Factorisations of one dense matrix in host memory, column after column: by LAPACK where the machine has it, else by the
// textbook, which the referee always uses.
#include <cstdint>

namespace sinter {

// What can be done to one matrix; T is float or double. Zero means success.
template <class T>
struct Dense {
  // P L U of an m×n matrix in its place, L with a unit diagonal. Row i was swapped with row pivots[i] - 1, one after another.
  // Gives the place (from 1) of the first zero on U's diagonal.
  int (*lu)(int64_t m, int64_t n, T* a, int32_t* pivots);
  // L of L Lᵀ in place of the lower triangle. Gives the order of the first leading minor that is not positive.
  int (*cholesky)(int64_t n, T* a);
  // R in the upper triangle of the m×n matrix, and below its diagonal the vectors v, which begin with a 1 that is not
  // stored, of the min(m, n) reflections 1 - tau v vᵀ whose product is Q.
  int (*qr)(int64_t m, int64_t n, T* a, T* tau);
  // The first `columns` columns of the product of the `count` reflections stored below the diagonal of q, in its place.
  int (*reflections)(int64_t m, int64_t columns, int64_t count, T* q, const T* tau);
  // L and D of the symmetric matrix P L D Lᵀ Pᵀ in place of its lower triangle, D of blocks of one or two rows. As in
  // LAPACK pivots[k] > 0 is the row (from 1) that row k was swapped with; of a block of two both are the negated one of
  // the second. Gives the place (from 1) of the first zero on D's diagonal.
  int (*ldl)(int64_t n, T* a, int32_t* pivots);
  // Eigenvalues of the symmetric matrix in the lower triangle, ascending, and its eigenvectors in place if wanted. Gives 1
  // where the search did not converge.
  int (*eigh)(int64_t n, T* a, T* values, bool vectors);
  // Eigenvalues of any square matrix, as pairs of their real and imaginary parts, and unless vectors is null its
  // eigenvectors, columns of such pairs of length 1. Of a real matrix those that are not real stand in conjugate pairs,
  // the positive imaginary part first. Gives another number than 0 where the search did not converge. Overwrites a.
  int (*eig)(int64_t n, T* a, T* values, T* vectors);
  // The same of a matrix of pairs.
  int (*eig_of_pairs)(int64_t n, T* a, T* values, T* vectors);
  // Singular values, descending, and unless u is null the m×k and k×n matrices of U S Vᵀ, k = min(m, n). Overwrites a.
  int (*svd)(int64_t m, int64_t n, T* a, T* u, T* s, T* vt);
  // A⁻¹B in place of the n×columns matrix b, A being a triangle of a.
  void (*solve_triangular)(int64_t n, int64_t columns, const T* a, T* b, bool upper, bool unit);
  // c = a b for n×n matrices.
  void (*multiply)(int64_t n, const T* a, const T* b, T* c);
};

// The fastest there is here.
template <class T>
const Dense<T>& dense();
// Plain loops. For float they compute in double.
template <class T>
const Dense<T>& textbook();
// LAPACK from OpenBLAS, or from any other package that has it; null, with a line in the log, on a machine without.
template <class T>
const Dense<T>* lapack();

}  // namespace sinter
