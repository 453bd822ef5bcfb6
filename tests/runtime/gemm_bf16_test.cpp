#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/gemm.h"
#include "tests/runtime/available_isas.h"

namespace sinter::runtime {
namespace {

uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t(bits >> 16);
}

struct Case {
  int64_t m, n, k;
  bool a_by_columns = false, b_by_columns = false, packed = false, f32_a = false, accumulate = false;
  int64_t pad = 0;  // elements between rows beyond what they need
  CpuIsa isa = best_cpu_isa();
};

// Small integers, whose sums are exact in any order: the result must equal the plain loop's.
void check_exact(const Case& t) {
  std::mt19937 rng(unsigned(t.m * 31 + t.n * 7 + t.k));
  const int64_t a_rows = t.a_by_columns ? t.k : t.m, a_stride = (t.a_by_columns ? t.m : t.k) + t.pad;
  const int64_t b_rows = t.b_by_columns ? t.n : t.k, b_stride = (t.b_by_columns ? t.k : t.n) + t.pad;
  std::vector<uint16_t> a(size_t(a_rows * a_stride)), b(size_t(b_rows * b_stride));
  std::vector<float> wide(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    wide[i] = float(int(rng() % 17) - 8);
    a[i] = to_bf16(wide[i]);
  }
  for (uint16_t& v : b) v = to_bf16(float(int(rng() % 17) - 8));
  const GemmOperand va{t.f32_a ? static_cast<const void*>(wide.data()) : a.data(), t.a_by_columns ? 1 : a_stride,
                       t.a_by_columns ? a_stride : 1, t.f32_a ? GemmType::f32 : GemmType::bf16};
  const GemmOperand vb{b.data(), t.b_by_columns ? 1 : b_stride, t.b_by_columns ? b_stride : 1, GemmType::bf16};
  const auto value = [](uint16_t v) {
    const uint32_t bits = uint32_t(v) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  };
  for (int threads : {1, 2}) {
    const int before = num_threads();
    set_num_threads(threads);
    std::vector<float> c(size_t(t.m * t.n), 3.0f);
    const GemmOptions options{.alpha = 0.5, .accumulate = t.accumulate, .isa = t.isa};
    if (t.packed)
      gemm(t.m, va, pack_b(t.k, t.n, vb, t.isa), {c.data(), t.n, 1}, options);
    else
      gemm(t.m, t.n, t.k, va, vb, {c.data(), t.n, 1}, options);
    set_num_threads(before);
    for (int64_t i = 0; i < t.m; ++i) {
      for (int64_t j = 0; j < t.n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < t.k; ++p)
          sum += wide[size_t(t.a_by_columns ? p * a_stride + i : i * a_stride + p)] *
                 value(b[size_t(t.b_by_columns ? j * b_stride + p : p * b_stride + j)]);
        ASSERT_EQ(c[size_t(i * t.n + j)], 0.5f * sum + (t.accumulate ? 3.0f : 0.0f))
            << format("{}x{}x{} layouts {}{} packed {} f32 {} pad {} isa {} threads {} at {} {}", t.m, t.n, t.k,
                      t.a_by_columns, t.b_by_columns, t.packed, t.f32_a, t.pad, int(t.isa), threads, i, j);
      }
    }
  }
}

class GemmBf16 : public testing::TestWithParam<CpuIsa> {};

TEST_P(GemmBf16, EveryWayEqualsThePlainLoop) {
  const int64_t rows[] = {1, 2, 7, 8, 9, 16, 17, 33, 57, 175}, columns[] = {1, 5, 31, 32, 45, 64, 97};
  const int64_t depths[] = {1, 2, 15, 32, 33, 64, 95, 130};
  std::mt19937 rng(11);
  for (int round = 0; round < 250; ++round) {
    Case t{rows[rng() % 10], columns[rng() % 7], depths[rng() % 8]};
    t.a_by_columns = rng() % 3 == 0;
    t.b_by_columns = rng() % 2;
    t.packed = rng() % 3 == 0;
    t.f32_a = rng() % 3 == 0;
    t.accumulate = rng() % 2;
    t.pad = int64_t(rng() % 3);
    t.isa = GetParam();
    check_exact(t);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmBf16, SeveralBlocksAlongK) {
  for (int64_t m : {1, 6, 8, 20, 63, 64, 180}) {
    for (int way = 0; way < 8; ++way) {
      Case t{m, 40, 2051 + m % 2};
      t.b_by_columns = way & 1;
      t.packed = way & 2;
      t.f32_a = way & 4;
      t.isa = GetParam();
      check_exact(t);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmBf16, testing::ValuesIn(available_isas()), [](const auto& info) {
  return std::string(cpu_isa_name(info.param));
});

// A value that bf16 cannot hold must reach the sum whole.
TEST(GemmBf16Mixed, Float32RowsAreNotRounded) {
  const float fine = 1 + 0x1p-20f;
  for (int64_t m : {1, 20, 200}) {
    for (bool transposed : {false, true}) {
      const int64_t n = 40, k = 64;
      std::vector<float> a(size_t(m * k)), c(size_t(m * n));
      for (int64_t i = 0; i < m; ++i) a[size_t(i * k + i % k)] = fine;
      const std::vector<uint16_t> b(size_t(k * n), to_bf16(1));
      const GemmOperand view{b.data(), transposed ? 1 : n, transposed ? k : 1, GemmType::bf16};
      gemm(m, n, k, {a.data(), k, 1}, view, {c.data(), n, 1});
      for (float v : c) ASSERT_EQ(v, fine);
      gemm(m, {a.data(), k, 1}, pack_b(k, n, view), {c.data(), n, 1});
      for (float v : c) ASSERT_EQ(v, fine);
    }
  }
}

// Where the machine has tile registers, products of sixteen rows and more go through them.
TEST(GemmAmx, TilesEqualThePlainLoop) {
  if (!enable_amx_bf16() || best_cpu_isa() != CpuIsa::kAvx512) GTEST_SKIP() << "no AMX here";
  for (int64_t m : {16, 17, 31, 32, 33, 64, 175}) {
    for (int64_t k : {1, 2, 31, 32, 33, 64, 500, 1100}) {
      for (int64_t n : {9, 16, 17, 32, 100}) {
        check_exact({m, n, k});
        check_exact({.m = m, .n = n, .k = k, .b_by_columns = true});
        check_exact({.m = m, .n = n, .k = k, .packed = true, .accumulate = true, .pad = 1});
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace sinter::runtime
