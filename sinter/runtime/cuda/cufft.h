#pragma once
// Fourier transforms by cuFFT, loaded when the first one is wanted.
#include <cstdint>
#include <string>
#include <vector>

#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

enum class CudaFftKind : uint8_t { kComplex, kRealToComplex, kComplexToReal };

// `batch` transforms over the sizes `n` (1 to 3 of them), each a row-major block behind the one before, of f32 or f64. Complex
// numbers are pairs; of a real transform the last size has n / 2 + 1 of them. Results are not divided by anything.
struct CudaFft {
  int device = 0;
  DType dtype = kFloat32;
  CudaFftKind kind = CudaFftKind::kComplex;
  bool forward = true;  // of complex ones
  std::vector<int64_t> n;
  int64_t batch = 1;
};

// Why there are none on this machine; empty when there are.
const std::string& cufft_problem();
// The bytes that a transform works in. Plans are kept, the last hundred or so; one that is not there cannot be made while a graph
// is recorded.
int64_t cuda_fft_workspace(const CudaFft& fft);
// Queues the transform on this thread's stream of the device. Addresses are multiples of the size of a complex number; x and y may
// be the same where their blocks have one size. A transform to real numbers may overwrite x.
void cuda_fft(const CudaFft& fft, void* x, void* y, void* workspace);

}  // namespace sinter::runtime
