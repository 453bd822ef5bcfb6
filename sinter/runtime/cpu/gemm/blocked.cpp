#include "sinter/runtime/cpu/gemm/blocked.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/block.h"
#include "sinter/runtime/cpu/gemm/packing.h"

namespace sinter::runtime::gemm_detail {
namespace {

constexpr int64_t kSkinnyRows = kMaxDotRows;
constexpr int64_t kRowBlock = 56;            // rows of a packed block of A: a quarter of an L2
constexpr int64_t kFreshRows = 168;          // up to which each task packs its own panels of B
constexpr int64_t kStagedCols = 512;         // columns of C held in compute type across k blocks
constexpr int64_t kPackedBytes = 8ll << 20;  // of B packed at a time, to stay in L3
// Up to so many rows, a few at a time, a B whose columns are contiguous is read where it lies by dot products: packing it
// costs more than their slower kernels do, and the second few rows find it in L2.
constexpr int64_t kDotRows = 32, kDotRowsPairs = 64;
constexpr int64_t kDotCols = 64;             // columns of dot products between two epilogues
constexpr int64_t kDotBytes = 32 << 10;      // of rows of A that dot products read at a time, to stay in L1
constexpr int64_t kTiledRows = 16;           // from which tile registers are worth their set-up
constexpr int64_t kMixedRows = 16;           // rows between two epilogues over parts of different plans

// A that the kernels may read where it lies: small, and without rows that share the same lines of L1.
template <class T>
bool reads_well(const Problem<T>& p) {
  if (p.a.row_stride != 1 && p.a.col_stride != 1) return false;
  const int64_t apart = (p.a.row_stride == 1 ? p.a.col_stride : p.a.row_stride) * int64_t(sizeof(T));
  return p.m * p.k * int64_t(sizeof(T)) <= (256 << 10) && apart % 2048 != 0 && apart <= 4096;
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

// Turns the problem the way it is computed best.
template <class T>
void orient(Problem<T>& p, bool has_epilogue) {
  if (!p.packed && !p.maker) {
    // A narrow C streams A as if it were a B; a C stored by columns is a row-major one transposed.
    const bool narrow =
        p.n > 0 && p.n <= kSkinnyRows && p.m > kSkinnyRows && (p.a.col_stride == 1 ? p.k >= 32 : p.a.row_stride == 1);
    const bool by_columns = p.c_row_stride == 1 && p.c_col_stride != 1 && p.n > 1 && !has_epilogue;
    if (narrow || (by_columns && p.m > kSkinnyRows)) swap_operands(p);
  }
  if (p.n == 1) p.c_col_stride = 1;
  if (p.m == 1) p.a.row_stride = 0;
}

// Tile registers multiply so fast that packing for them pays sooner.
template <class T>
int64_t most_dot_rows(const Problem<T>& p, bool both_bf16) {
  return !both_bf16 ? kDotRows : p.bf16->tile ? kTiledRows : kDotRowsPairs;
}

// The k block of dot products: so deep that the rows of A that are multiplied at a time stay in L1.
template <class T>
int64_t dot_depth(const Problem<T>& p, bool bf16) {
  const int64_t row = int64_t(bf16 ? sizeof(BFloat16) : sizeof(T)) * std::min<int64_t>(p.m, kMaxDotRows);
  return p.k * row <= kDotBytes ? p.k : round_up(ceil_div(p.k, ceil_div(p.k * row, kDotBytes)), 64);
}

// Chooses the way, and with it where the kernels find B.
template <class T>
void make_plan(Problem<T>& p) {
  const GemmCore<T>& core = *p.core;
  Plan& plan = p.plan;
  const bool skinny = p.m <= kSkinnyRows;
  const bool rows_adjacent = p.b.col_stride == 1 || p.n == 1;
  plan = {};
  plan.max_rows = core.max_rows;
  plan.depth = block_depth<T>(p.k);
  p.source = {nullptr, kNative, 0, p.n, 0};
  const bool both_bf16 = p.bf16 && p.a.storage == kBFloat16 && p.b.storage == kBFloat16;
  if (!p.packed && !p.maker && p.m <= most_dot_rows(p, both_bf16) && p.b.row_stride == 1 && (!rows_adjacent || p.n == 1) && p.k >= 2 * core.lanes) {
    plan.supply = Supply::kDots;
    // Pairs of B where they lie: none may be cut by the end of a column.
    plan.bf16 = both_bf16 && p.k % 2 == 0 && p.b.col_stride % 2 == 0;
    plan.direct_a = !plan.bf16;
    plan.depth = dot_depth(p, plan.bf16);
    plan.step = kDotCols;
    return;
  }
  plan.direct_a = p.a.storage == kNative && (skinny || p.n <= 2 * core.panel || p.m * p.k <= 8192 || reads_well(p));
  const bool direct_b = !p.packed && !p.maker && rows_adjacent &&
                        (skinny || (p.b.storage == kNative && (p.m <= 2 * core.max_rows || p.n * p.k <= 16384)));
  if (p.packed || direct_b) {
    plan.supply = p.packed ? Supply::kPacked : Supply::kDirect;
    const auto& kernels = core.micro[p.b.storage];
    if (p.b.storage != kNative) plan.max_rows = core.max_rows_16;
    if (p.packed && p.b.storage == kBFloat16) plan.max_rows = core.max_rows_pairs;
    if (direct_b && skinny) {
      const int64_t rows = ceil_div(p.m, ceil_div(p.m, plan.max_rows));
      while (plan.width + 1 < kWidths && kernels[rows - 1][plan.width + 1]) ++plan.width;
      // Few rows of a large B at a time: rows a power of two apart share lines of L1, and there are eight of each.
      if (p.n * p.k * element_size<T>(p.b.storage) > (256 << 10))
        plan.depth = std::min<int64_t>(plan.depth, p.m <= 2 ? 8 : 16);
    }
    p.source.data = static_cast<const char*>(p.packed ? p.packed : p.b.data);
    p.source.storage = p.packed ? packed_as(p.b.storage) : p.b.storage;
    p.source.stride = p.packed ? ceil_div(p.n, core.panel) : p.b.row_stride;
  } else if (p.m <= kFreshRows) {
    plan.supply = Supply::kFresh;
    plan.depth = block_depth<T>(p.k, kBlockBytes / 2);
  } else {
    plan.supply = Supply::kChunked;
  }
  if (both_bf16 && plan.supply != Supply::kDirect) {
    plan.bf16 = true;
    plan.tiles = p.bf16->tile && p.m >= kTiledRows;
    plan.max_rows = plan.tiles ? kMaxTileRows : p.bf16->max_rows;
    p.source.storage = kPairs;
  }
  plan.step = int64_t(core.lanes) << plan.width;
}

// Few rows of A in the form their kernels want them, copied once for all tasks: in the compute type and, for dots,
// contiguous and apart by no power of two, where they would share lines of L1 with each other and with B.
template <class T>
bool wants_rows(const Problem<T>& p) {
  if ((p.m > kSkinnyRows && p.plan.supply != Supply::kDots) || p.plan.bf16) return false;
  const bool collides = p.m >= 4 && p.k >= 1024 && p.a.row_stride % 64 == 0;
  return p.a.storage != kNative || (p.plan.supply == Supply::kDots && ((p.a.col_stride != 1 && p.k > 1) || collides));
}

template <class T>
void copy_rows(std::span<Problem<T>> parts) {
  int64_t size = 0;
  const int64_t stride = round_up(parts.front().k, 32) + 16;
  for (const auto& p : parts) size += wants_rows(p) ? p.m * stride : 0;
  if (size == 0) return;
  T* to = static_cast<T*>(thread_scratch().rows.reserve(size * int64_t(sizeof(T))));
  View from{}, made{};
  for (auto& p : parts) {
    if (!wants_rows(p)) continue;
    if (p.a.data != from.data) {
      from = p.a;
      p.core->load(from.data, from.storage, from.row_stride, from.col_stride, p.m, p.k, to, stride);
      made = {to, stride, 1, kNative};
      to += p.m * stride;
    }
    p.a = made;
    p.plan.direct_a = true;
  }
}

// Threads worth waking: a piece must outweigh its hand-over. Rates are those of one slow core.
template <class T>
int useful_threads(std::span<const Problem<T>> parts, int threads) {
  double nanoseconds = 0;
  for (const auto& p : parts) {
    const double arithmetic = 2.0 * double(p.m) * double(p.n) * double(p.k) / 60;
    const double traffic = double(p.n) * double(p.k) * double(element_size<T>(p.b.storage)) / 20 +
                           double(p.m) * double(p.n) * sizeof(T) / 20;
    nanoseconds += std::max(arithmetic, traffic);
  }
  return int(std::clamp(nanoseconds / 3000, 1.0, double(threads)));
}

// A group's work cut into tasks: rows by columns, along rows first.
struct Grid {
  int64_t rows, cols;
  int64_t tasks() const { return rows * cols; }
};

template <class T>
Grid split(const Group<T>& group, int threads) {
  const Problem<T>& p = group.parts.front();
  const Plan& plan = p.plan;
  const int64_t units = group.units();
  const bool whole_rows = plan.direct_a || plan.supply == Supply::kFresh;
  bool staged = false;
  for (const auto& part : group.parts) staged = staged || is_staged(group, part);
  Grid grid{whole_rows ? 1 : ceil_div(p.m, kRowBlock),
            staged && p.k > plan.depth ? ceil_div(units * plan.step, kStagedCols) : 1};
  if (threads > 1) {
    const int64_t even = round_up(grid.rows, threads);
    if (plan.supply == Supply::kDots) {
      grid.cols = 8 * threads;
    } else if (plan.supply != Supply::kFresh) {
      grid.rows = std::max(grid.rows, std::min(even, p.m / (2 * plan.max_rows)));
    }
    const int64_t step = threads / std::gcd(grid.rows, int64_t(threads));
    grid.cols = std::min(units, round_up(grid.cols, step));
  }
  return grid;
}

template <class T>
void run_task(const Group<T>& group, const Grid& grid, int64_t task) {
  const int64_t m = group.parts.front().m, units = group.units();
  const int64_t row = task % grid.rows, col = task / grid.rows;
  run_block(group, m * row / grid.rows, m * (row + 1) / grid.rows, units * col / grid.cols,
            units * (col + 1) / grid.cols);
}

template <class T>
void run_group(const Group<T>& group, int threads) {
  const Grid grid = split(group, threads);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) run_task(group, grid, task);
  };
  if (threads > 1)
    parallel_for(0, grid.tasks(), 1, run);
  else
    run(0, grid.tasks());
}

// Packs as much of B as stays in L3, multiplies with it, and goes on with the next columns.
template <class T>
void run_chunks(const Group<T>& group, std::span<Problem<T>> parts, int threads) {
  const GemmCore<T>& core = *parts.front().core;
  const int64_t k = parts.front().k, depth = group.plan().depth;
  const int64_t abreast = group.together ? int64_t(parts.size()) : 1;
  const int64_t fit = kPackedBytes / (std::max<int64_t>(k, 1) * int64_t(sizeof(T)) * abreast) / core.panel * core.panel;
  const int64_t room = std::max<int64_t>(fit, 8 * core.panel);
  int64_t total = 0;
  for (const auto& p : parts) total += round_up(p.n, core.panel);
  char* packed = static_cast<char*>(
      thread_scratch().b.reserve(std::min(total, room * abreast) * round_up(k + 1, 2) * int64_t(sizeof(T))));
  for (auto& p : parts) p.source.end = 0;
  for (;;) {
    char* to = packed;
    int64_t left = room;
    for (auto& p : parts) {
      p.source.begin = p.source.end;
      p.source.end = std::min(p.n, p.source.begin + (group.together ? room : left));
      const int64_t cols = round_up(p.source.end - p.source.begin, core.panel);
      p.source.data = to;
      p.source.stride = cols / core.panel;
      if (cols > 0) pack_chunk(p, depth, p.source.begin, p.source.end, p.source.storage, to, threads);
      to += cols * padded_depth(k, p.source.storage) * element_size<T>(p.source.storage);
      left -= cols;
    }
    if (group.units() == 0) return;
    run_group(group, threads);
  }
}

// Whether one walk over the columns serves both.
template <class T>
bool alike(const Problem<T>& a, const Problem<T>& b) {
  return a.core == b.core && a.m == b.m && a.swapped == b.swapped && a.a.data == b.a.data && a.plan == b.plan;
}

template <class T>
bool all_alike(std::span<const Problem<T>> parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const Problem<T>& p) { return alike(parts.front(), p); });
}

// Parts that must finish together but go different ways: each for itself, then the epilogue over all.
template <class T>
void multiply_mixed(const Launch<T>& launch, int threads) {
  Problem<T> first = launch.parts.front();
  if (first.swapped) swap_operands(first);
  const int64_t m = first.m, n = first.n, count = int64_t(launch.parts.size());
  const GemmCore<T>& core = *launch.parts.front().core;
  const std::unique_ptr<void, void (*)(void*)> memory(allocate_aligned(count * m * n * int64_t(sizeof(T))), std::free);
  T* tiles = static_cast<T*>(memory.get());
  for (int64_t i = 0; i < count; ++i) {
    Problem<T> p = launch.parts[size_t(i)];
    if (p.swapped) swap_operands(p);
    p.c = tiles + i * m * n;
    p.c_row_stride = n;
    p.c_col_stride = 1;
    p.c_storage = kNative;
    multiply<T>({{&p, 1}, false, nullptr, 0}, threads);
  }
  const auto run = [&](int64_t begin, int64_t end) {
    void* shown[kMaxTogether];
    for (int64_t i = 0; i < count; ++i) shown[i] = tiles + (i * m + begin) * n;
    if (launch.epilogue)
      launch.epilogue->function(launch.epilogue->context, shown, 0, launch.first_row + begin, 0, end - begin, n, n);
    for (int64_t i = 0; i < count; ++i) {
      Problem<T> p = launch.parts[size_t(i)];
      if (!p.c) continue;
      if (p.swapped) swap_operands(p);
      char* to = static_cast<char*>(p.c) + begin * p.c_row_stride * element_size<T>(p.c_storage);
      core.store(static_cast<T*>(shown[i]), n, end - begin, n, to, p.c_storage, p.c_row_stride, p.c_col_stride);
    }
  };
  if (threads > 1)
    parallel_for(0, m, kMixedRows, run);
  else
    run(0, m);
}

}  // namespace

template <class T>
void multiply(const Launch<T>& launch, int threads) {
  const std::span<Problem<T>> parts = launch.parts;
  for (auto& p : parts) {
    orient(p, launch.epilogue != nullptr);
    make_plan(p);
  }
  if (launch.together && !all_alike<T>(parts)) return multiply_mixed(launch, threads);
  copy_rows(parts);
  if (threads > 1) threads = useful_threads<T>(parts, threads);

  // Adjacent parts that are alike form a group.
  const auto group_end = [&](size_t begin) {
    size_t end = begin + 1;
    while (end < parts.size() && alike(parts[begin], parts[end])) ++end;
    return end;
  };
  const auto group_of = [&](size_t begin, size_t end) {
    return Group<T>{parts.subspan(begin, end - begin), launch.together, launch.epilogue, launch.first_row,
                    int64_t(begin)};
  };
  const size_t first_end = group_end(0);
  if (first_end == parts.size()) {
    const Group<T> group = group_of(0, first_end);
    return group.plan().supply == Supply::kChunked ? run_chunks(group, parts, threads) : run_group(group, threads);
  }

  struct Placed {
    Group<T> group;
    Grid grid;
    int64_t first_task;
  };
  std::vector<Placed> placed;
  int64_t tasks = 0;
  for (size_t begin = 0, end; begin < parts.size(); begin = end) {
    end = group_end(begin);
    const Group<T> group = group_of(begin, end);
    if (group.plan().supply == Supply::kChunked) {
      run_chunks(group, parts.subspan(begin, end - begin), threads);
      continue;
    }
    placed.push_back({group, split(group, threads), tasks});
    tasks += placed.back().grid.tasks();
  }
  const auto run = [&](int64_t begin, int64_t end) {
    size_t at = 0;
    for (int64_t task = begin; task < end; ++task) {
      while (at + 1 < placed.size() && placed[at + 1].first_task <= task) ++at;
      run_task(placed[at].group, placed[at].grid, task - placed[at].first_task);
    }
  };
  if (threads > 1)
    parallel_for(0, tasks, 1, run);
  else
    run(0, tasks);
}

template void multiply(const Launch<float>&, int);
template void multiply(const Launch<double>&, int);

}  // namespace sinter::runtime::gemm_detail
