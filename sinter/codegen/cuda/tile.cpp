#include "sinter/codegen/cuda/tile.h"

#include <algorithm>
#include <utility>

#include "sinter/base/error.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

namespace {

constexpr int64_t kRows = 128, kStep = 64;  // of a tile; of the inner dimension in a stage
constexpr int kMostStages = 8;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What follows from a spec and its tuning.
struct Layout {
  int parts = 1;         // that advance together
  int width = 0;         // columns of a part in a tile
  int chunk = 16;        // columns of a part that a warp finishes at a time
  int warp_columns = 4;  // warps side by side, where warps multiply by themselves
  int lanes = 8;
  int64_t steps = 0;  // stages of a block
  int64_t stage_bytes = 0, shared_bytes = 0;
};

Layout layout_of(const TileSpec& spec, const TileTuning& t) {
  Layout out;
  out.parts = spec.together ? int(spec.parts.size()) : 1;
  out.width = t.columns / out.parts;
  out.lanes = 1;
  for (auto& part : spec.parts) out.lanes = std::max(out.lanes, part.epilogue.empty() ? 8 : part.lanes);
  out.steps = ceil_div(ceil_div(spec.k, kStep), t.split);
  int64_t part_bytes = spec.k_contiguous ? out.width * 128 : ceil_div(out.width, 64) * 8192;
  out.stage_bytes = kRows * 128 + out.parts * part_bytes;
  // Of each warp: columns of one part it finishes.
  int own = out.width / t.split;
  if (!t.hopper) {
    while (out.warp_columns > 1 && out.width / out.warp_columns % 16 != 0) out.warp_columns /= 2;
    own = out.width / out.warp_columns;
  }
  out.chunk = out.parts == 1 && own % 32 == 0 ? 32 : 16;
  int64_t finish_bytes = 8 * out.parts * 16 * (out.chunk + 8) * 4;
  out.shared_bytes = t.stages * out.stage_bytes + (t.hopper ? 128 + finish_bytes : 0);
  return out;
}

// Whether products side by side are taken as one, whose tiles reach from one into the next.
bool is_joined(const TileSpec& spec) {
  if (spec.together || spec.parts.size() < 2 || spec.parts.size() > 4 || !spec.k_contiguous) return false;
  return std::all_of(spec.parts.begin(), spec.parts.end(),
                     [&](auto& part) { return part.n % 16 == 0 && part.b_stride == spec.parts[0].b_stride; });
}

int64_t columns_of(const TileSpec& spec) {
  int64_t out = 0;
  for (auto& part : spec.parts) out += part.n;
  return out;
}

// Whether a tile can be divided so.
bool divides(const TileSpec& spec, const TileTuning& t) {
  int parts = spec.together ? int(spec.parts.size()) : 1;
  if (t.columns % parts != 0 || t.columns > 256) return false;
  int width = t.columns / parts;
  if (!spec.k_contiguous && parts > 1 && width % 64 != 0) return false;
  if (t.hopper) return t.columns % 8 == 0 && width % (16 * t.split) == 0;
  return t.split == 1 && width % 16 == 0 && t.columns <= 128;
}

int64_t column_tiles(const TileSpec& spec, const TileTuning& t) {
  if (is_joined(spec)) return ceil_div(columns_of(spec), t.columns);
  if (spec.together) return ceil_div(spec.parts[0].n, t.columns / int64_t(spec.parts.size()));
  int64_t out = 0;
  for (auto& part : spec.parts) out += ceil_div(part.n, t.columns);
  return out;
}

// Clocks of an H200 for m rows, by what bounds a stage: the tensor cores, or what arrives in shared memory.
double clocks(const TileSpec& spec, int64_t m, const TileTuning& t, const TileDevice& device) {
  Layout layout = layout_of(spec, t);
  double multiply = t.columns * (t.hopper ? 4.0 : 7.0), arrive = double(layout.stage_bytes) / 44;
  double tile = double(layout.steps) * std::max(multiply, arrive) + 10.0 * t.columns;
  double waves = double(ceil_div(ceil_div(m, kRows) * column_tiles(spec, t) * t.split, device.multiprocessors));
  return 4000 + waves * tile + (t.hopper ? 0 : 2000 * waves) + (t.split > 1 ? 2500 + 8.0 * t.columns : 0);
}

std::string type_of(DType d) { return d == kBFloat16 ? "bf16" : d == kFloat16 ? "f16" : "f32"; }

class TileWriter {
 public:
  explicit TileWriter(const TileSpec& spec)
      : spec_(spec), tuning_(spec.tuning), layout_(layout_of(spec, spec.tuning)) {}

  std::string run() {
    // Programs hold several such kernels.
    text_ = "#ifndef SINTER_TILE\n#define SINTER_TILE\n" + std::string(embedded::tile) + "#endif\n";
    if (tuning_.hopper) once("SINTER_HOPPER", embedded::hopper);
    once(tuning_.hopper ? "SINTER_TILE_HOPPER" : "SINTER_TILE_MMA",
         tuning_.hopper ? embedded::tile_hopper : embedded::tile_mma);
    if (spec_.image) once("SINTER_TILE_IMAGE", embedded::tile_image);
    line("namespace k {");
    if (spec_.image) image();
    line(format("struct {}_shape {", spec_.name));
    line(format("  typedef tile::{} T;", spec_.dtype == kBFloat16 ? "Bf16" : "F16"));
    line(
        format("  enum : int { columns = {}, parts = {}, split = {}, stages = {}, chunk = {}, lanes = {}, warp_columns "
               "= {} };",
               tuning_.columns, layout_.parts, tuning_.split, tuning_.stages, layout_.chunk, layout_.lanes,
               layout_.warp_columns));
    line(format("  static constexpr bool k_contiguous = {};", spec_.k_contiguous));
    line(format("  static constexpr __device__ int steps() { return {}; }", layout_.steps));
    line("  template <class X_>\n  static __device__ __forceinline__ int rows_(const X_& a_) {");
    line(format("    return int((a_.number({}) + 127) / 128);\n  }", spec_.m_slot));
    line("  template <class X_>\n  static __device__ __forceinline__ int tiles(const X_& a_) {");
    line(format("    return rows_(a_) * {};\n  }", column_tiles(spec_, tuning_)));
    line("  template <class X_>\n  static __device__ __forceinline__ tile::Spot spot_of_(const X_& a_, int tile_) {");
    line(format("    return tile::Spot(tile_, rows_(a_), {});\n  }", column_tiles(spec_, tuning_)));
    left();
    right();
    if (tuning_.hopper) multiply();
    finish();
    line("};");
    std::string cluster = tuning_.split > 1 ? format(" __cluster_dims__({}, 1, 1)", tuning_.split) : "";
    line(format("extern \"C\" __global__ void __launch_bounds__({}, 1){} {}(const __grid_constant__ Args<{}> a_) {",
                tuning_.hopper ? 384 : 256, cluster, spec_.name, spec_.slots));
    line(
        format("  tile::{}_shape>(a_);", (tuning_.hopper ? "multiply_on_hopper<" : "multiply_by_warps<") + spec_.name));
    line("}\n}  // namespace k");
    return std::move(text_);
  }

 private:
  void line(const std::string& s) { text_ += s + "\n"; }
  void once(const char* guard, const char* text) {
    text_ += format("#ifndef {}\n#define {}\n{}#endif\n", guard, guard, text);
  }

  void image() {
    auto& g = *spec_.image;
    line(format("struct {}_image {\n  enum : int {", spec_.name));
    line(format("    channels = {}, height = {}, width = {}, result_height = {}, result_width = {},", g.channels,
                g.height, g.width, g.result_height, g.result_width));
    line(format(
        "    filter_height = {}, filter_width = {}, stride_y = {}, stride_x = {}, padding_y = {}, padding_x = {},",
        g.filter_height, g.filter_width, g.stride[0], g.stride[1], g.padding[0], g.padding[1]));
    line(format("    dilation_y = {}, dilation_x = {}\n  };\n};", g.dilation[0], g.dilation[1]));
  }

  void left() {
    line(format("  template <int threads_>\n  using Left = tile::{};",
                spec_.image ? format("ImageCopies<{}_image, 128, threads_>", spec_.name) : "RowCopies<128, threads_>"));
    line("  template <class X_, class L_>");
    line(
        "  static __device__ __forceinline__ void start_left(const X_& a_, L_& left_, int tile_, int k_, int thread_) "
        "{");
    line(format("    const i64 row_ = i64(spot_of_(a_, tile_).row) * 128, m_ = a_.number({});", spec_.m_slot));
    if (spec_.image)
      line(format("    left_.start((const char*)a_[{}], row_, m_, k_, thread_);\n  }", spec_.a_slot));
    else
      line(format("    left_.start((const char*)a_[{}], {}, row_, m_, k_, {}, thread_);\n  }", spec_.a_slot,
                  spec_.a_stride * 2, spec_.k));
  }

  // Parts side by side have tiles of their own: `text(p, first tile)` inside a choice by the tile's column.
  template <class F>
  void by_tile(F&& text) {
    if (is_joined(spec_)) return by_column(text);
    int64_t first = 0;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      int64_t end = first + ceil_div(spec_.parts[p].n, tuning_.columns);
      bool last = p + 1 == spec_.parts.size();
      line((p ? "    else " : "    ") + (last ? std::string() : format("if (spot_.column < {}) ", end)) + "{");
      text(p, first);
      line("    }");
      first = end;
    }
  }

  // The same of those that are joined, by `all`, the column among all: `text(p, first column)`.
  template <class F>
  void by_column(F&& text) {
    int64_t first = 0;
    for (size_t p = 0; p < spec_.parts.size(); ++p) {
      bool last = p + 1 == spec_.parts.size();
      line((p ? "    else " : "    ") + (last ? std::string() : format("if (all_ < {}) ", first + spec_.parts[p].n)) +
           "{");
      text(p, first);
      line("    }");
      first += spec_.parts[p].n;
    }
  }

  void joined_right() {
    const int64_t bytes = spec_.parts[0].b_stride * 2, total = columns_of(spec_);
    line(format("  template <int threads_>\n  using Right = tile::JoinedCopies<{}, threads_, {}>;", layout_.width,
                spec_.parts.size() - 1));
    line("  template <class X_, class R_>");
    line("  static __device__ __forceinline__");
    line("  void start_right(const X_& a_, R_& right_, int, int tile_, int k_, int thread_) {");
    line(format("    const i64 column_ = i64(spot_of_(a_, tile_).column) * {};", layout_.width));
    line(format("    right_.start((const char*)a_[{}], {}, column_, {}, k_, {}, thread_);", spec_.parts[0].b_slot,
                bytes, total, spec_.k));
    int64_t begin = 0;
    for (size_t p = 1; p < spec_.parts.size(); ++p) {
      begin += spec_.parts[p - 1].n;
      line(format("    right_.join({}, (const char*)a_[{}], {}, {}, column_);", p - 1, spec_.parts[p].b_slot, bytes,
                  begin));
    }
    line("  }");
  }

  void right() {
    if (is_joined(spec_)) return joined_right();
    line(format("  template <int threads_>\n  using Right = tile::{}Copies<{}, threads_>;",
                spec_.k_contiguous ? "Row" : "Column", layout_.width));
    line("  template <class X_, class R_>");
    line("  static __device__ __forceinline__");
    line("  void start_right(const X_& a_, R_& right_, int part_, int tile_, int k_, int thread_) {");
    line("    const tile::Spot spot_ = " + spec_.name + "_shape::spot_of_(a_, tile_);");
    auto call = [&](size_t p, int64_t first) {
      auto& part = spec_.parts[p];
      line(format("      right_.start((const char*)a_[{}], {}, i64(spot_.column - {}) * {}, {}, k_, {}, thread_);",
                  part.b_slot, part.b_stride * 2, first, layout_.width, part.n, spec_.k));
    };
    if (spec_.together) {
      for (size_t p = 0; p < spec_.parts.size(); ++p) {
        line(format("    if (part_ == {}) {", p));
        call(p, 0);
        line("    }");
      }
    } else {
      line("    (void)part_;");
      by_tile(call);
    }
    line("  }");
  }

  // A stage of 64 rows of one operand and all columns of the other, 16 deep at a time; `add`: to what is there. One
  // statement, since compilers take long over its many registers.
  void multiply() {
    int n = tuning_.columns / 2;
    std::string registers, sums;
    for (int i = 0; i < n; ++i) {
      registers += format("{}%{}", i ? ", " : "", i);
      sums += format("{}\"+f\"(c_[{}])", i ? ", " : "", i);
    }
    std::string type = type_of(spec_.dtype);
    line(format("  static __device__ __forceinline__ void multiply(float (&c_)[{}], u64 left_, u64 right_, int add_) {",
                n));
    line("#ifdef __CUDA_ARCH_FEAT_SM90_ALL");
    line(
        format("    asm volatile(\"{\\n.reg .pred p, q;\\n.reg .b64 l, r;\\nsetp.ne.b32 p, %{}, 0;\\nsetp.eq.b32 q, 0, "
               "0;\\nmov.b64 l, %{};\\nmov.b64 r, %{};\\n\"",
               n + 2, n, n + 1));
    for (int j = 0; j < 4; ++j) {
      if (j) line(format("      \"add.s64 l, l, 2;\\nadd.s64 r, r, {};\\n\"", spec_.k_contiguous ? 2 : 128));
      line(format("      \"wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{}}, l, r, {}, 1, 1, 0, {};\\n\"",
                  tuning_.columns, type, type, registers, j ? "q" : "p", spec_.k_contiguous ? 0 : 1));
    }
    line("      \"}\" : " + sums + " : \"l\"(left_), \"l\"(right_), \"r\"(add_));");
    line("#endif\n  }");
  }

  void finish() {
    line("  template <class X_>");
    line(
        "  static __device__ __forceinline__ void finish(const X_& a_, const float* v_, int apart_, int tile_, int "
        "row_, int "
        "column_) {");
    line("    const tile::Spot spot_ = " + spec_.name + "_shape::spot_of_(a_, tile_);");
    line("    const i64 r_ = i64(spot_.row) * 128 + row_;");
    line(format("    if (r_ >= a_.number({})) return;", spec_.m_slot));
    if (is_joined(spec_)) line(format("    const i64 all_ = i64(spot_.column) * {} + column_;", layout_.width));
    auto text = [&](size_t p, int64_t first) {
      auto& part = spec_.parts[p];
      if (is_joined(spec_))
        line(format("      const i64 c_ = all_ - {};", first));
      else
        line(format("      const i64 c_ = i64(spot_.column - {}) * {} + column_;", first, layout_.width));
      line(format("      if (c_ >= {}) return;", part.n));
      if (part.epilogue.empty()) {
        line(format("      tile::store<{}, lanes>(a_[{}], r_ * {} + c_, v_, int({} - c_));", type_of(spec_.c),
                    part.c_slot, part.c_stride, part.n));
      } else {
        line(format("      for (int i_ = 0; i_ < lanes && c_ + i_ < {}; i_ += {})", part.n, part.lanes));
        line(format("        {}_run::finish_(SubArgs<X_, {}>{a_}, v_ + i_, apart_, r_, c_ + i_);", part.epilogue,
                    part.epilogue_slot));
      }
    };
    if (!spec_.together) {
      by_tile(text);
    } else if (!spec_.parts[0].epilogue.empty()) {
      text(0, 0);
    } else {
      for (size_t p = 0; p < spec_.parts.size(); ++p) {
        line("    {");
        text(p, 0);
        line("    }\n    v_ += apart_;");
      }
    }
    line("    (void)apart_;\n  }");
  }

  const TileSpec& spec_;
  const TileTuning& tuning_;
  const Layout layout_;
  std::string text_;
};

}  // namespace

std::string to_string(const TileTuning& t) {
  return format("{} 128x{}{} stages {}", t.hopper ? "wgmma" : "mma", t.columns,
                t.split > 1 ? format(" split {}", t.split) : std::string(), t.stages);
}

bool tile_fits(const TileSpec& spec, const TileDevice& device) {
  if (device.major < 8 || (spec.dtype != kBFloat16 && spec.dtype != kFloat16)) return false;
  if (spec.c != kBFloat16 && spec.c != kFloat16 && spec.c != kFloat32) return false;
  if (spec.k <= 0 || spec.k >= int64_t(1) << 30 || spec.parts.empty()) return false;
  for (auto& part : spec.parts)
    if (part.n <= 0 || part.n >= int64_t(1) << 30 || (spec.together && part.n != spec.parts[0].n)) return false;
  if (spec.together && spec.parts.size() > 2) return false;
  if (auto& g = spec.image) {
    bool small = std::max({g->height, g->width, g->result_height, g->result_width}) < 16384 && g->padding[0] < 16384 &&
                 g->padding[1] < 16384 && g->filter_height * g->dilation[0] < 16384 &&
                 g->filter_width * g->dilation[1] < 16384 && g->result_height * g->stride[0] < 32768 &&
                 g->result_width * g->stride[1] < 32768;
    if (!small || spec.k != g->channels * g->filter_height * g->filter_width) return false;
  }
  return true;
}

std::vector<TileTuning> tile_candidates(const TileSpec& spec, int64_t m, const TileDevice& device) {
  std::vector<TileTuning> out;
  if (!tile_fits(spec, device)) return out;
  const bool hopper = device.major == 9;
  for (int split : {1, 2})  // clusters of four found too few places at once
    for (int columns = hopper ? 64 : 32; columns <= (hopper ? 256 : 128); columns += hopper ? 32 : 32) {
      TileTuning t{.hopper = hopper, .columns = columns, .split = split};
      if (!divides(spec, t)) continue;
      int64_t blocks = ceil_div(m, kRows) * column_tiles(spec, t) * split;
      // Blocks of a cluster wait for each other, and each has one tile.
      if (split > 1 && (blocks > device.multiprocessors || layout_of(spec, t).steps < 4)) continue;
      t.stages = 2;
      while (t.stages < kMostStages) {
        TileTuning more = t;
        ++more.stages;
        if (layout_of(spec, more).shared_bytes > device.shared_bytes) break;
        t = more;
      }
      if (!hopper) t.stages = std::min(t.stages, 4);
      if (t.stages >= 3) out.push_back(t);
    }
  std::stable_sort(out.begin(), out.end(),
                   [&](auto& a, auto& b) { return clocks(spec, m, a, device) < clocks(spec, m, b, device); });
  return out;
}

unsigned tile_blocks(const TileSpec& spec, int64_t m, const TileDevice& device) {
  int64_t tiles = ceil_div(m, kRows) * column_tiles(spec, spec.tuning);
  if (!spec.tuning.hopper) return unsigned(tiles);
  return unsigned(spec.tuning.split > 1 ? tiles * spec.tuning.split : std::min<int64_t>(tiles, device.multiprocessors));
}

TileText emit_tile(const TileSpec& spec) {
  SINTER_INTERNAL_ASSERT(divides(spec, spec.tuning), "{}: {} does not divide it", spec.name, to_string(spec.tuning));
  TileText out;
  out.text = TileWriter(spec).run();
  out.threads = spec.tuning.hopper ? 384 : 256;
  out.shared_bytes = unsigned(layout_of(spec, spec.tuning).shared_bytes);
  return out;
}

std::string emit_tile_channels(const TileChannels& it, const std::string& name) {
  const std::string type = type_of(it.dtype);
  std::string fits = format("fits<{}>((const void*)a_[{}], at_)", type, it.c_slot), vector, one;
  auto add = [&](int slot, const char* at) {
    if (slot < 0) return;
    fits += format(" && fits<{}>((const void*)a_[{}], {})", type, slot, at);
    vector += format("      v_ = v_ + load<{}>((const void*)a_[{}], {});\n", type, slot, at);
    one += format("        v_ += load1<{}>((const void*)a_[{}], {} + i_);\n", type, slot, at);
  };
  add(it.residual_slot, "at_");
  add(it.bias_slot, "col_");
  if (it.relu) {
    vector += "      v_ = maximum(v_, splat_f32(0.0f));\n";
    one += "        v_ = maximum(v_, 0.0f);\n";
  }
  return format("namespace k {\nstruct {}_run : Vectors<8> {\n  template <class A_>\n", name) +
         "  static __device__ __forceinline__ void finish_(const A_& a_, const float* tiles_, int, i64 row_, i64 col_) "
         "{\n" +
         format("    const i64 at_ = row_ * {} + col_;\n    if (col_ + 8 <= {} && {}) {\n", it.n, it.n, fits) +
         "      auto v_ = load<f32>(tiles_, 0);\n" + vector +
         format("      store<{}>((void*)a_[{}], at_, v_);\n    } else {\n", type, it.c_slot) +
         format("      for (int i_ = 0; i_ < 8 && col_ + i_ < {}; ++i_) {\n        float v_ = tiles_[i_];\n", it.n) +
         one +
         format("        store1<{}>((void*)a_[{}], at_ + i_, v_);\n      }\n    }\n  }\n};\n}  // namespace k\n", type,
                it.c_slot);
}

}  // namespace sinter::codegen
