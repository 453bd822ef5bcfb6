#pragma once
// softmax(scale * Q.K^T + mask).V on the GPU, the counterpart of runtime/cpu/attention: the same problem, the same
// meaning of causality and of masks, zeros for a row to which a mask leaves no key. The scores never lie in memory.
//
// Four kernels. Few queries (a step of decoding): the keys are split over the multiprocessors and joined in the same launch;
// bf16 and f16 stream through shared memory to the tensor cores, f32 is computed as it is. Many queries of bf16 or f16: tensor
// cores, too. There weights are rounded to the type of the values. All else, f32 above all: f32 arithmetic
// throughout. Sums are f32 always. For training the last two, which serve any number of queries, also give the logarithm of each row's sum, and drop weights.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sinter/runtime/cpu/attention/attention.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// Pointers that hold the address, on the device, of the pointer that is meant: it is read when the kernel starts, so a
// recorded launch may serve other tensors.
enum CudaAttentionIndirect : uint32_t {
  kIndirectQuery = 1,
  kIndirectKey = 2,
  kIndirectValue = 4,
  kIndirectMask = 8,
  kIndirectOut = 16,
  kIndirectLse = 32,
  // The seed and the offset of dropout, which then hold addresses.
  kIndirectSeed = 1024,
  kIndirectOffset = 2048,
};

// As AttentionProblem, with device memory. Pointers that are given indirectly lead to multiples of 16 bytes.
struct CudaAttention {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0;
  int64_t size = 0, value_size = 0;
  int64_t group = 1;
  DType dtype = kFloat32;  // or bf16, f16
  AttentionOperand query{}, key{}, value{};
  AttentionMask mask = {};
  bool causal = false;  // query i sees keys 0 to i
  float scale = 1;
  AttentionDropout dropout = {};
  void* out = nullptr;  // [batch, heads, queries, value_size]; the strides count elements, rows lie side by side
  int64_t out_batch_stride = 0, out_head_stride = 0, out_row_stride = 0;
  // [batch, heads, queries], dense: log(sum over the keys of exp(score)), what attention_backward.h asks for; infinity
  // for a row to which a mask leaves no key. Null: not wanted.
  float* lse = nullptr;
  uint32_t indirect = 0;
  // cuda_attention_workspace bytes. Its first kCudaAttentionCounters bytes are zero before the first launch, and again
  // after every one: launches of one stream may share it, whatever their problems, and may be recorded and replayed.
  void* workspace = nullptr;
  bool overlaps_previous = false;  // as in CudaGrid
};

inline constexpr int64_t kCudaAttentionCounters = 4 * 4096;

// Whether the kernels take it: f32, bf16 or f16, no size above 256 and none of 0.
bool takes_cuda_attention(const CudaAttention& problem);
// Bytes of workspace on such a device; 0 when it needs none.
int64_t cuda_attention_workspace(const CudaAttention& problem, const CudaDeviceInfo& device);
// The kernel of this problem on such a device, a text that can be compiled behind any prelude together with others.
// Many problems share one: it depends on the types, the sizes of rows, causality, whether rows are whole vectors (of 16
// bytes) and whether `lse` and dropout are wanted, on the number of queries up to eight of them, and on how well the problem fills the
// device.
std::vector<CudaSource> cuda_attention_sources(const CudaAttention& problem, const CudaDeviceInfo& device);
// Compiles and loads that kernel on the device, where it stays.
void prepare_cuda_attention(int device, const CudaAttention& problem);
// Queues it on this thread's stream of the device. The first form loads the kernel when it is first met; the second is
// given what load_cuda made of the source above.
void cuda_attention(int device, const CudaAttention& problem);
void cuda_attention(int device, const CudaAttention& problem, const CudaFunction& function);

// What that launch is.
struct CudaAttentionLaunch {
  CudaGrid grid;
  std::vector<std::byte> params;
};
CudaAttentionLaunch cuda_attention_launch(const CudaAttention& problem, const CudaDeviceInfo& device);

}  // namespace sinter::runtime
