#pragma once
// Matrix products by cuBLASLt, loaded when the first one is wanted.
#include <cstdint>
#include <string>

#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// A matrix in device memory; one of the two strides is 1.
struct CudaMatrix {
  void* data = nullptr;
  int64_t row_stride = 0, column_stride = 1;
  int64_t batch_stride = 0;
};

// Gelu by its tanh form.
enum class CudaMatmulEpilogue : uint8_t { kNone, kBias, kGelu, kGeluBias, kRelu, kReluBias };

// c = epilogue(alpha * a·b + beta * c + bias) for `batch` pairs; a is m×k, b k×n, c m×n and row-major. All of one type (f16, bf16,
// f32 in full precision unless `tf32`, f64), added up in f32 (f64 for f64). A bias has n elements.
struct CudaMatmul {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  DType dtype = kFloat32;
  CudaMatrix a, b, c;
  const void* added = nullptr;  // with beta: in place of c as it was; laid out as c
  float alpha = 1, beta = 0;
  bool tf32 = false;
  CudaMatmulEpilogue epilogue = CudaMatmulEpilogue::kNone;
  const void* bias = nullptr;
};

// Whether the library takes a matrix of these strides: elements of a row or of a column side by side, lines apart.
inline bool cuda_matmul_takes(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  // A dimension of size 1 has no stride to speak of.
  bool row_major = (column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns);
  bool column_major = (row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows);
  return row_major || column_major;
}

// Why there are none on this machine; empty when there are.
const std::string& cublaslt_problem();
// Does beforehand, on any thread, what the first product of this shape would do: loads and starts the library, and chooses
// the algorithm. Of addresses only the alignment counts. Nothing where there is no library.
void prepare_cuda_matmul(int device, const CudaMatmul& problem);
// Queues the product on this thread's stream of the device, with the algorithm that was chosen for its shape: the library's
// first suggestion, or the winner of tune_cuda_matmul, either remembered on disk. May be recorded into a graph, after a first call that takes the
// device's workspace; all recorded products share it with the common stream, so two graphs with products run in turns.
void cuda_matmul(int device, const CudaMatmul& problem);
// Times the library's suggestions on this problem (whose memory is overwritten) and keeps the fastest for its shape, in
// this process and on disk. Gives its microseconds.
double tune_cuda_matmul(int device, const CudaMatmul& problem, double seconds);

}  // namespace sinter::runtime
