#include "sinter/codegen/cuda/gemv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sinter/base/error.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

namespace {

// Of what a multiprocessor has: with a half, the next kernel's first stages arrive while this one ends; with a third,
// those of the one after it too.
constexpr int64_t kSharedThird = 73 * 1024, kSharedHalf = 111 * 1024, kSharedMost = 222 * 1024;
constexpr int64_t kPartialBytes = 12 * 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
bool is_half(DType d) { return d == kBFloat16 || d == kFloat16; }

// What follows from a spec and its tuning.
struct Layout {
  int parts = 1;                 // that advance together
  int units = 1;                 // of 512 bytes: a slice of a row
  bool resident = true;          // the left operand's slice stays in registers
  int groups = 1, steps = 1;     // warps of one slice; stages whose sums meet at a time
  int chunks = 1, halves = 1;    // on tensor cores: stages of a slice; buffers of sums
  int items = 1;                 // columns of a lane, for weights stored [k, n]
  int64_t tiles = 0;
  int registers = 0;             // a guess
  int64_t stage_bytes = 0, barrier_at = 0, partial_at = 0, left_at = 0, shared_bytes = 0;
};

int64_t left_bytes(const GemvSpec& spec) {
  return spec.prologue.empty() ? 0 : spec.m * spec.prologue_stride * item_size(spec.a);
}

// 512 bytes of a row are a unit.
int64_t units_of(const GemvSpec& spec) { return ceil_div(spec.k * item_size(spec.b), 512); }

// Tensor cores: stages that the inner dimension has, and the columns that a block finishes together.
constexpr int64_t kChunk = 64;
int64_t chunks_of(const GemvSpec& spec) { return ceil_div(spec.k, kChunk); }
int64_t pass_of(const GemvTuning& t) { return int64_t(t.warps / t.split_k) * t.rows_per_warp; }
int64_t columns_of_cluster(const GemvSpec& spec) { return ceil_div(spec.columns(), spec.tuning.blocks / spec.tuning.cluster); }

Layout bands_layout(const GemvSpec& spec) {
  Layout out;
  auto& t = spec.tuning;
  out.parts = spec.together ? int(spec.parts.size()) : 1;
  out.groups = t.warps / t.split_k;
  out.chunks = int(ceil_div(chunks_of(spec), t.cluster * t.unroll));
  out.halves = columns_of_cluster(spec) > pass_of(t) ? 2 : 1;
  const int64_t tiles = ceil_div(spec.m, 8), bands = t.rows_per_warp / 16, rows = pass_of(t) * out.parts;
  out.registers = int(64 + out.parts * bands * tiles * 4 + rows * 8 / (32 * t.warps) * 2 + 4 * tiles);
  out.stage_bytes = (rows + (spec.prologue.empty() ? spec.m : 0)) * 128 * t.unroll;
  const int64_t ring = t.stages * out.stage_bytes, sums = t.split_k * out.parts * spec.m * (pass_of(t) + 4) * 4;
  // The sums of a single pass lie where the ring was.
  out.partial_at = out.halves == 1 ? 0 : ring;
  out.left_at = round_up(out.halves == 1 ? std::max(ring, sums) : ring + 2 * sums, 128);
  out.shared_bytes = out.left_at + left_bytes(spec);
  return out;
}

Layout columns_layout(const GemvSpec& spec) {
  Layout out;
  auto& t = spec.tuning;
  out.parts = spec.together ? int(spec.parts.size()) : 1;
  // Sums of a lane: few enough for registers.
  int bytes = 16;
  while (bytes > 4 && out.parts * spec.m * (bytes / item_size(spec.b)) > 32) bytes /= 2;
  out.items = int(bytes / item_size(spec.b));
  int64_t tile = int64_t(t.lanes) * out.items;
  for (auto& part : spec.parts) {
    out.tiles += ceil_div(part.n, tile);
    if (spec.together) break;
  }
  out.left_at = round_up(t.warps * out.parts * spec.m * tile * 4, 128);
  out.shared_bytes = out.left_at + left_bytes(spec);
  return out;
}

Layout layout_of(const GemvSpec& spec) {
  auto& t = spec.tuning;
  if (!spec.parts[0].k_contiguous) return columns_layout(spec);
  if (t.tensor_cores) return bands_layout(spec);
  Layout out;
  out.parts = spec.together ? int(spec.parts.size()) : 1;
  out.units = int(round_up(ceil_div(units_of(spec), t.split_k), t.unroll));
  const int wanted = int(out.units * spec.m * (16 / item_size(spec.b)));  // registers for the left operand
  out.resident = wanted <= 64;
  out.groups = t.warps / t.split_k;
  out.registers = 64 + (out.resident ? wanted : 32) + t.rows_per_warp * out.parts * spec.m;
  int64_t turn = int64_t(out.groups) * t.rows_per_warp, all = ceil_div(ceil_div(spec.columns(), t.blocks), turn);
  int64_t bytes_of_step = t.split_k * out.parts * spec.m * turn * 4;
  out.steps = int(std::clamp<int64_t>(kPartialBytes / bytes_of_step, 1, all));
  out.barrier_at = int64_t(t.warps) * t.stages * t.rows_per_warp * out.parts * t.unroll * 512;
  out.partial_at = out.barrier_at + (t.bulk ? round_up(t.warps * t.stages * 8, 128) : 0);
  // Two sets of sums where they meet more than once.
  out.left_at = round_up(out.partial_at + (all > out.steps ? 2 : 1) * out.steps * bytes_of_step, 128);
  out.shared_bytes = out.left_at + left_bytes(spec);
  return out;
}

std::string type_of(DType d) { return d == kBFloat16 ? "gemv::Bf16" : d == kFloat16 ? "gemv::F16" : "float"; }
std::string text_of(const GemvNumber& n) { return n.slot >= 0 ? format("a_[{}]", n.slot) : format("i64({})", n.value); }

class GemvWriter {
 public:
  explicit GemvWriter(const GemvSpec& spec) : spec_(spec), layout_(layout_of(spec)) {}

  std::string run() {
    auto& t = spec_.tuning;
    const bool rows = spec_.parts[0].k_contiguous, bands = t.tensor_cores;
    line("namespace k {");
    line(format("struct {}_shape {", spec_.name));
    line(format("  typedef {} A;\n  typedef {} B;", type_of(spec_.a), type_of(spec_.b)));
    std::string sizes = format("m = {}, parts = {}, inner = {}, n = {}, blocks = {}", spec_.m, layout_.parts, spec_.k,
                               spec_.columns(), t.blocks);
    if (bands)
      sizes += format(", split = {}, groups = {}, bands = {},\n    cluster = {}, chunks = {}, span = {}, depth = {}, halves = {}",
                      t.split_k, layout_.groups, t.rows_per_warp / 16, t.cluster, layout_.chunks, t.unroll, t.stages,
                      layout_.halves);
    else if (rows)
      sizes += format(", split = {}, groups = {}, rows = {},\n    units = {}, span = {}, depth = {}, steps = {}",
                      t.split_k, layout_.groups, t.rows_per_warp, layout_.units, t.unroll, t.stages, layout_.steps);
    else
      sizes += format(",\n    warps = {}, lanes = {}, items = {}, unroll = {}, tiles = {}", t.warps, t.lanes,
                      layout_.items, t.unroll, layout_.tiles);
    line(format("  enum : int {\n    {},\n    barrier_at = {}, partial_at = {}, left_at = {}\n  };", sizes,
                layout_.barrier_at, layout_.partial_at, layout_.left_at));
    if (bands)
      line(format("  static constexpr bool prologue = {};", !spec_.prologue.empty()));
    else if (rows)
      line(format("  static constexpr bool resident = {}, bulk = {};", layout_.resident, t.bulk));
    else
      tiles();
    weights();
    left();
    finish();
    line("};");
    int threads = 32 * t.warps;
    int together = 1;  // kernels on a multiprocessor
    while (rows && together < 3 && threads * layout_.registers * (together + 1) <= 65536 &&
           layout_.shared_bytes * (together + 1) <= kSharedMost)
      ++together;
    std::string cluster = t.cluster > 1 ? format(" __cluster_dims__({}, 1, 1)", t.cluster) : "";
    line(format("extern \"C\" __global__ void __launch_bounds__({}, {}){} {}(const __grid_constant__ Args<{}> a_) {",
                threads, together, cluster, spec_.name, spec_.slots));
    line(format("  gemv::product_of_{}<{}_shape>(a_);", bands ? "bands" : rows ? "rows" : "columns", spec_.name));
    line("}\n}  // namespace k");
    return std::move(text_);
  }

 private:
  void line(const std::string& s) { text_ += s + "\n"; }

  // Parts side by side: `value(p, first column)` of the one that holds a column.
  template <class F>
  std::string by_column(const std::string& column, F&& value) const {
    std::string out;
    int64_t first = 0;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      bool last = p + 1 == spec_.parts.size();
      out += last ? value(p, first) : format("{} < {} ? {} : ", column, first + spec_.parts[p].n, value(p, first));
      first += spec_.parts[p].n;
    }
    return out;
  }
  template <class F>
  std::string by_part(F&& value) const {
    std::string out;
    for (size_t p = 0; p < spec_.parts.size(); ++p)
      out += p + 1 == spec_.parts.size() ? value(p) : format("part_ == {} ? {} : ", p, value(p));
    return out;
  }

  // Where columns of the weights begin, in bytes.
  void weights() {
    bool rows = spec_.parts[0].k_contiguous;
    int64_t item = item_size(spec_.b);
    std::string members, taken, all;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      auto& part = spec_.parts[p];
      members += format("    const char* b{}_;\n    i64 s{}_;\n", p, p);
      taken += format("{}b{}_((const char*)a_[{}]), s{}_({} * {})", p ? ", " : " ", p, part.b_slot, p,
                      text_of(part.b_stride), item);
      all += format("{}(i64)b{}_ | s{}_", p ? " | " : "", p, p);
    }
    auto start = [&](size_t p, int64_t first) {
      std::string at = first ? format("(column_ - {})", first) : "column_";
      return rows ? format("b{}_ + {} * s{}_", p, at, p) : format("b{}_ + {} * {}", p, at, item);
    };
    auto step = [&](size_t p) { return format("s{}_", p); };
    line("  struct Weights {\n" + members + "    template <class X_>");
    line("    __device__ __forceinline__ explicit Weights(const X_& a_) :" + taken + " {}");
    line("    __device__ __forceinline__ bool is_aligned(int bytes_) const {");
    line(format("      return (({}) & (bytes_ - 1)) == 0;\n    }", all));
    if (spec_.together) {
      line("    __device__ __forceinline__ const char* start(i64 column_, int part_) const {");
      line("      return " + by_part([&](size_t p) { return start(p, 0); }) + ";\n    }");
      line("    __device__ __forceinline__ i64 step(i64, int part_) const { return " + by_part(step) + "; }");
    } else {
      line("    __device__ __forceinline__ const char* start(i64 column_, int) const {");
      line("      return " + by_column("column_", start) + ";\n    }");
      line("    __device__ __forceinline__ i64 step(i64 column_, int) const { return " +
           by_column("column_", [&](size_t p, int64_t) { return step(p); }) + "; }");
    }
    line("  };");
  }

  // The columns of a tile; parts side by side have tiles of their own.
  void tiles() {
    int64_t tile = int64_t(spec_.tuning.lanes) * layout_.items, columns = 0, count = 0;
    std::string begin, end;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      int64_t mine = ceil_div(spec_.parts[p].n, tile);
      if (p + 1 < spec_.parts.size() && !spec_.together) {
        begin += format("tile_ < {} ? ", count + mine);
        end += format("tile_ < {} ? {} : ", count + mine, columns + spec_.parts[p].n);
      }
      begin += format("{} + (tile_ - {}) * {}", columns, count, tile);
      if (p + 1 == spec_.parts.size() || spec_.together) {
        end += format("{}", columns + spec_.parts[p].n);
        break;
      }
      begin += " : ";
      count += mine;
      columns += spec_.parts[p].n;
    }
    line("  static __device__ __forceinline__ int tile_begin(int tile_) { return " + begin + "; }");
    line(format("  static __device__ __forceinline__ int tile_end(int{}) { return {}; }",
                end.find("tile_") == std::string::npos ? "" : " tile_", end));
  }

  void left() {
    line("  template <class X_>\n  static __device__ __forceinline__ const A* left(const X_& a_, char* own_) {");
    if (spec_.prologue.empty()) {
      line(format("    (void)own_;\n    return (const A*)a_[{}];\n  }", spec_.a_slot));
    } else {
      line(format("    {}(gemv::Slots<X_, {}, {}>{a_, (i64)own_}, 0, {});", spec_.prologue, spec_.prologue_slot,
                  spec_.prologue_output, spec_.prologue_range));
      line("    __syncthreads();\n    return (const A*)own_;\n  }");
    }
    GemvNumber stride = spec_.prologue.empty() ? spec_.a_stride : GemvNumber{.value = spec_.prologue_stride};
    line("  template <class X_>\n  static __device__ __forceinline__ i64 left_stride(const X_& a_) {");
    line(format("    {}return {};\n  }", stride.slot < 0 ? "(void)a_;\n    " : "", text_of(stride)));
  }

  std::string finish_part(const GemvSpec::Part& part, int tile, int64_t first) const {
    std::string column = first ? format("column_ - {}", first) : "column_";
    if (!part.epilogue.empty())
      return format("{}(gemv::Slots<X_, {}>{a_}, tiles_, row_, {});", part.epilogue, part.epilogue_slot, column);
    return format("gemv::store<{}>(a_[{}], row_ * {} + {}, tiles_[{}]);", type_of(spec_.c), part.c_slot,
                  text_of(part.c_stride), column, tile);
  }
  void finish() {
    line("  template <class X_>");
    line("  static __device__ __forceinline__ void finish(const X_& a_, const float* tiles_, i64 row_, i64 column_) {");
    int64_t first = 0;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      auto& part = spec_.parts[p];
      if (spec_.together) {
        line("    " + finish_part(part, int(p), 0));
        if (!part.epilogue.empty()) break;
      } else {
        if (p + 1 < spec_.parts.size()) line(format("    if (column_ < {}) {", first + part.n));
        line((p + 1 < spec_.parts.size() ? "      " : "    ") + finish_part(part, 0, first));
        if (p + 1 < spec_.parts.size()) line("      return;\n    }");
        first += part.n;
      }
    }
    line("  }");
  }

  const GemvSpec& spec_;
  Layout layout_;
  std::string text_;
};

// Ways for weights stored [k, n]: tiles narrow enough for all multiprocessors, none narrower than a sector.
std::vector<GemvTuning> column_candidates(GemvSpec spec, int multiprocessors) {
  std::vector<GemvTuning> out;
  for (int lanes : {32, 16, 8, 4, 2})
    for (int warps : {8, 16}) {
      GemvTuning t{.warps = warps, .rows_per_warp = 1, .unroll = 4, .stages = 2, .lanes = lanes};
      spec.tuning = t;
      Layout layout = columns_layout(spec);
      t.blocks = int(std::min<int64_t>(layout.tiles, multiprocessors * (warps == 8 ? 4 : 2)));
      if (layout.shared_bytes <= kSharedMost) out.push_back(t);
    }
  // The widest tiles that occupy all; where none do, the narrower the better.
  auto tiles = [&](const GemvTuning& t) {
    spec.tuning = t;
    return columns_layout(spec).tiles;
  };
  auto cost = [&](const GemvTuning& t) {
    int64_t count = tiles(t);
    return count >= multiprocessors ? double(count) / 1e9 : 1 + double(multiprocessors) / double(count * t.warps);
  };
  std::stable_sort(out.begin(), out.end(), [&](auto& x, auto& y) { return cost(x) < cost(y); });
  return out;
}

// One division of the rows, with as many stages as `budget` bytes hold; stages < 2 where it does not work out.
GemvTuning row_tuning(GemvSpec spec, int blocks, int split, int warps, int bytes_of_stage, int64_t budget) {
  int parts = spec.together ? int(spec.parts.size()) : 1;
  GemvTuning t{.blocks = blocks, .warps = warps, .split_k = split, .stages = 0};
  int units = int(ceil_div(units_of(spec), split));
  int64_t mine = std::max<int64_t>(ceil_div(spec.columns(), blocks) * split / warps, 1);
  // A slice in one stage if it fits, else in equal pieces.
  int64_t room = std::max<int64_t>(bytes_of_stage / (512 * parts), 1);
  int pieces = int(ceil_div(units, room));
  while (units % pieces != 0 && pieces < units) ++pieces;
  t.unroll = units / pieces;
  const int sums = 32 / spec.m;
  while (pieces == 1 && t.rows_per_warp * 2 <= mine && t.rows_per_warp * 2 * parts <= sums &&
         t.rows_per_warp * 2 * parts * t.unroll * 512 <= bytes_of_stage)
    t.rows_per_warp *= 2;
  spec.tuning = t;
  spec.tuning.stages = 1;
  Layout one = layout_of(spec);
  int64_t rest = one.shared_bytes - one.partial_at, turns = ceil_div(mine, t.rows_per_warp) * pieces;
  t.stages = int(std::min<int64_t>({(budget - rest) / one.partial_at, std::max<int64_t>(turns, 2), 16}));
  return t;
}

struct Rated {
  double cost;
  GemvTuning tuning;
  int64_t budget;
  bool like(const Rated& other) const {
    auto &x = tuning, &y = other.tuning;
    return x.split_k == y.split_k && x.blocks == y.blocks && x.warps == y.warps && budget == other.budget;
  }
};

// Bytes a warp asks for at once, and the block's shared memory.
constexpr std::pair<int, int64_t> kStagings[] = {
    {2048, kSharedHalf}, {4096, kSharedHalf}, {8192, kSharedHalf}, {4096, kSharedMost}, {4096, kSharedThird}};

bool can_use_tensor_cores(const GemvSpec& spec) {
  return spec.a == spec.b && is_half(spec.b) && spec.parts[0].k_contiguous && (spec.prologue.empty() || spec.k % kChunk == 0);
}

std::vector<GemvTuning> row_candidates(const GemvSpec& spec, int multiprocessors) {
  std::vector<Rated> rated;
  const int64_t units = units_of(spec);
  for (int split = 1; split <= std::min<int64_t>(units, 16); ++split)
    for (int groups : {1, 2, 4, 8, 16})
      for (int per : {1, 2})
        for (auto [bytes_of_stage, budget] : kStagings) {
          int warps = split * groups;
          if (warps > 16 || (warps < 6 && groups < 16)) continue;
          int blocks = int(std::min<int64_t>(multiprocessors * per, spec.columns()));
          GemvTuning t = row_tuning(spec, blocks, split, warps, bytes_of_stage, budget / per);
          if (t.stages < 2) continue;
          GemvSpec with = spec;
          with.tuning = t;
          Layout layout = layout_of(with);
          double idle = double(layout.units) * split / double(units) - 1;
          double rows = double(ceil_div(spec.columns(), blocks)) * groups, turn = double(t.rows_per_warp) * groups;
          double cost = idle * 100 + (layout.resident ? 0 : 20) +
                        (layout.shared_bytes > kSharedHalf / per ? 6 : 0) + (budget == kSharedThird ? 1.5 : 0) +
                        (warps == 8 ? 0 : warps > 8 ? (warps - 8) * 0.5 : 4) +
                        (per == 1 ? 0 : 3) + (bytes_of_stage == 4096 ? 0 : 1) + (rows < turn ? 2 : 0) +
                        (t.stages < 4 ? 4 - t.stages : 0) + groups * 0.1;
          rated.push_back({cost, t, budget});
        }
  std::stable_sort(rated.begin(), rated.end(), [](const Rated& x, const Rated& y) { return x.cost < y.cost; });
  // Ways that differ in more than the size of a stage, except for the first.
  std::vector<GemvTuning> out;
  std::vector<Rated> taken;
  for (auto& r : rated) {
    auto alike = std::count_if(taken.begin(), taken.end(), [&](auto& other) { return r.like(other); });
    if (out.size() == 10 || alike > (taken.size() < 2 || r.like(taken[0]) ? 1 : 0)) continue;
    if (std::find(out.begin(), out.end(), r.tuning) != out.end()) continue;
    out.push_back(r.tuning);
    taken.push_back(r);
  }
  // Of each division of k the best again by bulk copies, which take whole units.
  std::vector<GemvTuning> bulk;
  for (auto& t : out) {
    auto same = [&](const GemvTuning& b) { return b.split_k == t.split_k; };
    if (bulk.size() == 3 || std::any_of(bulk.begin(), bulk.end(), same)) continue;
    GemvSpec with = spec;
    with.tuning = t;
    with.tuning.bulk = true;
    Layout layout = layout_of(with);
    bool whole = spec.k * item_size(spec.b) == int64_t(t.split_k) * layout.units * 512;
    if (whole && layout.shared_bytes <= kSharedMost) bulk.push_back(with.tuning);
  }
  out.insert(out.end(), bulk.begin(), bulk.end());
  return out;
}

// Microseconds of an H200: a model with few numbers, fitted to the times of 890 kernels there (bench/gpu_products) for
// products of Llamas of 1 and 8 billion parameters with 1 to 64 rows. What it chooses took 1.02 times the best of thirty.
double band_cost(const GemvSpec& spec, const Layout& layout, const GemvDevice& device) {
  auto& t = spec.tuning;
  const double item = double(item_size(spec.b)), columns = double(columns_of_cluster(spec));
  const double passes = std::ceil(columns / double(pass_of(t))), inner = double(layout.chunks * t.unroll * kChunk);
  const double blocks = std::ceil(double(t.blocks) / device.multiprocessors);  // of the busiest multiprocessor
  // What it reads of memory, and through the second-level cache, if there is always enough on its way.
  const double weights = blocks * columns * layout.parts * inner * item;
  const double read = weights + (spec.prologue.empty() ? blocks * passes * double(spec.m) * inner * item : 0);
  const double memory = weights / 40.3e3, cache = read / 45.2e3;
  const double waiting = 1.08 * read / (blocks * double(t.stages - 1) * double(layout.stage_bytes));
  // A stage costs a meeting of its warps and for each step of 16 the way from shared memory through the tensor cores, or their
  // work.
  const double tiles = double(ceil_div(spec.m, 8)), bands = layout.parts * t.rows_per_warp / 16.0;
  const double step = std::max(0.033 * (bands + std::ceil(tiles / 2)), 0.0023 * bands * tiles * t.warps * blocks);
  const double compute = passes * layout.chunks * (0.207 + 4.0 * t.unroll / t.split_k * step);
  double stream = 0;
  for (double bound : {memory, cache, waiting, compute}) stream += std::pow(bound, 4);
  stream = std::pow(stream, 0.25);
  // Large clusters find no place on some multiprocessors, and two blocks of them on others.
  if (t.cluster > 2) stream *= blocks > 1 ? 1.59 : 1.15;
  // Sums that meet.
  const double sums = columns * spec.m / t.cluster * std::sqrt(double(t.cluster * t.split_k)) * blocks;
  double cost = stream + 1.07e-3 * sums;
  if (t.cluster > 1) cost += passes * (0.08 + 0.85 * std::log2(t.cluster));
  // Where there is room beside it, the next kernel's weights arrive while this one ends.
  if (blocks * double(layout.shared_bytes) > double(kSharedHalf)) cost += 1.4;
  return cost;
}

// Pieces of 128 bytes of a row that a stage has, and the block's shared memory.
constexpr std::pair<int, int64_t> kBandStagings[] = {{1, kSharedHalf}, {2, kSharedHalf}, {4, kSharedHalf},
                                                     {1, kSharedMost}, {2, kSharedMost}};

// Ways on tensor cores.
std::vector<GemvTuning> band_candidates(GemvSpec spec, const GemvDevice& device) {
  std::vector<std::pair<double, GemvTuning>> rated;
  const int parts = spec.together ? int(spec.parts.size()) : 1;
  const auto consider = [&](int cluster, int per, int warps, int split, int rows, int unroll, int64_t budget) {
    if (cluster > 1 && !device.clusters) return;
    if (split > 4 * unroll || rows / 4 % split != 0 || split > warps || chunks_of(spec) < cluster * unroll) return;
    if (parts * rows / 16 * ceil_div(spec.m, 8) > 16) return;
    const int clusters = int(std::min<int64_t>(device.multiprocessors * per / cluster, ceil_div(spec.columns(), 16)));
    GemvTuning t{.blocks = std::max(clusters, 1) * cluster, .warps = warps, .split_k = split, .rows_per_warp = rows, .unroll = unroll,
                 .stages = 1, .tensor_cores = true, .cluster = cluster};
    spec.tuning = t;
    const Layout one = bands_layout(spec);
    const int64_t rest = one.shared_bytes - (one.halves == 1 ? one.left_at : one.stage_bytes);
    const int64_t all = ceil_div(columns_of_cluster(spec), pass_of(t)) * one.chunks;
    t.stages = int(std::min<int64_t>({(budget / per - rest) / one.stage_bytes, std::max<int64_t>(all + 1, 3), 16}));
    if (t.stages < 3) return;
    spec.tuning = t;
    const Layout layout = bands_layout(spec);
    // All clusters are to run at once, and larger ones find no place in corners.
    if (layout.shared_bytes > budget / per || (cluster > 2 && layout.shared_bytes > kSharedHalf)) return;
    if (std::any_of(rated.begin(), rated.end(), [&](auto& other) { return other.second == t; })) return;
    rated.push_back({band_cost(spec, layout, device), t});
  };
  for (int cluster : {1, 2, 4, 8})
    for (int per : {1, 2})
      for (int warps : {4, 8})
        for (int split : {1, 2, 4})
          for (int rows : {16, 32})
            for (auto [unroll, budget] : kBandStagings) consider(cluster, per, warps, split, rows, unroll, budget);
  std::stable_sort(rated.begin(), rated.end(), [](auto& x, auto& y) { return x.first < y.first; });
  std::vector<GemvTuning> out;
  for (auto& [cost, t] : rated)
    if (out.size() < 6) out.push_back(t);
  return out;
}

}  // namespace

std::string to_string(const GemvTuning& t) {
  if (t.tensor_cores)
    return format("{}x{} cluster {} split {} rows {} unroll {} stages {} mma", t.blocks, t.warps, t.cluster, t.split_k,
                  t.rows_per_warp, t.unroll, t.stages);
  if (t.lanes) return format("{}x{} lanes {} unroll {}", t.blocks, t.warps, t.lanes, t.unroll);
  return format("{}x{} split {} rows {} unroll {} stages {}{}", t.blocks, t.warps, t.split_k, t.rows_per_warp, t.unroll,
                t.stages, t.bulk ? " bulk" : "");
}

int64_t GemvSpec::columns() const {
  if (together) return parts[0].n;
  int64_t sum = 0;
  for (auto& part : parts) sum += part.n;
  return sum;
}

bool gemv_fits(const GemvSpec& spec, int64_t shared_bytes) {
  auto known = [](DType d) { return is_half(d) || d == kFloat32; };
  if (!known(spec.a) || !known(spec.b) || !known(spec.c) || spec.parts.empty()) return false;
  if (spec.m < 1 || spec.m > (can_use_tensor_cores(spec) ? 64 : 16) || spec.k < 1 || spec.k > (1 << 24) || spec.columns() > (1 << 30)) return false;
  for (auto& part : spec.parts) {
    if (part.n < 1 || part.k_contiguous != spec.parts[0].k_contiguous) return false;
    if (spec.together && part.n != spec.parts[0].n) return false;
  }
  if (spec.together && spec.parts.size() * size_t(spec.m) > (can_use_tensor_cores(spec) ? 128 : 64)) return false;
  return left_bytes(spec) + 48 * 1024 <= shared_bytes && !gemv_candidates(spec, {.multiprocessors = 1}).empty();
}

int64_t gemv_prologue_stride(int64_t k) { return round_up(k, 8) + 8; }

std::vector<GemvTuning> gemv_candidates(const GemvSpec& spec, const GemvDevice& device) {
  if (!spec.parts[0].k_contiguous) return column_candidates(spec, device.multiprocessors);
  const bool tensor_cores = spec.m > 1 && can_use_tensor_cores(spec);
  std::vector<GemvTuning> out;
  if (tensor_cores) out = band_candidates(spec, device);
  if (spec.m > 16 || (spec.m > 4 && !out.empty())) return out;
  auto rows = row_candidates(spec, device.multiprocessors);
  out.insert(out.end(), rows.begin(), rows.end());
  return out;
}

GemvText emit_gemv(const GemvSpec& spec) {
  auto& t = spec.tuning;
  SINTER_INTERNAL_ASSERT(t.blocks > 0 && t.warps > 0 && t.unroll > 0, "{}: a product without a tuning", spec.name);
  SINTER_INTERNAL_ASSERT(t.warps % t.split_k == 0, "{}: {} warps cannot divide k by {}", spec.name, t.warps, t.split_k);
  Layout layout = layout_of(spec);
  return {GemvWriter(spec).run(), unsigned(t.blocks), unsigned(32 * t.warps), unsigned(layout.shared_bytes)};
}

const std::string& gemv_prelude() {
  static const std::string text = std::string(embedded::gemv) + embedded::gemv_columns + embedded::gemv_bands;
  return text;
}

}  // namespace sinter::codegen
