#pragma once
// oneDNN as a peer: the few calls that the benchmarks compare with. Without it every function here says so.
#include <cstdint>
#include <optional>

#include "bench/support/timing.h"

namespace sinter::bench {

bool have_onednn();
// "2.6.3"; empty without oneDNN.
const char* onednn_version();
// Its threads, as many as the library's pool has.
void set_onednn_threads(int threads);

// C[m, n] = A[m, k] · B[k, n] in f32, row-major; B is [n, k] when transposed. Does nothing without oneDNN.
void onednn_sgemm(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool b_transposed, float* c);

// A 2-d convolution without bias, in f32: x [n, c, h, w], weight [filters, c / groups, kernel, kernel].
struct ConvolutionShape {
  int64_t n, c, h, w, filters, kernel, padding, stride = 1, groups = 1;
};
// The work of one forward pass: on row-major tensors as given, or with tensors in the layouts that oneDNN itself
// prefers, reordered beforehand (then y is not written). The pointers must outlive it. Absent without oneDNN 2.
std::optional<Work> onednn_convolution(const ConvolutionShape& shape, float* x, float* weight, float* y,
                                       bool own_layouts);

}  // namespace sinter::bench
