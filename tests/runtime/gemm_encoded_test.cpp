// Products with encoded weights against products with what the codes stand for, in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/encoded.h"
#include "sinter/tensor/dtype.h"
#include "tests/runtime/available_isas.h"

namespace sinter::runtime {
namespace {

struct Case {
  CodeKind kind;
  int64_t n, k, group;
  GemmType scale = GemmType::f32;
  ZeroType zero = ZeroType::none;
  int64_t block_rows = 1;
  bool offset = false;  // zeros are bytes that are added behind the scale; some scales are zero, or next to it
};

// W in memory, and as numbers.
struct Weight {
  EncodedFormat format;
  std::vector<uint8_t> codes, zeros;
  std::vector<float> scale_floats, table;
  std::vector<uint16_t> scale_halves;
  std::vector<double> values;  // [n, k]
  std::vector<int64_t> memory;
  PackedEncoded packed;

  explicit Weight(const Case& c) {
    std::mt19937 rng(unsigned(c.n * 131 + c.k * 17 + c.group + int(c.kind)));
    format = {c.kind, c.k, c.n, c.group, c.scale, c.zero, c.offset};
    const int64_t in_byte = format.codes_in_byte(), row_bytes = (c.k + in_byte - 1) / in_byte;
    const int64_t groups = c.group ? (c.k + c.group - 1) / c.group : 1,
                  blocks = (c.n + c.block_rows - 1) / c.block_rows;
    for (int64_t i = 0; i < c.n * row_bytes; ++i) codes.push_back(uint8_t(rng()));
    for (int64_t i = 0; i < blocks * groups; ++i) {
      float scale = float(rng() % 1000 + 1) / 4096;
      if (c.offset) scale *= 64;
      if (c.offset && i % 5 == 2) scale = i % 2 ? 0 : 1e-30f;
      scale_halves.push_back(c.scale == GemmType::f16 ? Half(scale).bits : BFloat16(scale).bits);
      scale_floats.push_back(c.scale == GemmType::f32   ? scale
                             : c.scale == GemmType::f16 ? float(Half(scale))
                                                        : float(BFloat16(scale)));
      zeros.push_back(uint8_t(c.kind == CodeKind::kUInt4 ? rng() % 16 : rng()));
    }
    for (int i = 0; i < 256; ++i) table.push_back(float(int(rng() % 2001) - 1000) / 256);
    for (int64_t n = 0; n < c.n; ++n)
      for (int64_t k = 0; k < c.k; ++k) {
        const uint8_t byte = codes[size_t(n * row_bytes + k / in_byte)];
        const int code = in_byte == 1 ? byte : byte >> (k % 2 * 4) & 15;
        const size_t at = size_t(n / c.block_rows * groups + (c.group ? k / c.group : 0));
        double value = 0, zero = c.kind == CodeKind::kUInt4 ? 8 : 0;
        if (c.zero == ZeroType::u8) zero = zeros[at];
        if (c.zero == ZeroType::i8) zero = int8_t(zeros[at]);
        double offset = c.offset ? zero : 0;
        if (c.offset) zero = 0;
        if (format.has_table())
          value = table[size_t(code)];
        else
          value = (c.kind == CodeKind::kInt8 ? int8_t(code) : code) - zero;
        values.push_back(value * double(scale_floats[at]) + offset);
      }
    EncodedOperand operand{codes.data(), row_bytes, 1, scale_floats.data(), groups, 1};
    if (c.scale != GemmType::f32) operand.scale = scale_halves.data();
    if (c.zero != ZeroType::none) operand.zero = zeros.data();
    operand.zero_row_stride = groups;
    operand.zero_col_stride = 1;
    operand.block_rows = c.block_rows;
    operand.table = table.data();
    memory.resize(size_t(packed_encoded_bytes(format) + 64) / 8 + 8);
    void* at = reinterpret_cast<void*>((uintptr_t(memory.data()) + 63) / 64 * 64);
    pack_encoded(format, operand, at);
    packed = {format, at};
  }
};

// Rows of A in one of its types.
struct Rows {
  std::vector<float> floats;
  std::vector<uint16_t> halves;
  GemmType type;
  const void* data() const { return type == GemmType::f32 ? static_cast<const void*>(floats.data()) : halves.data(); }

  Rows(int64_t m, int64_t k, GemmType type) : type(type) {
    std::mt19937 rng(unsigned(m * 7 + k));
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < m * k; ++i) {
      // Now and then one far beyond the others, as models have them.
      float value = normal(rng) * (rng() % 97 == 0 ? 30.0f : 1.0f);
      if (type == GemmType::bf16) halves.push_back(BFloat16(value).bits), value = BFloat16(value);
      if (type == GemmType::f16) halves.push_back(Half(value).bits), value = Half(value);
      floats.push_back(value);
    }
  }
};

// The largest error, by the size of the largest result.
double error_of(int64_t m, const Weight& w, GemmType type, CpuIsa isa) {
  const int64_t n = w.format.n, k = w.format.k, stride = n + 3;
  const Rows a(m, k, type);
  std::vector<float> c(size_t(m * stride), 77);
  GemmPart part{n, {}, nullptr, {c.data(), stride, 1}, &w.packed};
  JointOptions options;
  options.isa = isa;
  gemm_joint(m, k, {a.data(), k, 1, type}, {&part, 1}, options);
  double most = 0, off = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < stride; ++j) {
      const float got = c[size_t(i * stride + j)];
      if (j >= n) {
        EXPECT_EQ(got, 77) << "column " << j << " behind " << n;
        continue;
      }
      double want = 0;
      for (int64_t p = 0; p < k; ++p) want += double(a.floats[size_t(i * k + p)]) * w.values[size_t(j * k + p)];
      most = std::max(most, std::abs(want));
      off = std::max(off, std::isfinite(got) ? std::abs(want - double(got)) : INFINITY);
    }
  return most > 0 ? off / most : off;
}

const Case kCases[] = {{CodeKind::kInt8, 40, 64, 0},
                       {CodeKind::kInt8, 33, 131, 0, GemmType::bf16},
                       {CodeKind::kInt8, 70, 300, 32, GemmType::f16, ZeroType::i8},
                       {CodeKind::kInt8, 35, 520, 0, GemmType::f32, ZeroType::none, 4},
                       {CodeKind::kUInt4, 64, 128, 32, GemmType::bf16, ZeroType::u8},
                       {CodeKind::kUInt4, 31, 77, 16, GemmType::f32},
                       {CodeKind::kUInt4, 130, 600, 128, GemmType::f16, ZeroType::u8, 2},
                       {CodeKind::kUInt4, 5, 1100, 0, GemmType::f32, ZeroType::u8},
                       {CodeKind::kTable4, 37, 90, 8, GemmType::bf16},
                       {CodeKind::kTable8, 66, 150, 40, GemmType::f32, ZeroType::none, 3},
                       {CodeKind::kInt8, 70, 300, 32, GemmType::f16, ZeroType::i8, 1, true},
                       {CodeKind::kUInt4, 130, 256, 16, GemmType::f32, ZeroType::u8, 1, true},
                       {CodeKind::kUInt4, 33, 600, 128, GemmType::bf16, ZeroType::i8, 2, true},
                       {CodeKind::kInt8, 1, 1, 0}};

TEST(GemmEncoded, EqualsProductsWithWhatCodesStandFor) {
  for (const Case& c : kCases) {
    const Weight w(c);
    for (CpuIsa isa : available_isas())
      for (GemmType type : {GemmType::f32, GemmType::bf16, GemmType::f16})
        for (int64_t m : {1, 2, 3, 7, 8, 16, 17, 32, 33, 61, 130, 200}) {
          // Decoded panels of many rows are rounded to bf16 where products of bf16 are the machine's own.
          const double allowed = type == GemmType::f32 || isa != CpuIsa::kAvx512 ? 4e-6
                                 : m <= 16 || type == GemmType::f16              ? 3e-4
                                                                                 : 4e-3;
          ASSERT_LE(error_of(m, w, type, isa), allowed)
              << format("kind {} {}x{} by {}, {} rows of type {}, isa {}", int(c.kind), c.n, c.k, c.group, m, int(type),
                        int(isa));
        }
  }
}

TEST(GemmEncoded, EveryNumberOfRows) {
  for (const Case& c : {Case{CodeKind::kInt8, 45, 203, 0, GemmType::bf16},
                        Case{CodeKind::kUInt4, 45, 203, 32, GemmType::bf16, ZeroType::u8}}) {
    const Weight w(c);
    for (int64_t m = 1; m <= 130; ++m) ASSERT_LE(error_of(m, w, GemmType::bf16, best_cpu_isa()), 2e-3) << m << " rows";
  }
}

// Parts together and apart, and an epilogue that sees each element once.
TEST(GemmEncoded, PartsAndTheirEpilogues) {
  const Weight first({CodeKind::kUInt4, 300, 96, 32, GemmType::f32, ZeroType::u8}),
      second({CodeKind::kInt8, 300, 96, 0}), narrow({CodeKind::kInt8, 37, 96, 0});
  for (int64_t m : {1, 5, 50})
    for (bool together : {true, false}) {
      const Rows a(m, 96, GemmType::f32);
      std::vector<const Weight*> weights = {&first, &second};
      if (!together) weights.push_back(&narrow);
      std::vector<std::vector<float>> seen;
      std::vector<GemmPart> parts;
      for (auto* w : weights) {
        seen.emplace_back(size_t(m * w->format.n), 0.0f);
        parts.push_back({w->format.n, {}, nullptr, {nullptr, 0, 0}, &w->packed});
      }
      struct Context {
        std::vector<std::vector<float>>& seen;
        std::vector<const Weight*>& weights;
        bool together;
      } context{seen, weights, together};
      JointEpilogue epilogue{[](void* given, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows,
                                int64_t cols, int64_t stride) {
                               auto& c = *static_cast<Context*>(given);
                               for (size_t p = 0; p < (c.together ? c.weights.size() : 1); ++p)
                                 for (int64_t i = 0; i < rows; ++i)
                                   for (int64_t j = 0; j < cols; ++j) {
                                     const size_t which = c.together ? p : size_t(part);
                                     c.seen[which][size_t((row + i) * c.weights[which]->format.n + col + j)] +=
                                         static_cast<const float*>(tiles[p])[i * stride + j];
                                   }
                             },
                             &context};
      JointOptions options;
      options.together = together;
      options.epilogue = &epilogue;
      gemm_joint(m, 96, {a.data(), 96, 1}, parts, options);
      for (size_t p = 0; p < weights.size(); ++p)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < weights[p]->format.n; ++j) {
            double want = 0;
            for (int64_t k = 0; k < 96; ++k)
              want += double(a.floats[size_t(i * 96 + k)]) * weights[p]->values[size_t(j * 96 + k)];
            ASSERT_NEAR(seen[p][size_t(i * weights[p]->format.n + j)], want, 1e-2)
                << "part " << p << " at " << i << " " << j;
          }
    }
}

TEST(GemmEncoded, TellsOfWhatIsNoNumber) {
  const Weight w({CodeKind::kInt8, 40, 64, 0, GemmType::bf16});
  for (GemmType type : {GemmType::bf16, GemmType::f32}) {
    Rows a(2, 64, type);
    a.floats[70] = NAN;
    if (type == GemmType::bf16) a.halves[70] = BFloat16(NAN).bits;
    std::vector<float> c(80);
    GemmPart part{40, {}, nullptr, {c.data(), 40, 1}, &w.packed};
    gemm_joint(2, 64, {a.data(), 64, 1, type}, {&part, 1});
    for (int j = 0; j < 40; ++j) {
      EXPECT_TRUE(std::isfinite(c[size_t(j)]));
      EXPECT_TRUE(std::isnan(c[size_t(40 + j)]));
    }
  }
}

}  // namespace
}  // namespace sinter::runtime
