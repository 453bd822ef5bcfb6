#include "sinter/runtime/cpu/gemm/blocked.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime::gemm_detail {

void* allocate_aligned(int64_t bytes) {
  constexpr int64_t kHuge = 2 << 20;
  const int64_t alignment = bytes >= kHuge ? kHuge : 64;
  const int64_t size = (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(size_t(alignment), size_t(size));
  if (!data) throw OutOfMemoryError(format("matmul: no memory for {} bytes of packed operands", bytes));
#if defined(__linux__)
  if (alignment == kHuge) madvise(data, size_t(size), MADV_HUGEPAGE);
#endif
  return data;
}

Scratch::~Scratch() { std::free(data_); }

void* Scratch::reserve(int64_t bytes) {
  if (bytes > size_) {
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
    data_ = allocate_aligned(bytes);
    size_ = bytes;
  }
  return data_;
}

namespace {

constexpr int64_t kSkinnyRows = kMaxDotRows;
constexpr int64_t kRowBlock = 56;            // rows of a packed block of A: a quarter of an L2
constexpr int64_t kBlockBytes = 4096;        // of one column of a k block: deep, since every block updates C once more
constexpr int64_t kFreshRows = 168;          // up to which each task packs its own panels of B
constexpr int64_t kPanelGroup = 4;           // panels packed together
constexpr int64_t kStagedCols = 512;         // columns of C held in compute type across k blocks
constexpr int64_t kPackedBytes = 8ll << 20;  // of B packed at a time, to stay in L3
constexpr int64_t kDotCols = 64;             // columns of dot products between two epilogues

struct ThreadScratch {
  Scratch a, b, tile, turned;
};
ThreadScratch& thread_scratch() {
  thread_local ThreadScratch scratch;
  return scratch;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

template <class T>
int64_t element_size(Storage storage) {
  return storage == kNative ? int64_t(sizeof(T)) : 2;
}

template <class T>
const char* element(const View& v, int64_t row, int64_t col) {
  return static_cast<const char*>(v.data) + (row * v.row_stride + col * v.col_stride) * element_size<T>(v.storage);
}

template <class T>
char* output_at(const Problem<T>& p, int64_t row, int64_t col) {
  return static_cast<char*>(p.c) + (row * p.c_row_stride + col * p.c_col_stride) * element_size<T>(p.c_storage);
}

// Whether kernels write to scratch, to be converted or scattered afterwards, and not to C itself.
template <class T>
bool is_staged(const Problem<T>& p) {
  return p.c_storage != kNative || p.c_col_stride != 1 || (p.swapped && p.epilogue);
}

template <class T>
void load_output(const Problem<T>& p, int64_t row, int64_t col, int64_t rows, int64_t cols, T* tile, int64_t stride) {
  p.core->load(output_at(p, row, col), p.c_storage, p.c_row_stride, p.c_col_stride, rows, cols, tile, stride);
}

// Epilogue and, when staged, the store of a tile whose sums are complete.
template <class T>
void finish(const Problem<T>& p, bool staged, T* tile, int64_t stride, int64_t row, int64_t col, int64_t rows,
            int64_t cols) {
  if (p.epilogue && p.swapped) {
    T* turned = static_cast<T*>(thread_scratch().turned.reserve(rows * cols * int64_t(sizeof(T))));
    p.core->load(tile, kNative, 1, stride, cols, rows, turned, rows);
    p.epilogue->function(p.epilogue->context, turned, p.first_row + col, row, cols, rows, rows);
    p.core->store(turned, rows, cols, rows, output_at(p, row, col), p.c_storage, p.c_col_stride, p.c_row_stride);
    return;
  }
  if (p.epilogue) p.epilogue->function(p.epilogue->context, tile, p.first_row + row, col, rows, cols, stride);
  if (staged)
    p.core->store(tile, stride, rows, cols, output_at(p, row, col), p.c_storage, p.c_row_stride, p.c_col_stride);
}

// Where the kernels read B from: panels packed before; panels that a task packs for itself, each just before its use;
// or the operand itself, where its columns are adjacent.
enum class Supply { kPacked, kFresh, kDirect };

struct Source {
  const char* data;
  Storage storage;
  Supply supply;
  int64_t first_col;   // column of C that `data` starts with
  int64_t panels;      // packed: panels in a k block
  int64_t row_stride;  // direct: of B
};

struct Plan {
  bool direct_a;
  int64_t depth;  // of a k block
  int width;      // log2 of the vectors a micro kernel is wide
  int64_t max_rows;
};

// Panels [first, last) of B's columns from c0 on, rows [p0, p0 + k), each panel k rows deep, the first one to dst.
// Where columns are adjacent the panels advance together, so that a page is read in one visit.
template <class T>
void pack_panels(const Problem<T>& p, int64_t p0, int64_t k, int64_t c0, int64_t c1, int64_t first, int64_t last,
                 T* dst) {
  const GemmCore<T>& core = *p.core;
  const int64_t step = p.b.col_stride == 1 ? 32 : k;
  for (int64_t row = 0; row < k; row += step) {
    for (int64_t panel = first; panel < last; ++panel) {
      const int64_t col = c0 + panel * core.panel, cols = std::min<int64_t>(core.panel, c1 - col);
      core.pack_panel(element<T>(p.b, p0 + row, col), p.b.storage, p.b.row_stride, p.b.col_stride,
                      std::min(step, k - row), cols, dst + ((panel - first) * k + row) * core.panel);
    }
  }
}

// Even blocks of at most `bytes` along k.
template <class T>
int64_t block_depth(int64_t k, int64_t bytes = kBlockBytes) {
  const int64_t most = bytes / int64_t(sizeof(T));
  return k <= most ? std::max<int64_t>(k, 1) : round_up(ceil_div(k, ceil_div(k, most)), 16);
}

// A that the kernels may read where it lies: small, and without rows that share the same lines of L1.
template <class T>
bool reads_well(const Problem<T>& p) {
  if (p.a.row_stride != 1 && p.a.col_stride != 1) return false;
  const int64_t apart = (p.a.row_stride == 1 ? p.a.col_stride : p.a.row_stride) * int64_t(sizeof(T));
  return p.m * p.k * int64_t(sizeof(T)) <= (256 << 10) && apart % 2048 != 0 && apart <= 4096;
}

// C[r0:r1, c0:c1], over the whole of k.
template <class T>
void run_block(const Problem<T>& p, const Plan& plan, const Source& source, int64_t r0, int64_t r1, int64_t c0,
               int64_t c1) {
  const FlushDenormals flush;
  const GemmCore<T>& core = *p.core;
  const int64_t rows = r1 - r0, width = int64_t(core.lanes) << plan.width;
  const int64_t depth = plan.depth, blocks = std::max<int64_t>(1, ceil_div(p.k, depth));
  const int64_t b_size = element_size<T>(source.storage);
  const bool staged = is_staged(p), whole_tile = staged && blocks > 1;

  T* tile = nullptr;
  int64_t stride = p.c_row_stride;
  if (staged) {
    stride = whole_tile ? round_up(c1 - c0, core.lanes) : width;
    tile = static_cast<T*>(thread_scratch().tile.reserve(rows * stride * int64_t(sizeof(T))));
    if (whole_tile && p.accumulate) load_output(p, r0, c0, rows, c1 - c0, tile, stride);
  }

  MicroArgs<T> args;
  args.c_row_stride = stride;
  args.alpha = p.alpha;
  const bool direct = source.supply == Supply::kDirect;
  args.b_k_stride = direct ? source.row_stride : core.panel;
  args.b_ahead = direct ? 512 / b_size : 16 * core.panel;
  T* fresh = nullptr;
  if (source.supply == Supply::kFresh)
    fresh = static_cast<T*>(thread_scratch().b.reserve(depth * core.panel * kPanelGroup * int64_t(sizeof(T))));
  const int64_t row_panels = ceil_div(rows, plan.max_rows);

  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t p0 = block * depth, k = std::min(depth, p.k - p0);
    const T* a;
    if (plan.direct_a) {
      a = reinterpret_cast<const T*>(element<T>(p.a, r0, p0));
      args.a_row_stride = p.a.row_stride;
      args.a_k_stride = p.a.col_stride;
    } else {
      // The kernels take any strides, so packing keeps A's own order; the odd line keeps rows out of each other's sets.
      const bool by_column = p.a.row_stride == 1 && p.a.col_stride != 1;
      const int64_t a_stride = round_up(by_column ? rows : k, 32) + 16;
      T* packed = static_cast<T*>(thread_scratch().a.reserve((by_column ? k : rows) * a_stride * int64_t(sizeof(T))));
      const char* from = element<T>(p.a, r0, p0);
      if (by_column)
        core.load(from, p.a.storage, p.a.col_stride, p.a.row_stride, k, rows, packed, a_stride);
      else
        core.load(from, p.a.storage, p.a.row_stride, p.a.col_stride, rows, k, packed, a_stride);
      a = packed;
      args.a_row_stride = by_column ? 1 : a_stride;
      args.a_k_stride = by_column ? a_stride : 1;
    }
    args.k = k;

    for (int64_t col = c0, cols; col < c1; col += cols) {
      // Only the last vector of a kernel is masked: an edge is taken by the widest kernel it fills.
      int kernel_width = plan.width;
      while (kernel_width > 0 && c1 - col <= int64_t(core.lanes) << (kernel_width - 1)) --kernel_width;
      if (kernel_width > 1 && c1 - col < int64_t(core.lanes) << kernel_width) --kernel_width;
      cols = std::min(int64_t(core.lanes) << kernel_width, c1 - col);
      const auto& kernels = core.micro[source.storage];
      const int64_t source_col = col - source.first_col;
      if (fresh) {
        const int64_t group = p.b.col_stride == 1 ? kPanelGroup : 1;
        const int64_t panel = (col - c0) / core.panel, slot = panel % group;
        if (slot == 0)
          pack_panels(p, p0, k, c0, c1, panel, std::min(panel + group, ceil_div(c1 - c0, core.panel)), fresh);
        args.b = fresh + slot * k * core.panel;
      } else {
        const int64_t offset =
            direct ? p0 * source.row_stride + source_col : p0 * source.panels * core.panel + source_col * k;
        args.b = source.data + offset * b_size;
      }
      T* out = staged ? tile + (whole_tile ? col - c0 : 0) : reinterpret_cast<T*>(output_at(p, r0, col));
      if (staged && !whole_tile && p.accumulate) load_output(p, r0, col, rows, cols, out, stride);

      args.cols = cols;
      args.accumulate = block > 0 || p.accumulate;
      for (int64_t panel = 0, row = 0; panel < row_panels; ++panel) {
        const int64_t end = rows * (panel + 1) / row_panels;
        args.a = a + row * args.a_row_stride;
        args.c = out + row * stride;
        kernels[end - row - 1][kernel_width](args);
        row = end;
      }
      if (block + 1 == blocks) finish(p, staged, out, stride, r0, col, rows, cols);
    }
  }
}

// Threads worth waking: a piece must outweigh its hand-over. Rates are those of one slow core.
template <class T>
int useful_threads(const Problem<T>& p, int threads) {
  const double arithmetic = 2.0 * double(p.m) * double(p.n) * double(p.k) / 60;
  const double traffic = double(p.n) * double(p.k) * double(element_size<T>(p.b.storage)) / 20 +
                         double(p.m) * double(p.n) * sizeof(T) / 20;
  const double nanoseconds = std::max(arithmetic, traffic);
  return int(std::clamp(nanoseconds / 3000, 1.0, double(threads)));
}

// All rows of C by columns [c0, c1), split among threads in both directions, along rows first.
template <class T>
void run_blocks(const Problem<T>& p, const Plan& plan, const Source& source, int64_t c0, int64_t c1, int threads) {
  const int64_t width = int64_t(p.core->lanes) << plan.width, units = ceil_div(c1 - c0, width);
  const bool fresh = source.supply == Supply::kFresh;
  int64_t row_parts = plan.direct_a || fresh ? 1 : ceil_div(p.m, kRowBlock);
  int64_t col_parts = is_staged(p) && p.k > plan.depth ? ceil_div(c1 - c0, kStagedCols) : 1;
  if (threads > 1) {
    const int64_t even = round_up(row_parts, threads);
    if (!fresh) row_parts = std::max(row_parts, std::min(even, p.m / (2 * plan.max_rows)));
    const int64_t step = threads / std::gcd(row_parts, int64_t(threads));
    col_parts = std::min(units, round_up(col_parts, step));
  }
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row = part % row_parts, col = part / row_parts;
      const int64_t first = c0 + units * col / col_parts * width;
      const int64_t last = std::min(c1, c0 + units * (col + 1) / col_parts * width);
      run_block(p, plan, source, p.m * row / row_parts, p.m * (row + 1) / row_parts, first, last);
    }
  };
  if (threads > 1)
    parallel_for(0, row_parts * col_parts, 1, run);
  else
    run(0, row_parts * col_parts);
}

// Few rows, and B contiguous along k: B is streamed once, column by column.
template <class T>
void run_dots(const Problem<T>& p, int threads) {
  const GemmCore<T>& core = *p.core;
  const bool staged = is_staged(p);
  const T* a = static_cast<const T*>(p.a.data);
  int64_t a_stride = p.a.row_stride;
  // Rows of A a power of two apart would share the same few lines of L1 with each other and with B.
  const bool collides = p.m >= 4 && p.k >= 1024 && p.a.row_stride % 64 == 0;
  if (p.a.storage != kNative || (p.a.col_stride != 1 && p.k > 1) || collides) {
    a_stride = round_up(p.k, 32) + 16;
    T* copy = static_cast<T*>(thread_scratch().b.reserve(p.m * a_stride * int64_t(sizeof(T))));
    core.load(p.a.data, p.a.storage, p.a.row_stride, p.a.col_stride, p.m, p.k, copy, a_stride);
    a = copy;
  }
  const auto run = [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t col = unit * kDotCols, cols = std::min(kDotCols, p.n - col);
      T* out = reinterpret_cast<T*>(output_at(p, 0, col));
      int64_t stride = p.c_row_stride;
      if (staged) {
        out = static_cast<T*>(thread_scratch().tile.reserve(p.m * kDotCols * int64_t(sizeof(T))));
        stride = kDotCols;
        if (p.accumulate) load_output(p, 0, col, p.m, cols, out, stride);
      }
      core.dot[p.b.storage][p.m - 1](
          {p.k, a, a_stride, element<T>(p.b, 0, col), p.b.col_stride, out, stride, cols, p.alpha, p.accumulate});
      finish(p, staged, out, stride, 0, col, p.m, cols);
    }
  };
  const int64_t units = ceil_div(p.n, kDotCols);
  if (threads > 1)
    parallel_for(0, units, ceil_div(units, 8 * threads), run);
  else
    run(0, units);
}

template <class T>
void pack_chunk(const Problem<T>& p, int64_t depth, int64_t c0, int64_t c1, T* dst, int threads) {
  const int64_t width = p.core->panel, panels = ceil_div(c1 - c0, width), blocks = ceil_div(p.k, depth);
  const int64_t groups = ceil_div(panels, kPanelGroup), units = groups * blocks;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t p0 = unit / groups * depth, k = std::min(depth, p.k - p0);
      const int64_t first = unit % groups * kPanelGroup, last = std::min(panels, first + kPanelGroup);
      pack_panels(p, p0, k, c0, c1, first, last, dst + (p0 * panels + first * k) * width);
    }
  };
  if (threads > 1)
    parallel_for(0, units, ceil_div(units, 8 * threads), run);
  else
    run(0, units);
}

template <class T>
void swap_operands(Problem<T>& p) {
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.a.row_stride, p.a.col_stride);
  std::swap(p.b.row_stride, p.b.col_stride);
  std::swap(p.c_row_stride, p.c_col_stride);
  p.swapped = !p.swapped;
}

}  // namespace

template <class T>
void multiply(Problem<T> p, int threads) {
  if (!p.packed) {
    // A narrow C streams A as if it were a B; a C stored by columns is a row-major one transposed.
    const bool narrow =
        p.n <= kSkinnyRows && p.m > kSkinnyRows && (p.a.col_stride == 1 ? p.k >= 32 : p.a.row_stride == 1);
    const bool by_columns = p.c_row_stride == 1 && p.c_col_stride != 1 && p.n > 1 && !p.epilogue;
    if (narrow || (by_columns && p.m > kSkinnyRows)) swap_operands(p);
  }
  if (p.n == 1) p.c_col_stride = 1;
  if (p.m == 1) p.a.row_stride = 0;
  threads = threads > 1 ? useful_threads(p, threads) : 1;

  const GemmCore<T>& core = *p.core;
  const bool skinny = p.m <= kSkinnyRows;
  const bool rows_adjacent = p.b.col_stride == 1 || p.n == 1;
  if (!p.packed && skinny && p.b.row_stride == 1 && (!rows_adjacent || p.n == 1) && p.k >= 2 * core.lanes)
    return run_dots(p, threads);

  Plan plan;
  plan.depth = block_depth<T>(p.k);
  plan.direct_a = p.a.storage == kNative && (skinny || p.n <= 2 * core.panel || p.m * p.k <= 8192 || reads_well(p));
  plan.width = 1;
  plan.max_rows = core.max_rows;
  const bool direct_b = !p.packed && rows_adjacent &&
                        (skinny || (p.b.storage == kNative && (p.m <= 2 * core.max_rows || p.n * p.k <= 16384)));
  if (p.packed || direct_b) {
    const auto& kernels = core.micro[p.b.storage];
    if (p.b.storage != kNative) plan.max_rows = core.max_rows_16;
    if (direct_b && skinny) {
      const int64_t rows = ceil_div(p.m, ceil_div(p.m, plan.max_rows));
      while (plan.width + 1 < kWidths && kernels[rows - 1][plan.width + 1]) ++plan.width;
      // Few rows of a large B at a time: rows a power of two apart share lines of L1, and there are eight of each.
      if (p.n * p.k * element_size<T>(p.b.storage) > (256 << 10))
        plan.depth = std::min<int64_t>(plan.depth, p.m <= 2 ? 8 : 16);
    }
    const Source source{static_cast<const char*>(p.packed ? p.packed : p.b.data),
                        p.b.storage,
                        p.packed ? Supply::kPacked : Supply::kDirect,
                        0,
                        ceil_div(p.n, core.panel),
                        p.b.row_stride};
    return run_blocks(p, plan, source, 0, p.n, threads);
  }
  if (p.m <= kFreshRows) {
    plan.depth = block_depth<T>(p.k, kBlockBytes / 2);
    return run_blocks(p, plan, {nullptr, kNative, Supply::kFresh, 0, 0, 0}, 0, p.n, threads);
  }

  const int64_t fit = kPackedBytes / (std::max<int64_t>(p.k, 1) * int64_t(sizeof(T))) / core.panel * core.panel;
  const int64_t chunk = std::min(round_up(p.n, core.panel), std::max<int64_t>(fit, 8 * core.panel));
  T* packed = static_cast<T*>(thread_scratch().b.reserve(chunk * p.k * int64_t(sizeof(T))));
  for (int64_t col = 0; col < p.n; col += chunk) {
    const int64_t end = std::min(p.n, col + chunk);
    pack_chunk(p, plan.depth, col, end, packed, threads);
    const Source source{reinterpret_cast<const char*>(packed), kNative, Supply::kPacked, col,
                        ceil_div(end - col, core.panel),       0};
    run_blocks(p, plan, source, col, end, threads);
  }
}

template <class T>
int64_t packed_elements(const GemmCore<T>& core, int64_t k, int64_t n) {
  return k * round_up(n, core.panel);
}

template <class T>
void pack_whole(const GemmCore<T>& core, int64_t k, int64_t n, const View& b, void* dst) {
  const int threads = n * k > 65536 ? num_threads() : 1;
  Problem<T> p{};
  p.core = &core;
  p.n = n;
  p.k = k;
  p.b = b;
  if (b.storage == kNative) return pack_chunk(p, block_depth<T>(k), 0, n, static_cast<T*>(dst), threads);

  const int64_t depth = block_depth<T>(k), panels = ceil_div(n, core.panel), width = core.panel;
  uint16_t* out = static_cast<uint16_t*>(dst);
  parallel_for(0, panels, ceil_div(panels, 8 * threads), [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      for (int64_t row = 0; row < k; ++row) {
        const int64_t p0 = row / depth * depth, rows = std::min(depth, k - p0);
        uint16_t* line = out + (p0 * panels + panel * rows + row - p0) * width;
        const uint16_t* from = reinterpret_cast<const uint16_t*>(element<T>(b, row, panel * width));
        for (int64_t j = 0; j < width; ++j) line[j] = panel * width + j < n ? from[j * b.col_stride] : uint16_t(0);
      }
    }
  });
}

template void multiply(Problem<float>, int);
template void multiply(Problem<double>, int);
template int64_t packed_elements(const GemmCore<float>&, int64_t, int64_t);
template int64_t packed_elements(const GemmCore<double>&, int64_t, int64_t);
template void pack_whole(const GemmCore<float>&, int64_t, int64_t, const View&, void*);
template void pack_whole(const GemmCore<double>&, int64_t, int64_t, const View&, void*);

}  // namespace sinter::runtime::gemm_detail
