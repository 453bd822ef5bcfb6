#pragma once
// Factorisations of matrices by cuSOLVER, and triangular systems by cuBLAS: loaded when the first one is wanted. Each function
// queues its work on this thread's stream of the device. Matrices are of f32 or f64, columns side by side, `count` of them one
// behind the other; `info` has one number each, as LAPACK gives it. Nothing here may be recorded into a graph.
#include <cstdint>
#include <string>

#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

struct CudaMatrices {
  int device = 0;
  DType dtype = kFloat32;
  int64_t count = 0, rows = 0, columns = 0;
};

// Why there are none on this machine; empty when there are.
const std::string& cusolver_problem();

// P L U in place, min(rows, columns) pivots each, counted from 1.
void cuda_lu(const CudaMatrices& m, void* a, int64_t* pivots, int32_t* info);
// U of the upper triangle's Uᵀ U in place; the rest stays as it was.
void cuda_cholesky(const CudaMatrices& m, void* a, int32_t* info);
// Reflectors below R in place, with their scales.
void cuda_qr(const CudaMatrices& m, void* a, void* scales, int32_t* info);
// The first `columns` columns of Q in place of `reflectors` reflectors.
void cuda_q(const CudaMatrices& m, int64_t reflectors, void* a, const void* scales, int32_t* info);
// Eigenvalues in ascending order of the symmetric matrix in the upper triangle; vectors, if wanted, in place, otherwise nothing
// that is of use.
void cuda_eigh(const CudaMatrices& m, void* a, void* values, bool vectors, int32_t* info);
// With at least as many rows as columns; `a` is overwritten. U as `a` is, Vᵀ square; both null where only values are wanted.
void cuda_svd(const CudaMatrices& m, void* a, void* values, void* u, void* vt, int32_t* info);
// X A = B in place of B, rows × columns, for a triangle of A, columns × columns.
void cuda_solve_triangular(const CudaMatrices& m, const void* a, void* b, bool upper, bool unitriangular);

}  // namespace sinter::runtime
