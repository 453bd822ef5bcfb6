#include "sinter/runtime/cuda/attention/attention_backward.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/runtime/cuda/attention/attention_text.h"
#include "sinter_embedded.h"

namespace sinter::runtime {

namespace {

#include "sinter/runtime/cuda/attention/cuda_attention_dropout_params.embed"
// Behind what it holds.
#include "sinter/runtime/cuda/attention/cuda_attention_backward_params.embed"

constexpr int64_t kLargestSize = 128;
constexpr int64_t kThreads = 128;
constexpr int64_t kTensorRows = 64, kPlainRows = 32;  // of a block
constexpr int64_t kShortSize = 64;                    // up to which a tile has as many rows as a block
constexpr int64_t kMostRows = 65535 * kPlainRows;     // the grid's limit

// A pair of kernels: what their texts depend on.
struct Kernels {
  bool tensor;
  DType dtype;
  int size, value_size;  // as registers and shared memory hold them
  int mask;
  bool causal, dropout;

  auto operator<=>(const Kernels&) const = default;
  bool is_short() const { return std::max(size, value_size) <= kShortSize; }
  int64_t rows() const { return tensor ? kTensorRows : kPlainRows; }
  int64_t tile() const { return tensor && is_short() ? kTensorRows : 32; }
};

Kernels kernels_of(const CudaAttentionBackward& p) {
  const auto whole = [&](const void* data, int64_t batch, int64_t head, int64_t row, uint32_t indirect) {
    return has_whole_vectors({data, batch, head, row}, item_size(p.dtype), p.indirect & indirect);
  };
  const auto operand = [&](const AttentionOperand& x, uint32_t indirect) {
    return whole(x.data, x.batch_stride, x.head_stride, x.row_stride, indirect);
  };
  const auto gradient = [&](const CudaAttentionGradient& x, uint32_t indirect) {
    return whole(x.data, x.batch_stride, x.head_stride, x.row_stride, indirect);
  };
  Kernels k{false, p.dtype, 0, 0, int(p.mask.type), p.causal, p.dropout.is_on()};
  k.tensor = p.dtype != kFloat32 && p.size % 8 == 0 && p.value_size % 8 == 0 && operand(p.query, kIndirectQuery) &&
             operand(p.key, kIndirectKey) && operand(p.value, kIndirectValue) &&
             operand(p.grad_out, kIndirectGradOut) && gradient(p.grad_query, kIndirectGradQuery) &&
             gradient(p.grad_key, kIndirectGradKey) && gradient(p.grad_value, kIndirectGradValue);
  const auto rounded = [&](int64_t size) {
    return k.tensor ? rounded_size(size, {32, 64, 96, 128}) : rounded_size(size, {32, 64, 128});
  };
  k.size = rounded(p.size);
  k.value_size = rounded(p.value_size);
  return k;
}

// As the texts lay it out.
int64_t shared_bytes(const Kernels& k) {
  if (!k.tensor)
    return 4 * (2 * kPlainRows * (k.size + 4 + k.value_size + 4) + 2 * kPlainRows * (kPlainRows + 4) + 2 * kPlainRows);
  const int64_t row = k.size + 8 + k.value_size + 8;
  return 2 * (2 * k.tile() + (k.is_short() ? 0 : kTensorRows)) * row + 4 * 2 * 2 * k.tile();
}

CudaSource source_of(const Kernels& k, bool for_keys) {
  CudaSource source{.name = format("attention_backward_{}{}_{}", k.tensor ? "" : "plain_",
                                   for_keys ? "keys" : "queries", attention_suffix(k.dtype)),
                    .text = "",
                    .shared_bytes = int(shared_bytes(k))};
  if (k.size != k.value_size) source.name += format("_{}", k.size);
  source.name += format("_{}{}{}", k.value_size, attention_suffix(k.mask, k.causal), k.dropout ? "_dropout" : "");
  add_attention_support(source.text);
  add_attention_text(source.text, "BACKWARD",
                     {embedded::cuda_attention_backward_params, embedded::cuda_attention_backward_support});
  if (k.tensor)
    add_attention_text(source.text, "BACKWARD_TENSOR", {embedded::cuda_attention_backward_tensor});
  else
    add_attention_text(source.text, "BACKWARD_PLAIN", {embedded::cuda_attention_backward_plain});
  // As many blocks as get by with the registers.
  source.text +=
      format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}", kThreads, k.is_short() ? 3 : 2, source.name);
  source.text += "(const __grid_constant__ sinter_attention::BackwardParams p) {\n";
  source.text += format("  sinter_attention::attention_backward_{}<{}, {}, {}, ", k.tensor ? "tensor" : "plain",
                        attention_type(k.dtype), k.size, k.value_size);
  if (k.tensor) source.text += format("{}, ", k.tile());
  source.text += format("{}, {}, {}{}>(p);\n}\n", for_keys ? "true" : "false", k.mask, k.causal ? "true" : "false",
                        k.dropout ? ", true" : "");
  return source;
}

std::vector<CudaSource> sources_of(const Kernels& k) { return {source_of(k, false), source_of(k, true)}; }

using Functions = std::array<CudaFunction, 2>;

Functions functions_of(const Kernels& kernels, int device) {
  static std::mutex mutex;
  static std::map<std::pair<int, Kernels>, Functions> loaded;
  {
    std::lock_guard lock(mutex);
    auto found = loaded.find({device, kernels});
    if (found != loaded.end()) return found->second;
  }
  const std::vector<CudaFunction> functions = load_cuda(sources_of(kernels), "", device);
  std::lock_guard lock(mutex);
  return loaded.try_emplace({device, kernels}, Functions{functions[0], functions[1]}).first->second;
}

BackwardRows rows_of(const AttentionOperand& x) {
  return {const_cast<void*>(x.data), x.batch_stride, x.head_stride, x.row_stride};
}
BackwardRows rows_of(const CudaAttentionGradient& x) { return {x.data, x.batch_stride, x.head_stride, x.row_stride}; }

BackwardParams params_of(const CudaAttentionBackward& p) {
  BackwardParams x{};
  x.query = rows_of(p.query), x.key = rows_of(p.key), x.value = rows_of(p.value);
  x.grad_out = rows_of(p.grad_out);
  x.grad_query = rows_of(p.grad_query), x.grad_key = rows_of(p.grad_key), x.grad_value = rows_of(p.grad_value);
  x.mask = p.mask.data;
  x.mask_batch = p.mask.batch_stride, x.mask_head = p.mask.head_stride;
  x.mask_row = p.mask.row_stride, x.mask_key = p.mask.key_stride;
  x.lse = p.lse, x.means = p.means;
  x.heads = int(p.heads), x.queries = int(p.queries), x.keys = int(p.keys), x.group = int(p.group);
  x.size = int(p.size), x.value_size = int(p.value_size);
  x.indirect = p.indirect, x.scale = p.scale;
  x.dropout = {p.dropout.threshold, p.dropout.factor, p.dropout.seed, p.dropout.offset};
  return x;
}

void expect_taken(const CudaAttentionBackward& p) {
  SINTER_INTERNAL_ASSERT(takes_cuda_attention_backward(p), "attention: no gradients for {} queries of {} and {}",
                         p.queries, p.size, p.value_size);
}

}  // namespace

bool takes_cuda_attention_backward(const CudaAttentionBackward& p) {
  if (p.dtype != kFloat32 && p.dtype != kBFloat16 && p.dtype != kFloat16) return false;
  if (std::min({p.batch, p.heads, p.queries, p.keys, p.size, p.value_size, p.group}) < 1) return false;
  return std::max(p.size, p.value_size) <= kLargestSize && p.heads % p.group == 0 &&
         std::max(p.queries, p.keys) <= kMostRows && p.batch <= INT32_MAX / p.heads;
}

std::vector<CudaSource> cuda_attention_backward_sources(const CudaAttentionBackward& problem) {
  expect_taken(problem);
  return sources_of(kernels_of(problem));
}

void prepare_cuda_attention_backward(int device, const CudaAttentionBackward& problem) {
  functions_of(kernels_of(problem), device);
}

CudaAttentionBackwardLaunch cuda_attention_backward_launch(const CudaAttentionBackward& p) {
  expect_taken(p);
  const Kernels kernels = kernels_of(p);
  CudaAttentionBackwardLaunch launch;
  for (bool for_keys : {false, true}) {
    const int64_t heads = for_keys ? p.heads / p.group : p.heads, rows = for_keys ? p.keys : p.queries;
    launch.grids[for_keys] = {
        .blocks = {unsigned(p.batch * heads), unsigned((rows + kernels.rows() - 1) / kernels.rows()), 1},
        .threads = {unsigned(kThreads), 1, 1},
        .shared_bytes = unsigned(shared_bytes(kernels)),
        .overlaps_previous = p.overlaps_previous};
  }
  const BackwardParams params = params_of(p);
  launch.params.resize(sizeof params);
  std::memcpy(launch.params.data(), &params, sizeof params);
  return launch;
}

void cuda_attention_backward(int device, const CudaAttentionBackward& problem) {
  cuda_attention_backward(device, problem, functions_of(kernels_of(problem), device));
}

void cuda_attention_backward(int device, const CudaAttentionBackward& problem,
                             std::span<const CudaFunction> functions) {
  SINTER_INTERNAL_ASSERT(functions.size() == 2, "attention: {} kernels of gradients", functions.size());
  const CudaAttentionBackwardLaunch launch = cuda_attention_backward_launch(problem);
  for (int i = 0; i < 2; ++i)
    cuda_launch(functions[size_t(i)], device, launch.grids[i], launch.params.data(), launch.params.size());
}

}  // namespace sinter::runtime
