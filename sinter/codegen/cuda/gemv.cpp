#include "sinter/codegen/cuda/gemv.h"

#include <algorithm>
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
  int items = 1;                 // columns of a lane, for weights stored [k, n]
  int64_t tiles = 0;
  int registers = 0;             // a guess
  int64_t barrier_at = 0, partial_at = 0, left_at = 0, shared_bytes = 0;
};

int64_t left_bytes(const GemvSpec& spec) { return spec.prologue.empty() ? 0 : spec.m * spec.k * item_size(spec.a); }

// 512 bytes of a row are a unit.
int64_t units_of(const GemvSpec& spec) { return ceil_div(spec.k * item_size(spec.b), 512); }

// Registers that hold the left operand of so many units.
int left_registers(const GemvSpec& spec, bool tensor_cores, int units) {
  return tensor_cores ? units * (spec.m > 8 ? 64 : 32) : int(units * spec.m * (16 / item_size(spec.b)));
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
  Layout out;
  out.parts = spec.together ? int(spec.parts.size()) : 1;
  out.units = int(round_up(ceil_div(units_of(spec), t.split_k), t.unroll));
  int wanted = left_registers(spec, t.tensor_cores, out.units);
  out.resident = wanted <= 64;
  out.groups = t.warps / t.split_k;
  out.registers = 64 + (out.resident ? wanted : 32) + t.rows_per_warp * out.parts * (t.tensor_cores ? 1 : spec.m);
  int64_t turn = int64_t(out.groups) * t.rows_per_warp, all = ceil_div(ceil_div(spec.columns(), t.blocks), turn);
  int64_t bytes_of_step = t.split_k * out.parts * spec.m * turn * 4;
  out.steps = int(std::clamp<int64_t>(kPartialBytes / bytes_of_step, 1, all));
  int64_t pitch = t.unroll * 512 + (t.tensor_cores ? 64 : 0);
  out.barrier_at = t.warps * t.stages * t.rows_per_warp * out.parts * pitch;
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
    bool rows = spec_.parts[0].k_contiguous;
    line("namespace k {");
    line(format("struct {}_shape {", spec_.name));
    line(format("  typedef {} A;\n  typedef {} B;", type_of(spec_.a), type_of(spec_.b)));
    std::string sizes = format("m = {}, parts = {}, inner = {}, n = {}, blocks = {}", spec_.m, layout_.parts, spec_.k,
                               spec_.columns(), t.blocks);
    if (rows)
      sizes += format(", split = {}, groups = {}, rows = {},\n    units = {}, span = {}, depth = {}, steps = {}",
                      t.split_k, layout_.groups, t.rows_per_warp, layout_.units, t.unroll, t.stages, layout_.steps);
    else
      sizes += format(",\n    warps = {}, lanes = {}, items = {}, unroll = {}, tiles = {}", t.warps, t.lanes,
                      layout_.items, t.unroll, layout_.tiles);
    line(format("  enum : int {\n    {},\n    barrier_at = {}, partial_at = {}, left_at = {}\n  };", sizes,
                layout_.barrier_at, layout_.partial_at, layout_.left_at));
    if (rows)
      line(format("  static constexpr bool mma = {}, resident = {}, bulk = {};", t.tensor_cores, layout_.resident,
                  t.bulk));
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
    line(format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}(const __grid_constant__ Args<{}> a_) {",
                threads, together, spec_.name, spec_.slots));
    line(format("  gemv::product_of_{}<{}_shape>(a_);", rows ? "rows" : "columns", spec_.name));
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
    GemvNumber stride = spec_.prologue.empty() ? spec_.a_stride : GemvNumber{.value = spec_.k};
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
GemvTuning row_tuning(GemvSpec spec, int blocks, int split, int warps, int bytes_of_stage, bool tensor_cores,
                      int64_t budget) {
  int parts = spec.together ? int(spec.parts.size()) : 1;
  GemvTuning t{.blocks = blocks, .warps = warps, .split_k = split, .stages = 0, .tensor_cores = tensor_cores};
  int units = int(ceil_div(units_of(spec), split));
  int least = 1;  // rows of a stage
  if (tensor_cores)
    while (least * parts % 8 != 0) ++least;
  int64_t mine = std::max<int64_t>(ceil_div(spec.columns(), blocks) * split / warps, 1);
  // A slice in one stage if it fits, else in equal pieces.
  int64_t room = std::max<int64_t>(bytes_of_stage / (512 * least * parts), 1);
  int pieces = int(ceil_div(units, room));
  while (units % pieces != 0 && pieces < units) ++pieces;
  t.unroll = units / pieces;
  int sums = tensor_cores ? 32 : 32 / spec.m;
  t.rows_per_warp = least;
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

std::vector<GemvTuning> row_candidates(const GemvSpec& spec, int multiprocessors) {
  std::vector<Rated> rated;
  int64_t units = units_of(spec);
  bool can_use_tiles = spec.a == spec.b && is_half(spec.b);
  for (bool tiles : {false, true}) {
    if (tiles && !can_use_tiles) continue;
    if (!tiles && can_use_tiles && spec.m > 4) continue;
    for (int split = 1; split <= std::min<int64_t>(units, 16); ++split)
      for (int groups : {1, 2, 4, 8, 16})
        for (int per : {1, 2})
          for (auto [bytes_of_stage, budget] : kStagings) {
            int warps = split * groups;
            if (warps > 16 || (warps < 6 && groups < 16)) continue;
            int blocks = int(std::min<int64_t>(multiprocessors * per, spec.columns()));
            GemvTuning t = row_tuning(spec, blocks, split, warps, bytes_of_stage, tiles, budget / per);
            if (t.stages < 2) continue;
            GemvSpec with = spec;
            with.tuning = t;
            Layout layout = layout_of(with);
            double idle = double(layout.units) * split / double(units) - 1;
            double rows = double(ceil_div(spec.columns(), blocks)) * groups, turn = double(t.rows_per_warp) * groups;
            double cost = idle * 100 + (layout.resident ? 0 : 20) +
                          (layout.shared_bytes > kSharedHalf / per ? 6 : 0) + (budget == kSharedThird ? 1.5 : 0) +
                          (warps == 8 ? 0 : warps > 8 ? (warps - 8) * 0.5 : 4) + (tiles != (spec.m > 1) ? 8 : 0) +
                          (per == 1 ? 0 : 3) + (bytes_of_stage == 4096 ? 0 : 1) + (rows < turn ? 2 : 0) +
                          (t.stages < 4 ? 4 - t.stages : 0) + groups * 0.1;
            rated.push_back({cost, t, budget});
          }
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

}  // namespace

std::string to_string(const GemvTuning& t) {
  if (t.lanes) return format("{}x{} lanes {} unroll {}", t.blocks, t.warps, t.lanes, t.unroll);
  return format("{}x{} split {} rows {} unroll {} stages {}{}{}", t.blocks, t.warps, t.split_k, t.rows_per_warp,
                t.unroll, t.stages, t.tensor_cores ? " mma" : "", t.bulk ? " bulk" : "");
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
  if (spec.m < 1 || spec.m > 16 || spec.k < 1 || spec.k > (1 << 24) || spec.columns() > (1 << 30)) return false;
  for (auto& part : spec.parts) {
    if (part.n < 1 || part.k_contiguous != spec.parts[0].k_contiguous) return false;
    if (spec.together && part.n != spec.parts[0].n) return false;
  }
  if (spec.together && spec.parts.size() * size_t(spec.m) > 64) return false;
  return left_bytes(spec) + 48 * 1024 <= shared_bytes && !gemv_candidates(spec, 1).empty();
}

std::vector<GemvTuning> gemv_candidates(const GemvSpec& spec, int multiprocessors) {
  return spec.parts[0].k_contiguous ? row_candidates(spec, multiprocessors) : column_candidates(spec, multiprocessors);
}

GemvText emit_gemv(const GemvSpec& spec) {
  auto& t = spec.tuning;
  SINTER_INTERNAL_ASSERT(t.blocks > 0 && t.warps > 0 && t.unroll > 0, "{}: a product without a tuning", spec.name);
  SINTER_INTERNAL_ASSERT(t.warps % t.split_k == 0, "{}: {} warps cannot divide k by {}", spec.name, t.warps, t.split_k);
  Layout layout = layout_of(spec);
  return {GemvWriter(spec).run(), unsigned(t.blocks), unsigned(32 * t.warps), unsigned(layout.shared_bytes)};
}

const std::string& gemv_prelude() {
  static const std::string text = std::string(embedded::gemv) + embedded::gemv_columns;
  return text;
}

}  // namespace sinter::codegen
