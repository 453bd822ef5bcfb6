#include "sinter/runtime/cuda/attention/attention.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter_embedded.h"

namespace sinter::runtime {

namespace {

#include "sinter/runtime/cuda/attention/cuda_attention_params.embed"

constexpr int64_t kDecodeQueries = 8;     // up to which keys are split over blocks
constexpr int64_t kMostSplits = 64;       // more would cost the block that joins them more than they save
constexpr int64_t kBlocksPerProcessor = 4;  // enough to keep a multiprocessor waiting for memory, not for blocks
constexpr int64_t kThreads = 128;         // of every kernel
constexpr int64_t kLargestSize = 256;
constexpr int64_t kPrefillRows = 64, kPlainRows = 32, kPlainKeys = 32;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

enum class Kind : uint8_t { kDecode, kPrefill, kPlain };

// One kernel among all: what its text depends on.
struct Kernel {
  Kind kind;
  DType dtype;
  int size, value_size;  // as the kernel's registers and shared memory hold them
  int rows;              // decode: queries and heads that a block takes together
  bool same_mask;        // decode: they have one row of the mask in common
  int mask;
  bool causal;

  auto operator<=>(const Kernel&) const = default;
};

// Every row of the operand begins at a multiple of 16 bytes.
bool has_whole_vectors(const AttentionOperand& operand, int64_t item, bool indirect) {
  const auto whole = [&](int64_t elements) { return elements * item % 16 == 0; };
  return whole(operand.batch_stride) && whole(operand.head_stride) && whole(operand.row_stride) &&
         (indirect || reinterpret_cast<uintptr_t>(operand.data) % 16 == 0);
}

int rounded_size(int64_t size, std::initializer_list<int> sizes) {
  for (int s : sizes)
    if (size <= s) return s;
  SINTER_INTERNAL_ASSERT(false, "attention: no kernel for rows of {}", size);
  return 0;
}

Kernel kernel_of(const CudaAttention& p) {
  const int64_t item = p.dtype == kFloat32 ? 4 : 2;
  const bool vectors = p.size % 8 == 0 && p.value_size % 8 == 0 &&
                       has_whole_vectors(p.query, item, p.indirect & kIndirectQuery) &&
                       has_whole_vectors(p.key, item, p.indirect & kIndirectKey) &&
                       has_whole_vectors(p.value, item, p.indirect & kIndirectValue) &&
                       (p.indirect & kIndirectOut || reinterpret_cast<uintptr_t>(p.out) % 16 == 0);
  Kernel k{Kind::kPlain, p.dtype, 0, 0, 0, false, int(p.mask.type), p.causal};
  if (vectors && p.queries <= kDecodeQueries) {
    k.kind = Kind::kDecode;
    k.size = k.value_size = rounded_size(std::max(p.size, p.value_size), {32, 64, 128, 256});
    k.rows = rounded_size(std::min<int64_t>(p.group * p.queries, 8), {1, 2, 4, 8});
    k.same_mask = p.mask.type == AttentionMaskType::kNone || ((p.mask.head_stride == 0 || p.group == 1) &&
                                                              (p.mask.row_stride == 0 || p.queries == 1));
  } else if (vectors && p.dtype != kFloat32) {
    k.kind = Kind::kPrefill;
    k.size = rounded_size(p.size, {32, 64, 96, 128, 192, 256});
    k.value_size = rounded_size(p.value_size, {32, 64, 96, 128, 192, 256});
  } else {
    k.value_size = rounded_size(p.value_size, {32, 64, 128, 256});
  }
  return k;
}

// The layouts below follow the structs of that name in the texts.
struct DecodeLayout {
  int64_t tile, state, bytes;

  explicit DecodeLayout(const Kernel& k) {
    const int64_t groups = kThreads / (k.size / 8);
    tile = groups * ((k.size <= 64 ? 4 : 8) / (k.dtype == kFloat32 ? 2 : 1) / (k.rows == 8 && k.size > 64 ? 2 : 1));
    state = k.rows * k.size + (k.rows == 1 ? 4 : 2 * k.rows);
    bytes = groups * state * 4;
  }
};

int64_t prefill_bytes(const Kernel& k) {
  const int64_t keys = k.size > 128 || k.value_size > 128 ? 32 : 64;
  const int64_t query = kPrefillRows * (k.size + 8), value = keys * (k.value_size + 8);
  const bool shares_query = k.size <= 128 && query <= value;
  return 2 * ((shares_query ? 0 : query) + 2 * keys * (k.size + 8) + 2 * value);
}

int64_t plain_bytes(int64_t size, int64_t value_size) {
  const int64_t width = round_up(size, 4), stride = width + (width % 8 == 0 ? 4 : 0);
  return 4 * (kPlainRows * stride + kPlainRows * (kPlainKeys + 4) + kPlainKeys * std::max(stride, value_size + 4));
}

// How a step of decoding is cut.
struct Splits {
  int64_t row_blocks, units, count, keys;

  Splits(const CudaAttention& p, const Kernel& k, int multiprocessors) {
    const int64_t tile = DecodeLayout(k).tile, visible = p.causal ? std::min(p.keys, p.queries) : p.keys;
    row_blocks = ceil_div(p.group * p.queries, k.rows);
    units = p.batch * (p.heads / p.group) * row_blocks;
    const int64_t most = std::clamp<int64_t>(kBlocksPerProcessor * multiprocessors / units, 1, kMostSplits);
    keys = round_up(ceil_div(visible, std::min(most, ceil_div(visible, tile))), tile);
    count = ceil_div(visible, keys);
    // More units than counters are enough blocks without splits.
    if (units * 4 > kCudaAttentionCounters) {
      count = 1;
      keys = visible;
    }
  }
  int64_t bytes(const Kernel& k) const {
    return count == 1 ? 0 : kCudaAttentionCounters + units * count * DecodeLayout(k).state * 4;
  }
};

const char* type_name(DType dtype) { 
  return dtype == kFloat32 ? "float" : dtype == kBFloat16 ? "sinter_attention::Bf16" : "sinter_attention::Half";
}

std::string kernel_name(const Kernel& k) {
  static const char* const kinds[] = {"decode", "prefill", "plain"};
  static const char* const masks[] = {"", "_bool", "_f32", "_bf16", "_f16"};
  std::string name = format("attention_{}_{}", kinds[int(k.kind)],
                            k.dtype == kFloat32 ? "f32" : k.dtype == kBFloat16 ? "bf16" : "f16");
  if (k.size != 0 && k.size != k.value_size) name += format("_{}", k.size);
  name += format("_{}", k.value_size);
  if (k.rows != 0) name += format("_rows{}", k.rows);
  if (k.same_mask && k.mask != 0) name += "_same";
  if (k.mask != 0) name += format("_mask{}", masks[k.mask]);
  return name + (k.causal ? "_causal" : "");
}

CudaSource source_of(const Kernel& k) {
  CudaSource source{.name = kernel_name(k), .text = "", .shared_bytes = 0};
  // Several of these texts may meet in one program.
  const auto add = [&](const char* guard, std::initializer_list<const char*> texts) {
    source.text += format("#ifndef SINTER_ATTENTION_{}\n#define SINTER_ATTENTION_{}\n", guard, guard);
    source.text += "namespace sinter_attention {\n";
    for (const char* text : texts) source.text += text;
    source.text += "}\n#endif\n";
  };
  add("SUPPORT", {embedded::cuda_attention_params, embedded::cuda_attention_support});
  std::string call;
  switch (k.kind) {
    case Kind::kDecode:
      add("DECODE", {embedded::cuda_attention_decode});
      call = format("decode<{}, {}, {}, {}", type_name(k.dtype), k.size, k.rows, k.same_mask ? "true" : "false");
      source.shared_bytes = int(DecodeLayout(k).bytes);
      break;
    case Kind::kPrefill:
      add("PREFILL", {embedded::cuda_attention_prefill});
      call = format("prefill<{}, {}, {}", type_name(k.dtype), k.size, k.value_size);
      source.shared_bytes = int(prefill_bytes(k));
      break;
    case Kind::kPlain:
      add("PLAIN", {embedded::cuda_attention_plain});
      call = format("plain<{}, {}", type_name(k.dtype), k.value_size);
      source.shared_bytes = int(plain_bytes(kLargestSize, k.value_size));
      break;
  }
  source.text += format("extern \"C\" __global__ void __launch_bounds__({}) {}", kThreads, source.name);
  source.text += "(const __grid_constant__ sinter_attention::Params p) {\n";
  source.text += format("  sinter_attention::attention_{}, {}, {}>(p);\n", call, k.mask, k.causal ? "true" : "false");
  source.text += "}\n";
  return source;
}

CudaFunction function_of(const Kernel& kernel, int device) {
  static std::mutex mutex;
  static std::map<std::pair<int, Kernel>, CudaFunction> loaded;
  {
    std::lock_guard lock(mutex);
    auto found = loaded.find({device, kernel});
    if (found != loaded.end()) return found->second;
  }
  const CudaSource source = source_of(kernel);
  CudaFunction function = load_cuda(std::span(&source, 1), "", device)[0];
  std::lock_guard lock(mutex);
  return loaded.try_emplace({device, kernel}, function).first->second;
}

Params params_of(const CudaAttention& p) {
  Params x{};
  x.query = p.query.data, x.key = p.key.data, x.value = p.value.data, x.mask = p.mask.data;
  x.out = p.out, x.workspace = p.workspace;
  x.query_batch = p.query.batch_stride, x.query_head = p.query.head_stride, x.query_row = p.query.row_stride;
  x.key_batch = p.key.batch_stride, x.key_head = p.key.head_stride, x.key_row = p.key.row_stride;
  x.value_batch = p.value.batch_stride, x.value_head = p.value.head_stride, x.value_row = p.value.row_stride;
  x.mask_batch = p.mask.batch_stride, x.mask_head = p.mask.head_stride;
  x.mask_row = p.mask.row_stride, x.mask_key = p.mask.key_stride;
  x.heads = int(p.heads), x.queries = int(p.queries), x.keys = int(p.keys), x.group = int(p.group);
  x.size = int(p.size), x.value_size = int(p.value_size);
  x.splits = 1, x.split_keys = int(p.keys);
  x.indirect = p.indirect, x.scale = p.scale;
  return x;
}

}  // namespace

bool takes_cuda_attention(const CudaAttention& p) {
  if (p.dtype != kFloat32 && p.dtype != kBFloat16 && p.dtype != kFloat16) return false;
  constexpr int64_t kMostRows = int64_t(1) << 30;
  if (std::min({p.batch, p.heads, p.queries, p.keys, p.size, p.value_size, p.group}) < 1) return false;
  if (std::max(p.size, p.value_size) > kLargestSize || p.heads % p.group != 0) return false;
  // The grid's limits.
  return p.queries <= 65535 * kPlainRows && p.keys <= kMostRows && p.batch <= 65535 &&
         p.heads * kDecodeQueries <= 65535;
}

int64_t cuda_attention_workspace(const CudaAttention& problem, int multiprocessors) {
  const Kernel k = kernel_of(problem);
  return k.kind == Kind::kDecode ? Splits(problem, k, multiprocessors).bytes(k) : 0;
}

std::vector<CudaSource> cuda_attention_sources(const CudaAttention& problem) {
  SINTER_INTERNAL_ASSERT(takes_cuda_attention(problem), "attention: no kernel for {} queries of {}", problem.queries,
                         problem.size);
  return {source_of(kernel_of(problem))};
}

void cuda_attention(int device, const CudaAttention& problem) {
  SINTER_INTERNAL_ASSERT(takes_cuda_attention(problem), "attention: no kernel for {} queries of {}", problem.queries,
                         problem.size);
  cuda_attention(device, problem, function_of(kernel_of(problem), device));
}

void cuda_attention(int device, const CudaAttention& problem, const CudaFunction& function) {
  const Kernel kernel = kernel_of(problem);
  Params params = params_of(problem);
  CudaGrid grid{.threads = {unsigned(kThreads), 1, 1}, .overlaps_previous = problem.overlaps_previous};
  grid.blocks[0] = unsigned(problem.batch * problem.heads);
  switch (kernel.kind) {
    case Kind::kDecode: {
      const Splits splits(problem, kernel, cuda_device_info(device).multiprocessors);
      SINTER_INTERNAL_ASSERT(splits.count == 1 || problem.workspace, "attention: {} splits want a workspace",
                             splits.count);
      params.splits = int(splits.count), params.split_keys = int(splits.keys);
      grid.blocks[0] = unsigned(splits.count);
      grid.blocks[1] = unsigned(problem.heads / problem.group * splits.row_blocks);
      grid.blocks[2] = unsigned(problem.batch);
      grid.shared_bytes = unsigned(DecodeLayout(kernel).bytes);
      break;
    }
    case Kind::kPrefill:
      grid.blocks[1] = unsigned(ceil_div(problem.queries, kPrefillRows));
      grid.shared_bytes = unsigned(prefill_bytes(kernel));
      break;
    case Kind::kPlain:
      grid.blocks[1] = unsigned(ceil_div(problem.queries, kPlainRows));
      grid.shared_bytes = unsigned(plain_bytes(problem.size, kernel.value_size));
      break;
  }
  cuda_launch(function, device, grid, &params, sizeof params);
}

}  // namespace sinter::runtime
