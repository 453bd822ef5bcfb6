#include "sinter/runtime/cpu/gemm/gemm_s8.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"

namespace sinter::runtime {
namespace {

void check_s8(int64_t m, int64_t n, int64_t k, bool a_by_columns, bool b_by_columns, CpuIsa isa) {
  std::mt19937 rng(unsigned(m * 131 + n * 17 + k));
  std::vector<int8_t> a(size_t(m * k)), b(size_t(k * n));
  // The extremes often: -128 has no positive counterpart.
  for (auto* values : {&a, &b})
    for (int8_t& v : *values) v = rng() % 4 == 0 ? (rng() % 2 ? -128 : 127) : int8_t(rng());
  const S8Operand va{a.data(), a_by_columns ? 1 : k, a_by_columns ? m : 1};
  const S8Operand vb{b.data(), b_by_columns ? 1 : n, b_by_columns ? k : 1};
  const int64_t stride = n + 3;
  for (int threads : {1, 2}) {
    const int before = num_threads();
    set_num_threads(threads);
    std::vector<int32_t> c(size_t(m * stride), 77);
    gemm_s8(m, n, k, va, vb, c.data(), stride, isa);
    set_num_threads(before);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < stride; ++j) {
        int32_t sum = j < n ? 0 : 77;
        for (int64_t p = 0; j < n && p < k; ++p)
          sum += va.data[i * va.row_stride + p * va.col_stride] * vb.data[p * vb.row_stride + j * vb.col_stride];
        ASSERT_EQ(c[size_t(i * stride + j)], sum)
            << format("{}x{}x{} at {} {} isa {} threads {}", m, n, k, i, j, int(isa), threads);
      }
    }
  }
}

TEST(GemmS8, EqualsThePlainLoop) {
  const int64_t sizes[][3] = {{1, 1, 1},   {1, 100, 64}, {3, 33, 5},    {14, 32, 8},    {15, 16, 7}, {29, 65, 130},
                              {57, 31, 3}, {5, 7, 0},    {130, 70, 90}, {2, 300, 1000}, {0, 4, 4},   {4, 0, 4}};
  for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kAvx512})
    for (const auto& s : sizes)
      for (int layout = 0; layout < 4; ++layout) check_s8(s[0], s[1], s[2], layout & 1, layout & 2, isa);
}

TEST(GemmS8, SplitsAmongThreads) {
  check_s8(3, 700, 600, false, true, host_target().isa);
  check_s8(200, 120, 90, false, false, host_target().isa);
}

TEST(GemmS8, RefusesNegativeSizes) { EXPECT_THROW(pack_s8(-1, 2, {nullptr, 1, 1}), Error); }

}  // namespace
}  // namespace sinter::runtime
