#include "sinter/runtime/cuda/attention/attention.h"

#include <algorithm>
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
#include "sinter/runtime/cuda/attention/cuda_attention_params.embed"

constexpr int64_t kDecodeQueries = 8;     // up to which keys are split over blocks
constexpr int64_t kMostSplits = 64;       // more would cost the block that joins them more than they save
constexpr int64_t kBlocksPerProcessor = 4;  // enough to keep a multiprocessor waiting for memory, not for blocks
constexpr int64_t kThreads = 128;         // of the kernels that do not say otherwise
constexpr int64_t kLargestSize = 256;
constexpr int64_t kPlainRows = 32, kPlainKeys = 32;
// Clusters: the largest size that every device has; more rounds of keys than these are better split over all blocks.
constexpr int64_t kClusterBlocks = 8, kClusterThreads = 256, kMostRounds = 8;
constexpr int64_t kClustersPerProcessor = 2;  // blocks of clusters; where there are more, splits use the device as well
constexpr int64_t kEagerBytes = 4 << 20;  // of keys and values that are read before it is known which of them count

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

enum class Kind : uint8_t { kDecode, kCluster, kPrefill, kPlain };

// One kernel among all: what its text depends on.
struct Kernel {
  Kind kind;
  DType dtype;
  int size, value_size;  // as the kernel's registers and shared memory hold them
  int rows;              // queries that a block takes together; decode: and heads
  int groups, keys;      // prefill: groups of warps and keys that each takes at a time
  bool same_mask;        // decode: the rows have one row of the mask in common
  bool eager;            // cluster: keys are read before the mask
  int mask;
  bool causal, lse, dropout;

  auto operator<=>(const Kernel&) const = default;
};

// The layouts below follow the structs of that name in the texts.
int64_t rows_ahead(const Kernel& k) {
  return (k.size <= 64 ? 4 : 8) / (k.dtype == kFloat32 ? 2 : 1) / (k.rows == 8 && k.size > 64 ? 2 : 1);
}
int64_t state_of(const Kernel& k) { return k.rows * k.size + (k.rows == 1 ? 4 : 2 * k.rows); }

struct DecodeLayout {
  int64_t tile, state, bytes;

  explicit DecodeLayout(const Kernel& k) {
    const int64_t groups = kThreads / (k.size / 8);
    tile = groups * rows_ahead(k);
    state = state_of(k);
    bytes = groups * state * 4;
  }
};

struct ClusterLayout {
  int64_t round, bytes;

  explicit ClusterLayout(const Kernel& k) {
    const int64_t groups = kClusterThreads / (k.size / 8);
    round = kClusterBlocks * groups * rows_ahead(k);
    bytes = groups * state_of(k) * 4 + ceil_div(k.rows * k.size / 4, kClusterBlocks) * kClusterBlocks * 24;
  }
};

int64_t seen_keys(const CudaAttention& p) { return p.causal ? std::min(p.keys, p.queries) : p.keys; }
// What has keys of its own in a step of decoding.
int64_t units_of(const CudaAttention& p, const Kernel& k) {
  return p.batch * (p.heads / p.group) * ceil_div(p.group * p.queries, k.rows);
}

// The kernel with clusters, if it suits this step of decoding.
void choose_cluster(Kernel& kernel, const CudaAttention& p, const CudaDeviceInfo& device) {
  if (device.major < 9) return;
  Kernel k = kernel;
  // Rather read keys twice than leave multiprocessors idle: what is shared comes from the cache.
  while (k.rows > 1 && k.size <= 64 && 2 * units_of(p, k) * kClusterBlocks <= device.multiprocessors) k.rows /= 2;
  const int64_t round = ClusterLayout(k).round, keys = seen_keys(p), blocks = units_of(p, k) * kClusterBlocks;
  if (keys > kMostRounds * round || blocks > kClustersPerProcessor * device.multiprocessors) return;
  k.kind = Kind::kCluster;
  const int64_t row = (p.size + p.value_size) * item_size(p.dtype);
  k.eager = p.mask.type != AttentionMaskType::kBool ||
            p.batch * (p.heads / p.group) * std::min(keys, round) * row <= kEagerBytes;
  kernel = k;
}

Kernel kernel_of(const CudaAttention& p, const CudaDeviceInfo& device) {
  const int64_t item = item_size(p.dtype);
  const AttentionOperand out{p.out, p.out_batch_stride, p.out_head_stride, p.out_row_stride};
  const bool vectors = p.size % 8 == 0 && p.value_size % 8 == 0 &&
                       has_whole_vectors(p.query, item, p.indirect & kIndirectQuery) &&
                       has_whole_vectors(p.key, item, p.indirect & kIndirectKey) &&
                       has_whole_vectors(p.value, item, p.indirect & kIndirectValue) &&
                       has_whole_vectors(out, item, p.indirect & kIndirectOut);
  Kernel k{Kind::kPlain, p.dtype, 0, 0, 0, 0, 0, false, false, int(p.mask.type), p.causal,
           p.lse != nullptr, p.dropout.is_on()};
  if (vectors && p.queries <= kDecodeQueries && !k.lse && !k.dropout) {
    k.kind = Kind::kDecode;
    k.size = k.value_size = rounded_size(std::max(p.size, p.value_size), {32, 64, 128, 256});
    k.rows = rounded_size(std::min<int64_t>(p.group * p.queries, 8), {1, 2, 4, 8});
    k.same_mask = p.mask.type == AttentionMaskType::kNone || ((p.mask.head_stride == 0 || p.group == 1) &&
                                                              (p.mask.row_stride == 0 || p.queries == 1));
    choose_cluster(k, p, device);
  } else if (vectors && p.dtype != kFloat32) {
    k.kind = Kind::kPrefill;
    k.size = rounded_size(p.size, {32, 64, 96, 128, 192, 256});
    k.value_size = rounded_size(p.value_size, {32, 64, 96, 128, 192, 256});
    const int largest = std::max(k.size, k.value_size);
    // Of few blocks the longest way through the keys is what counts.
    k.rows = 64;
    bool few = p.batch * p.heads * ceil_div(p.queries, k.rows) <= 2 * device.multiprocessors;
    k.groups = p.causal && largest <= 64 && few ? 2 : 1;
    k.keys = largest > 128 ? 32 : 64;
  } else {
    k.value_size = rounded_size(p.value_size, {32, 64, 128, 256});
  }
  return k;
}

int64_t prefill_bytes(const Kernel& k) {
  const int64_t tile = k.groups * k.keys, query = k.rows * (k.size + 8), value = tile * (k.value_size + 8);
  const bool shares_query = k.size <= (k.groups == 1 ? 128 : 64) && query <= value;
  return 2 * ((shares_query ? 0 : query) + 2 * tile * (k.size + 8) + 2 * value);
}

int64_t plain_bytes(int64_t size, int64_t value_size) {
  const int64_t width = round_up(size, 4), stride = width + (width % 8 == 0 ? 4 : 0);
  return 4 * (kPlainRows * stride + kPlainRows * (kPlainKeys + 4) + kPlainKeys * std::max(stride, value_size + 4));
}

// How a step of decoding is cut.
struct Splits {
  int64_t row_blocks, units, count, keys;

  Splits(const CudaAttention& p, const Kernel& k, int multiprocessors) {
    const int64_t tile = DecodeLayout(k).tile, visible = seen_keys(p);
    row_blocks = ceil_div(p.group * p.queries, k.rows);
    units = units_of(p, k);
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

int64_t threads_of(const Kernel& k) {
  return k.kind == Kind::kCluster ? kClusterThreads : k.kind == Kind::kPrefill ? k.rows * 2 * k.groups : kThreads;
}

// Blocks of 256 threads that a multiprocessor is to hold at a time: where two get by with the registers, they must.
int least_blocks(const Kernel& k) {
  return (k.kind == Kind::kPrefill && k.groups == 2) || (k.kind == Kind::kCluster && k.rows * k.size <= 128) ? 2 : 1;
}

std::string kernel_name(const Kernel& k) {
  static const char* const kinds[] = {"decode", "cluster", "prefill", "plain"};
  std::string name = format("attention_{}_{}", kinds[int(k.kind)], attention_suffix(k.dtype));
  if (k.size != 0 && k.size != k.value_size) name += format("_{}", k.size);
  name += format("_{}", k.value_size);
  if (k.rows != 0) name += format("_rows{}", k.rows);
  if (k.groups > 1) name += format("_groups{}", k.groups);
  if (k.eager) name += "_eager";
  if (k.same_mask && k.mask != 0) name += "_same";
  return name + attention_suffix(k.mask, k.causal) + (k.lse ? "_lse" : "") + (k.dropout ? "_dropout" : "");
}

CudaSource source_of(const Kernel& k) {
  CudaSource source{.name = kernel_name(k), .text = "", .shared_bytes = 0};
  const auto add = [&](const char* name, const char* text) { add_attention_text(source.text, name, {text}); };
  add_attention_support(source.text);
  std::string call, bounds = format("__launch_bounds__({}, {})", threads_of(k), least_blocks(k));
  switch (k.kind) {
    case Kind::kDecode:
      add("DECODE", embedded::cuda_attention_decode);
      call = format("decode<{}, {}, {}, {}", attention_type(k.dtype), k.size, k.rows, k.same_mask ? "true" : "false");
      source.shared_bytes = int(DecodeLayout(k).bytes);
      break;
    case Kind::kCluster:
      add("CLUSTER", embedded::cuda_attention_cluster);
      bounds += format(" __cluster_dims__({}, 1, 1)", kClusterBlocks);
      call = format("cluster<{}, {}, {}, {}, {}, {}, {}", attention_type(k.dtype), k.size, k.rows, kClusterBlocks,
                    kClusterThreads, k.same_mask ? "true" : "false", k.eager ? "true" : "false");
      source.shared_bytes = int(ClusterLayout(k).bytes);
      break;
    case Kind::kPrefill:
      add("PREFILL", embedded::cuda_attention_prefill);
      call = format("prefill<{}, {}, {}, {}, {}, {}", attention_type(k.dtype), k.size, k.value_size, k.rows, k.groups,
                    k.keys);
      source.shared_bytes = int(prefill_bytes(k));
      break;
    case Kind::kPlain:
      add("PLAIN", embedded::cuda_attention_plain);
      call = format("plain<{}, {}", attention_type(k.dtype), k.value_size);
      source.shared_bytes = int(plain_bytes(kLargestSize, k.value_size));
      break;
  }
  source.text += format("extern \"C\" __global__ void {} {}", bounds, source.name);
  source.text += "(const __grid_constant__ sinter_attention::Params p) {\n";
  source.text += format("  sinter_attention::attention_{}, {}, {}", call, k.mask, k.causal ? "true" : "false");
  if (k.lse || k.dropout) source.text += k.lse ? ", true" : ", false";
  source.text += k.dropout ? ", true>(p);\n" : ">(p);\n";
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
  x.out = p.out, x.workspace = p.workspace, x.lse = p.lse;
  x.query_batch = p.query.batch_stride, x.query_head = p.query.head_stride, x.query_row = p.query.row_stride;
  x.key_batch = p.key.batch_stride, x.key_head = p.key.head_stride, x.key_row = p.key.row_stride;
  x.value_batch = p.value.batch_stride, x.value_head = p.value.head_stride, x.value_row = p.value.row_stride;
  x.mask_batch = p.mask.batch_stride, x.mask_head = p.mask.head_stride;
  x.mask_row = p.mask.row_stride, x.mask_key = p.mask.key_stride;
  x.out_batch = p.out_batch_stride, x.out_head = p.out_head_stride, x.out_row = p.out_row_stride;
  x.heads = int(p.heads), x.queries = int(p.queries), x.keys = int(p.keys), x.group = int(p.group);
  x.size = int(p.size), x.value_size = int(p.value_size);
  x.splits = 1, x.split_keys = int(p.keys);
  x.indirect = p.indirect, x.scale = p.scale;
  x.dropout = {p.dropout.threshold, p.dropout.factor, p.dropout.seed, p.dropout.offset};
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

int64_t cuda_attention_workspace(const CudaAttention& problem, const CudaDeviceInfo& device) {
  const Kernel k = kernel_of(problem, device);
  return k.kind == Kind::kDecode ? Splits(problem, k, device.multiprocessors).bytes(k) : 0;
}

std::vector<CudaSource> cuda_attention_sources(const CudaAttention& problem, const CudaDeviceInfo& device) {
  SINTER_INTERNAL_ASSERT(takes_cuda_attention(problem), "attention: no kernel for {} queries of {}", problem.queries,
                         problem.size);
  return {source_of(kernel_of(problem, device))};
}

void prepare_cuda_attention(int device, const CudaAttention& problem) {
  function_of(kernel_of(problem, cuda_device_info(device)), device);
}

void cuda_attention(int device, const CudaAttention& problem) {
  SINTER_INTERNAL_ASSERT(takes_cuda_attention(problem), "attention: no kernel for {} queries of {}", problem.queries,
                         problem.size);
  cuda_attention(device, problem, function_of(kernel_of(problem, cuda_device_info(device)), device));
}

void cuda_attention(int device, const CudaAttention& problem, const CudaFunction& function) {
  const Kernel kernel = kernel_of(problem, cuda_device_info(device));
  Params params = params_of(problem);
  CudaGrid grid{.threads = {unsigned(threads_of(kernel)), 1, 1}, .overlaps_previous = problem.overlaps_previous};
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
    case Kind::kCluster:
      grid.blocks[0] = unsigned(kClusterBlocks);
      grid.blocks[1] = unsigned(units_of(problem, kernel) / problem.batch);
      grid.blocks[2] = unsigned(problem.batch);
      grid.shared_bytes = unsigned(ClusterLayout(kernel).bytes);
      break;
    case Kind::kPrefill:
      grid.blocks[1] = unsigned(ceil_div(problem.queries, kernel.rows));
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
