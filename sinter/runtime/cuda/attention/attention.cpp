#include "sinter/runtime/cuda/attention/attention.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
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
constexpr int64_t kHopperRows = 128;        // queries, and keys, of a tile
constexpr int64_t kStreamBytes = 76 << 10;  // of a block's shared memory
constexpr int64_t kStreamsPerProcessor = 2;
constexpr int64_t kEagerBytes = 5 << 20;  // of keys and values that are read before it is known which of them count

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

enum class Kind : uint8_t { kDecode, kStream, kHopper, kPrefill, kPlain };

// One kernel among all: what its text depends on.
struct Kernel {
  Kind kind;
  DType dtype;
  int size, value_size;  // as the kernel's registers and shared memory hold them
  int rows;              // queries that a block takes together; decode and stream: and heads
  int groups, keys;      // prefill: groups of warps and keys that each takes at a time
  bool same_mask;        // decode and stream: the rows have one row of the mask in common
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

struct StreamLayout {
  static constexpr int64_t kKeys = 16;
  int64_t warps, stages, tile, state, bytes;

  // As much on its way as three blocks of a multiprocessor have room for, and one of the smallest devices.
  explicit StreamLayout(const Kernel& k) : warps(k.size <= 128 ? 4 : 2) {
    const int64_t stage = 2 * 2 * kKeys * (k.size + 8) + kKeys;
    stages = std::min<int64_t>(kStreamBytes / (warps * stage), 4);
    tile = warps * kKeys;
    state = state_of(k);
    bytes = std::max(warps * stages * stage, warps * state * 4) + 16;
  }
};

int64_t seen_keys(const CudaAttention& p) { return p.causal ? std::min(p.keys, p.queries) : p.keys; }
// What has keys of its own in a step of decoding.
int64_t units_of(const CudaAttention& p, const Kernel& k) {
  return p.batch * (p.heads / p.group) * ceil_div(p.group * p.queries, k.rows);
}

// Whether whole warpgroups are to multiply: rows are whole blocks of theirs, and there are tiles for half of the device.
bool suits_hopper(const CudaAttention& p, const CudaDeviceInfo& device) {
  if (device.major != 9 || p.dtype == kFloat32 || p.mask.type != AttentionMaskType::kNone || p.dropout.is_on()) return false;
  if ((p.size != 64 && p.size != 128) || p.value_size != p.size || !(p.scale > 0)) return false;
  return 2 * p.batch * p.heads * ceil_div(p.queries, kHopperRows) >= device.multiprocessors;
}
int64_t hopper_bytes(const Kernel& k) { return kHopperRows * k.size * 2 * 5 + 128; }

Kernel kernel_of(const CudaAttention& p, const CudaDeviceInfo& device) {
  const int64_t item = item_size(p.dtype);
  const AttentionOperand out{p.out, p.out_batch_stride, p.out_head_stride, p.out_row_stride};
  const bool vectors = p.size % 8 == 0 && p.value_size % 8 == 0 &&
                       has_whole_vectors(p.query, item, p.indirect & kIndirectQuery) &&
                       has_whole_vectors(p.key, item, p.indirect & kIndirectKey) &&
                       has_whole_vectors(p.value, item, p.indirect & kIndirectValue) &&
                       has_whole_vectors(out, item, p.indirect & kIndirectOut);
  Kernel k{Kind::kPlain, p.dtype, 0, 0, 0, 0, 0, false, int(p.mask.type), p.causal, p.lse != nullptr, p.dropout.is_on()};
  if (vectors && p.queries <= kDecodeQueries && !k.lse && !k.dropout) {
    const bool streams = p.dtype != kFloat32;
    k.kind = streams ? Kind::kStream : Kind::kDecode;
    k.size = k.value_size = rounded_size(std::max(p.size, p.value_size), {32, 64, 128, 256});
    k.rows = rounded_size(std::min<int64_t>(p.group * p.queries, streams ? 16 : 8), {1, 2, 4, 8, 16});
    k.same_mask = p.mask.type == AttentionMaskType::kNone || ((p.mask.head_stride == 0 || p.group == 1) &&
                                                              (p.mask.row_stride == 0 || p.queries == 1));
  } else if (vectors && suits_hopper(p, device)) {
    k.kind = Kind::kHopper;
    k.size = k.value_size = int(p.size);
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
    const bool streams = k.kind == Kind::kStream;
    const int64_t tile = streams ? StreamLayout(k).tile : DecodeLayout(k).tile, visible = seen_keys(p);
    row_blocks = ceil_div(p.group * p.queries, k.rows);
    units = units_of(p, k);
    const int64_t blocks = (streams ? kStreamsPerProcessor : kBlocksPerProcessor) * multiprocessors;
    const int64_t most = std::clamp<int64_t>(blocks / units, 1, kMostSplits);
    keys = round_up(ceil_div(visible, std::min(most, ceil_div(visible, tile))), tile);
    count = ceil_div(visible, keys);
    // More units than counters are enough blocks without splits.
    if (units * 4 > kCudaAttentionCounters) {
      count = 1;
      keys = visible;
    }
  }
  int64_t bytes(const Kernel& k) const {
    return count == 1 ? 0 : kCudaAttentionCounters + units * count * state_of(k) * 4;
  }
  // Stages of a stream that are filled before the mask is known.
  int64_t eager(const CudaAttention& p, const Kernel& k) const {
    const StreamLayout layout(k);
    if (p.mask.type != AttentionMaskType::kBool) return layout.stages;
    return std::min(layout.stages, kEagerBytes / (units * count * layout.tile * (p.size + p.value_size) * item_size(p.dtype)));
  }
};

bool has_splits(const Kernel& k) { return k.kind == Kind::kDecode || k.kind == Kind::kStream; }

int64_t threads_of(const Kernel& k) {
  switch (k.kind) {
    case Kind::kStream: return 32 * StreamLayout(k).warps;
    case Kind::kHopper: return 384;
    case Kind::kPrefill: return k.rows * 2 * k.groups;
    default: return kThreads;
  }
}

// Blocks of 256 threads that a multiprocessor is to hold at a time: where two get by with the registers, they must.
int least_blocks(const Kernel& k) {
  return k.kind == Kind::kPrefill && k.groups == 2 ? 2 : 1;
}

std::string kernel_name(const Kernel& k) {
  static const char* const kinds[] = {"decode", "stream", "hopper", "prefill", "plain"};
  std::string name = format("attention_{}_{}", kinds[int(k.kind)], attention_suffix(k.dtype));
  if (k.size != 0 && k.size != k.value_size) name += format("_{}", k.size);
  name += format("_{}", k.value_size);
  if (k.rows != 0) name += format("_rows{}", k.rows);
  if (k.groups > 1) name += format("_groups{}", k.groups);
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
      add("JOIN", embedded::cuda_attention_join);
      add("DECODE", embedded::cuda_attention_decode);
      call = format("decode<{}, {}, {}, {}", attention_type(k.dtype), k.size, k.rows, k.same_mask ? "true" : "false");
      source.shared_bytes = int(DecodeLayout(k).bytes);
      break;
    case Kind::kStream: {
      const StreamLayout layout(k);
      add("JOIN", embedded::cuda_attention_join);
      add("STREAM", embedded::cuda_attention_stream);
      call = format("stream<{}, {}, {}, {}, {}, {}", attention_type(k.dtype), k.size, k.rows, layout.warps, layout.stages,
                    k.same_mask ? "true" : "false");
      source.shared_bytes = int(layout.bytes);
      break;
    }
    case Kind::kHopper:
      source.text += format("#ifndef SINTER_HOPPER\n#define SINTER_HOPPER\n{}#endif\n", embedded::hopper);
      add_hopper_products(source.text, k.dtype, k.size);
      add("HOPPER", embedded::cuda_attention_hopper);
      call = format("hopper<{}, {}", attention_type(k.dtype), k.size);
      source.shared_bytes = int(hopper_bytes(k));
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
  source.text += "  sinter_attention::attention_" + call;
  if (k.kind != Kind::kHopper) source.text += format(", {}", k.mask);
  source.text += k.causal ? ", true" : ", false";
  if (k.kind == Kind::kHopper)
    source.text += k.lse ? ", true" : ", false";
  else if (k.lse || k.dropout) source.text += k.lse ? ", true" : ", false";
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
  return has_splits(k) ? Splits(problem, k, device.multiprocessors).bytes(k) : 0;
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

CudaAttentionLaunch cuda_attention_launch(const CudaAttention& problem, const CudaDeviceInfo& device) {
  const Kernel kernel = kernel_of(problem, device);
  CudaAttentionLaunch out;
  CudaGrid& grid = out.grid;
  Params params = params_of(problem);
  grid = {.threads = {unsigned(threads_of(kernel)), 1, 1}, .overlaps_previous = problem.overlaps_previous};
  grid.blocks[0] = unsigned(problem.batch * problem.heads);
  switch (kernel.kind) {
    case Kind::kDecode:
    case Kind::kStream: {
      const Splits splits(problem, kernel, device.multiprocessors);
      SINTER_INTERNAL_ASSERT(splits.count == 1 || problem.workspace, "attention: {} splits want a workspace",
                             splits.count);
      params.splits = int(splits.count), params.split_keys = int(splits.keys);
      grid.blocks[0] = unsigned(splits.count);
      grid.blocks[1] = unsigned(problem.heads / problem.group * splits.row_blocks);
      grid.blocks[2] = unsigned(problem.batch);
      const bool streams = kernel.kind == Kind::kStream;
      if (streams) params.eager = int(splits.eager(problem, kernel));
      grid.shared_bytes = unsigned(streams ? StreamLayout(kernel).bytes : DecodeLayout(kernel).bytes);
      break;
    }
    case Kind::kHopper:
      params.splits = int(problem.batch);
      grid.blocks[0] = unsigned(std::min<int64_t>(problem.batch * problem.heads * ceil_div(problem.queries, kHopperRows),
                                                  device.multiprocessors));
      grid.shared_bytes = unsigned(hopper_bytes(kernel));
      break;
    case Kind::kPrefill:
      grid.blocks[1] = unsigned(ceil_div(problem.queries, kernel.rows));
      grid.shared_bytes = unsigned(prefill_bytes(kernel));
      break;
    case Kind::kPlain:
      grid.blocks[1] = unsigned(ceil_div(problem.queries, kPlainRows));
      grid.shared_bytes = unsigned(plain_bytes(kLargestSize, kernel.value_size));
      break;
  }
  const auto bytes = std::as_bytes(std::span(&params, 1));
  out.params.assign(bytes.begin(), bytes.end());
  return out;
}

void cuda_attention(int device, const CudaAttention& problem, const CudaFunction& function) {
  const CudaAttentionLaunch launch = cuda_attention_launch(problem, cuda_device_info(device));
  cuda_launch(function, device, launch.grid, launch.params.data(), launch.params.size());
}

}  // namespace sinter::runtime
