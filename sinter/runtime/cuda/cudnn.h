#pragma once
// Convolutions by cuDNN, loaded when the first one is wanted.
#include <array>
#include <cstdint>
#include <string>

#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// A tensor in device memory with strides in elements: batch, channels, then one to three spatial dimensions, whatever
// order they have in memory. Channels-last (a stride of 1 for the channels) is the fast one for the half types.
struct CudaConvTensor {
  void* data = nullptr;
  std::array<int64_t, 5> sizes{}, strides{};
};

enum class CudaConvActivation : uint8_t { kNone, kRelu };

// What of y = convolution(x, w) is computed: y, or of its gradients that of x (of y and w: a transposed convolution) or
// that of w (of x and y). The tensor it belongs to is written, the other two are read.
enum class CudaConvKind : uint8_t { kForward, kData, kFilter };

// y = activation(convolution(x, w) + residual + bias), or a gradient, which nothing follows. All of one type (f16, bf16, f32
// in full precision unless `tf32`), added up in f32. w has out-channels and in-channels by group first, so that x and w tell
// the groups; the bias has a value for each out-channel, the residual the shape and strides of y. Both may be null.
struct CudaConvolution {
  CudaConvKind kind = CudaConvKind::kForward;
  DType dtype = kFloat32;
  int spatial = 2;
  CudaConvTensor x, w, y;
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool tf32 = false;
  CudaConvActivation activation = CudaConvActivation::kNone;
  const void *bias = nullptr, *residual = nullptr;

  // In the order of the ops that compute it: what is read first and second, and what is written.
  CudaConvTensor& left() { return kind == CudaConvKind::kData ? y : x; }
  CudaConvTensor& right() { return kind == CudaConvKind::kFilter ? y : w; }
  CudaConvTensor& result() { return kind == CudaConvKind::kForward ? y : kind == CudaConvKind::kData ? x : w; }
};

// Why there are none on this machine; empty when there are.
const std::string& cudnn_problem();
// Whether the library can do this one as it stands, fused parts included. Makes it ready: the first call for a shape
// may compile, and takes memory, so it comes before a graph is recorded.
bool prepare_cuda_convolution(int device, const CudaConvolution& problem);
// Queues it on this thread's stream of the device. May be recorded into a graph once prepared; all that is
// recorded shares the common stream's workspace, so two graphs with convolutions run in turns.
void cuda_convolution(int device, const CudaConvolution& problem);
// Times the library's suggestions (the result's memory is overwritten) and keeps the fastest for its shape, in this
// process and on disk. Gives its microseconds.
double tune_cuda_convolution(int device, const CudaConvolution& problem, double seconds);

}  // namespace sinter::runtime
