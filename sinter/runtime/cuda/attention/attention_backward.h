#pragma once
// The gradients of softmax(scale * Q.K^T + mask).V on the GPU, from the logarithms of its sums that attention.h gives
// (CudaAttention::lse). As there the weights never lie in memory.
//
// Two kernels, one after the other: queries that meet all keys give the gradient of the queries, keys that meet the
// queries of all heads that share them give those of keys and values. Both compute the weights anew, which costs seven
// products in place of five, but nothing is added atomically: results are the same every time. bf16 and f16 in whole
// vectors of 16 bytes: tensor cores, weights and their gradients rounded to that type. All else: f32 arithmetic. Sums
// are f32 always. Blocks that causality hides cost nothing. Keys and values that a mask hides must still be numbers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sinter/runtime/cuda/attention/attention.h"

namespace sinter::runtime {

// Beside those of CudaAttentionIndirect, but for the result, which is not read.
enum CudaAttentionBackwardIndirect : uint32_t {
  kIndirectMeans = 16,
  kIndirectGradOut = 64,
  kIndirectGradQuery = 128,
  kIndirectGradKey = 256,
  kIndirectGradValue = 512,
};

// A gradient to write, as AttentionOperand.
struct CudaAttentionGradient {
  void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

// The problem as in CudaAttention, with the gradient of its result.
struct CudaAttentionBackward {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0;
  int64_t size = 0, value_size = 0;
  int64_t group = 1;
  DType dtype = kFloat32;  // or bf16, f16; of the gradients too
  AttentionOperand query{}, key{}, value{};
  AttentionMask mask = {};
  bool causal = false;
  float scale = 1;
  AttentionDropout dropout = {};
  AttentionOperand grad_out{};  // [batch, heads, queries, value_size]
  // [batch, heads, queries], dense; the second a row of the result times its gradient, the mean of what flows back to its
  // weights.
  const float *lse = nullptr, *means = nullptr;
  // [batch, heads, queries, size], [batch, heads / group, keys, size] and [batch, heads / group, keys, value_size].
  CudaAttentionGradient grad_query{}, grad_key{}, grad_value{};
  uint32_t indirect = 0;  // as in CudaAttention
  bool overlaps_previous = false;
};

// Whether the kernels take it: f32, bf16 or f16, no size above 128 and none of 0.
bool takes_cuda_attention_backward(const CudaAttentionBackward& problem);
// The two kernels, in their order. They depend on the types, the sizes of rows, causality, dropout and whether rows are
// whole vectors; texts as those of cuda_attention_sources.
std::vector<CudaSource> cuda_attention_backward_sources(const CudaAttentionBackward& problem);
// Compiles and loads them on the device, where they stay.
void prepare_cuda_attention_backward(int device, const CudaAttentionBackward& problem);
// Queues them on this thread's stream of the device. The first form loads the kernels when they are first met; the
// second is given what load_cuda made of the sources above.
void cuda_attention_backward(int device, const CudaAttentionBackward& problem);
void cuda_attention_backward(int device, const CudaAttentionBackward& problem, std::span<const CudaFunction> functions);

// What is queued: the grid of each kernel, and the parameter that both have.
struct CudaAttentionBackwardLaunch {
  CudaGrid grids[2];
  std::vector<std::byte> params;
};
CudaAttentionBackwardLaunch cuda_attention_backward_launch(const CudaAttentionBackward& problem);

}  // namespace sinter::runtime
