#include "sinter/runtime/cuda/sort.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter_embedded.h"

namespace sinter::runtime {

namespace {

// The kernels' parameters, as in cuda_sort.embed.
struct BlockSort {
  const void *x, *keys_in;
  const uint32_t* at_in;
  void* keys_out;
  uint32_t* at_out;
  void* values;
  int64_t* positions;
  int64_t rows, length, inner, keep, descending, entries, chunks, padded, capacity;
};
struct RadixSort {
  const void *x, *keys_in;
  const uint32_t* at_in;
  void* keys_out;
  uint32_t* at_out;
  void* values;
  int64_t* positions;
  uint32_t *counts, *totals;
  int64_t rows, length, inner, keep, descending, tiles, shift;
};
struct Marked {
  const void* x;
  int64_t* counts;
  int64_t numel, tiles, heads;
  int64_t* coordinates;
  int64_t rank, sizes[16];
  const int64_t* from;
  void* values;
  int64_t *inverse, *firsts;
};
struct GroupSizes {
  const int64_t* firsts;
  int64_t *counts, groups, numel;
};
struct Search {
  const void *sorted, *values;
  int64_t* places;
  int64_t length, numel, row, right;
};

constexpr int64_t kChunk = 4096;  // entries that a block sorts in shared memory: 48 KB of 8-byte keys and positions
constexpr int64_t kMostSelected = 1024;  // kept of every chunk; beyond, a full sort shrinks the lines faster
constexpr int64_t kMarkedTile = 4096;
constexpr int kNoDevice = -1;  // only the workspace is wanted

enum Kernel {
  kBlockSort,
  kRadixCount,
  kRadixScan,
  kRadixScatter,
  kMarkedCount,
  kMarkedScan,
  kMarkedWrite,
  kGroupSizes,
  kSearch,
  kKernelCount
};
struct KernelText {
  const char *name, *params;
  bool typed;
};
constexpr KernelText kKernels[kKernelCount] = {
    {"block_sort", "BlockSort", true},    {"radix_count", "RadixSort", true},   {"radix_scan", "RadixSort", false},
    {"radix_scatter", "RadixSort", true}, {"marked_count", "Marked", true},     {"marked_scan", "Marked", false},
    {"marked_write", "Marked", true},     {"group_sizes", "GroupSizes", false}, {"search", "Search", true}};

// One kernel of a type; those that see no elements are the same for all.
CudaSource source_of(Kernel kernel, DType dtype) {
  auto& k = kKernels[kernel];
  std::string type = k.typed ? "_" + std::string(dtype_name(dtype)) : "";
  CudaSource source;
  source.name = format("sort_{}{}", k.name, type);
  source.text = format("extern \"C\" __global__ void __launch_bounds__({}) {}({} p) {{ {}{}(p); }}\n",
                       kernel == kBlockSort ? 1024 : 256, source.name, k.params, k.name,
                       k.typed ? "<Bits" + type + ">" : std::string());
  if (kernel == kBlockSort) source.shared_bytes = int(kChunk * (item_size(dtype) == 8 ? 12 : 8));
  return source;
}

// The kernels of one use are compiled together when the first of them is wanted.
const CudaFunction& function_of(int device, Kernel kernel, DType dtype) {
  static constexpr std::pair<Kernel, Kernel> kUses[] = {
      {kBlockSort, kBlockSort}, {kRadixCount, kRadixScatter}, {kMarkedCount, kGroupSizes}, {kSearch, kSearch}};
  using Key = std::array<int, 3>;
  static std::mutex lock;
  static auto& loaded = *new std::map<Key, CudaFunction>;
  std::lock_guard guard(lock);
  auto found = loaded.find({device, int(kernel), int(dtype)});
  if (found != loaded.end()) return found->second;
  for (auto [first, last] : kUses) {
    if (kernel < first || kernel > last) continue;
    std::vector<CudaSource> sources;
    for (int k = first; k <= last; ++k) sources.push_back(source_of(Kernel(k), dtype));
    auto functions = load_cuda(sources, embedded::cuda_sort, device);
    for (int k = first; k <= last; ++k) loaded[{device, k, int(dtype)}] = functions[size_t(k - first)];
  }
  return loaded.at({device, int(kernel), int(dtype)});
}

template <class Params>
void launch(int device, Kernel kernel, DType dtype, int64_t blocks, const Params& params, int threads = 256,
            int64_t shared_bytes = 0) {
  check(blocks <= INT32_MAX, "{}: {} blocks are too many for one launch", kKernels[kernel].name, blocks);
  CudaGrid grid;
  grid.blocks[0] = unsigned(blocks);
  grid.threads[0] = unsigned(threads);
  grid.shared_bytes = unsigned(shared_bytes);
  cuda_launch(function_of(device, kernel, dtype), device, grid, &params, sizeof params);
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t key_bytes(DType d) { return item_size(d) == 8 ? 8 : 4; }

// Hands out parts of a workspace; without one, only adds up.
struct Carver {
  char* base = nullptr;
  int64_t used = 0;
  template <class T = void>
  T* take(int64_t bytes) {
    char* part = base ? base + used : nullptr;
    used += divide_up(bytes, 256) * 256;
    return reinterpret_cast<T*>(part);
  }
};

bool selects_by_chunks(const CudaSort& s) {
  return s.lines.length <= kChunk || (s.keep <= kMostSelected && s.keep * 4 <= s.lines.length);
}

// Rounds over chunks in shared memory until one is left; what a round keeps is the next one's list.
int64_t sort_by_chunks(int device, const CudaSort& s, char* workspace) {
  Carver memory{workspace};
  int64_t entries = s.lines.length;
  void* keys[2] = {};
  uint32_t* at[2] = {};
  BlockSort p{};
  p.x = s.x, p.rows = s.lines.rows, p.length = s.lines.length, p.inner = s.lines.inner;
  p.keep = s.keep, p.descending = s.descending;
  for (int round = 0;; ++round) {
    p.entries = entries;
    p.chunks = divide_up(entries, kChunk);
    p.padded = p.chunks > 1 ? kChunk : std::max<int64_t>(2, int64_t(std::bit_ceil(uint64_t(entries))));
    p.capacity = std::max<int64_t>(p.padded, 1024);
    bool last = p.chunks == 1;
    int side = round % 2;
    if (!last && round < 2) {
      keys[side] = memory.take(p.rows * p.chunks * s.keep * key_bytes(s.dtype));
      at[side] = memory.take<uint32_t>(p.rows * p.chunks * s.keep * 4);
    }
    if (device != kNoDevice) {
      p.keys_out = last ? nullptr : keys[side];
      p.at_out = last ? nullptr : at[side];
      p.values = last ? s.values : nullptr;
      p.positions = last ? s.positions : nullptr;
      launch(device, kBlockSort, s.dtype, divide_up(p.rows * p.chunks, p.capacity / p.padded), p,
             int(std::min<int64_t>(p.capacity / 2, 1024)), p.capacity * (key_bytes(s.dtype) + 4));
    }
    if (last) return memory.used;
    p.keys_in = keys[side];
    p.at_in = at[side];
    entries = p.chunks * s.keep;
  }
}

int64_t sort_by_digits(int device, const CudaSort& s, char* workspace) {
  Carver memory{workspace};
  int64_t size = key_bytes(s.dtype), numel = s.lines.rows * s.lines.length, passes = item_size(s.dtype);
  RadixSort p{};
  p.x = s.x, p.values = s.values, p.positions = s.positions;
  p.rows = s.lines.rows, p.length = s.lines.length, p.inner = s.lines.inner;
  p.keep = s.keep, p.descending = s.descending;
  p.tiles = divide_up(s.lines.length, 256 * (size == 8 ? 8 : 16));
  p.counts = memory.take<uint32_t>(p.rows * 256 * p.tiles * 4);
  p.totals = memory.take<uint32_t>(p.rows * 256 * 4);
  void* keys[2] = {};
  uint32_t* at[2] = {};
  for (int side = 0; side < std::min<int64_t>(passes - 1, 2); ++side) {
    keys[side] = memory.take(numel * size);
    at[side] = memory.take<uint32_t>(numel * 4);
  }
  if (device == kNoDevice) return memory.used;
  for (int64_t pass = 0; pass < passes; ++pass) {
    bool last = pass == passes - 1;
    p.shift = pass * 8;
    p.keys_out = last ? nullptr : keys[pass % 2];
    p.at_out = last ? nullptr : at[pass % 2];
    launch(device, kRadixCount, s.dtype, p.rows * p.tiles, p);
    launch(device, kRadixScan, s.dtype, p.rows * 256, p);
    launch(device, kRadixScatter, s.dtype, p.rows * p.tiles, p);
    p.keys_in = p.keys_out;
    p.at_in = p.at_out;
  }
  return memory.used;
}

// The bytes of workspace; with a device, the work too.
int64_t sort_on(int device, const CudaSort& s, void* workspace) {
  check(s.keep >= 0 && s.keep <= s.lines.length, "cuda_sort: {} of {} elements cannot be kept", s.keep, s.lines.length);
  check(s.lines.length <= INT32_MAX, "cuda_sort: a line of {} elements is too long", s.lines.length);
  if (s.lines.rows == 0 || s.keep == 0) return 0;
  auto sort = selects_by_chunks(s) ? sort_by_chunks : sort_by_digits;
  return sort(device, s, static_cast<char*>(workspace));
}

Marked marked_of(const void* x, int64_t numel, void* counts) {
  Marked p{};
  p.x = x, p.numel = numel, p.tiles = divide_up(numel, kMarkedTile);
  p.counts = static_cast<int64_t*>(counts);
  return p;
}

int64_t count_marked(int device, DType dtype, const Marked& p) {
  launch(device, kMarkedCount, dtype, p.tiles, p);
  launch(device, kMarkedScan, dtype, 1, p);
  int64_t count = 0;
  cuda_copy(&count, cpu(), p.counts + p.tiles, cuda(device), sizeof count);
  cuda_synchronize(device);
  return count;
}

// What unique keeps between its two halves.
struct UniqueParts {
  int64_t *counts, *positions, *firsts;
  void *sorted, *sort_workspace;
  int64_t bytes;
  UniqueParts(DType dtype, int64_t numel, void* workspace) {
    Carver memory{static_cast<char*>(workspace)};
    counts = memory.take<int64_t>(cuda_nonzero_workspace(numel));
    positions = memory.take<int64_t>(numel * 8);
    sorted = memory.take(numel * item_size(dtype));
    // The groups' first elements are noted when the sort is over.
    int64_t sorting = cuda_sort_workspace({.dtype = dtype, .lines = {1, numel, 1}, .keep = numel});
    sort_workspace = memory.take(std::max(sorting, numel * 8));
    firsts = static_cast<int64_t*>(sort_workspace);
    bytes = memory.used;
  }
};

}  // namespace

int64_t cuda_sort_workspace(const CudaSort& sort) { return sort_on(kNoDevice, sort, nullptr); }

void cuda_sort(int device, const CudaSort& sort, void* workspace) { sort_on(device, sort, workspace); }

int64_t cuda_nonzero_workspace(int64_t numel) { return (divide_up(numel, kMarkedTile) + 1) * 8; }

int64_t cuda_nonzero_count(int device, DType dtype, const void* x, int64_t numel, void* workspace) {
  return numel == 0 ? 0 : count_marked(device, dtype, marked_of(x, numel, workspace));
}

void cuda_nonzero(int device, DType dtype, const void* x, std::span<const int64_t> sizes, void* workspace,
                  int64_t* coordinates) {
  check(sizes.size() <= 16, "nonzero: a tensor of {} dimensions has too many for the GPU (16)", sizes.size());
  int64_t numel = 1;
  for (int64_t size : sizes) numel *= size;
  if (numel == 0 || sizes.empty()) return;
  Marked p = marked_of(x, numel, workspace);
  p.coordinates = coordinates;
  p.rank = int64_t(sizes.size());
  std::copy(sizes.begin(), sizes.end(), p.sizes);
  launch(device, kMarkedWrite, dtype, p.tiles, p);
}

int64_t cuda_unique_workspace(DType dtype, int64_t numel) { return UniqueParts(dtype, numel, nullptr).bytes; }

int64_t cuda_unique_count(int device, DType dtype, const void* x, int64_t numel, void* workspace) {
  if (numel == 0) return 0;
  UniqueParts parts(dtype, numel, workspace);
  cuda_sort(device, {dtype, {1, numel, 1}, numel, false, x, parts.sorted, parts.positions}, parts.sort_workspace);
  Marked p = marked_of(parts.sorted, numel, parts.counts);
  p.heads = 1;
  return count_marked(device, dtype, p);
}

void cuda_unique(int device, DType dtype, int64_t numel, int64_t count, void* workspace, void* values, int64_t* inverse,
                 int64_t* counts) {
  if (numel == 0) return;
  UniqueParts parts(dtype, numel, workspace);
  Marked p = marked_of(parts.sorted, numel, parts.counts);
  p.heads = 1;
  p.from = parts.positions;
  p.values = values;
  p.inverse = inverse;
  p.firsts = parts.firsts;
  launch(device, kMarkedWrite, dtype, p.tiles, p);
  launch(device, kGroupSizes, dtype, divide_up(count, 256), GroupSizes{parts.firsts, counts, count, numel});
}

void cuda_searchsorted(int device, const CudaSearch& s) {
  if (s.numel == 0) return;
  launch(device, kSearch, s.dtype, divide_up(s.numel, 256),
         Search{s.sorted, s.values, s.places, s.length, s.numel, s.row, s.right});
}

std::string cuda_sort_text(DType dtype) {
  std::string text = embedded::cuda_sort;
  for (int k = 0; k < kKernelCount; ++k) text += source_of(Kernel(k), dtype).text;
  return text;
}

}  // namespace sinter::runtime
