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
  // R in the upper triangle of the m×n matrix; the first `columns` columns of Q unless q is null.
  int (*qr)(int64_t m, int64_t n, T* a, int64_t columns, T* q);
  // Eigenvalues of the symmetric matrix in the lower triangle, ascending, and its eigenvectors in place if wanted. Gives 1
  // where the search did not converge.
  int (*eigh)(int64_t n, T* a, T* values, bool vectors);
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
