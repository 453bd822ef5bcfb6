#include "sinter/runtime/cuda/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/runtime/cuda_test_memory.h"

namespace sinter::runtime {
namespace {

constexpr DType kAllTypes[] = {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

TEST(CudaSort, TextCompilesForEveryArchitecture) {
  if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  // A type for each way of making keys; the others differ in their sizes only.
  std::pair<const char*, DType> programs[] = {
      {"sm_80", kBool}, {"sm_86", kInt64}, {"sm_89", kBFloat16}, {"sm_90", kFloat32}};
  for (auto [architecture, dtype] : programs)
    EXPECT_FALSE(compile_cuda(cuda_sort_text(dtype), "sort", architecture).empty()) << architecture << dtype;
}

TEST(CudaSort, WorkspaceIsForLongLinesOnly) {
  EXPECT_EQ(cuda_sort_workspace({.lines = {1000, 4096, 1}, .keep = 4096}), 0);
  int64_t best = cuda_sort_workspace({.lines = {1, 128256, 1}, .keep = 50}),
          all = cuda_sort_workspace({.lines = {1, 128256, 1}, .keep = 128256});
  EXPECT_GT(best, 32 * 50 * 8 - 1);
  EXPECT_LT(best, 64 << 10);
  EXPECT_GT(all, 128256 * 16);
  EXPECT_THROW(cuda_sort_workspace({.lines = {1, 10, 1}, .keep = 11}), Error);
}

// Bool as a byte: a vector of bool has no memory to copy.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
bool less(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a < b;
  else
    return double(a) < double(b) || (std::isnan(double(b)) && !std::isnan(double(a)));
}
template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Numbers with many repetitions, both zeros, infinities and NaNs.
template <class T>
std::vector<Stored<T>> numbers(int64_t count, int64_t different) {
  std::mt19937_64 random(uint64_t(count * 31 + different));
  std::vector<Stored<T>> values(static_cast<size_t>(count));
  for (auto& v : values) {
    int64_t drawn = int64_t(random() % uint64_t(different)) - different / 2;
    if constexpr (std::is_same_v<T, bool>)
      v = random() % 2;
    else if constexpr (std::is_integral_v<T>)
      v = T(sizeof(T) == 8 ? drawn * 1000000007 : drawn);
    else {
      v = T(float(drawn) * 0.37f);
      if (different > 50 && random() % 64 == 0) {
        float special[] = {NAN, -0.0f, 0.0f, INFINITY, -INFINITY, -NAN};
        v = T(special[random() % 6]);
      }
    }
  }
  return values;
}

class GpuSort : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
  }
};

void expect_sorted(DType dtype, CudaLines lines, int64_t keep, bool descending, int64_t different) {
  visit_dtype(dtype, [&](auto zero) {
    using T = Stored<decltype(zero)>;
    auto x = numbers<decltype(zero)>(lines.rows * lines.length, different);
    OnDevice source(x), values(size_t(lines.rows * keep) * sizeof(T)), positions(size_t(lines.rows * keep) * 8);
    CudaSort sort{dtype, lines, keep, descending, source.data, values.data, positions.ints()};
    OnDevice workspace(size_t(cuda_sort_workspace(sort)));
    cuda_sort(0, sort, workspace.data);
    auto value = values.read<T>();
    auto position = positions.read<int64_t>();
    auto at = [&](int64_t row, int64_t j, int64_t length) {
      return size_t((row / lines.inner * length + j) * lines.inner + row % lines.inner);
    };
    int64_t wrong = 0;
    std::vector<int64_t> order(static_cast<size_t>(lines.length));
    for (int64_t row = 0; row < lines.rows; ++row) {
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        T p = x[at(row, a, lines.length)], q = x[at(row, b, lines.length)];
        return descending ? less(q, p) : less(p, q);
      });
      for (int64_t j = 0; j < keep; ++j)
        wrong += position[at(row, j, keep)] != order[size_t(j)] ||
                 !same_bits(value[at(row, j, keep)], x[at(row, order[size_t(j)], lines.length)]);
    }
    EXPECT_EQ(wrong, 0) << dtype << " " << lines.rows << "x" << lines.length << " inner " << lines.inner << " keep "
                        << keep << (descending ? " descending" : "");
  });
}

TEST_F(GpuSort, ShortLinesOfEveryType) {
  for (DType dtype : kAllTypes)
    for (bool descending : {false, true}) {
      expect_sorted(dtype, {37, 19, 1}, 19, descending, 100);
      expect_sorted(dtype, {3, 1500, 1}, 1500, descending, 300);
    }
}
TEST_F(GpuSort, LongLinesOfEveryType) {
  for (DType dtype : kAllTypes) {
    expect_sorted(dtype, {2, 5000, 1}, 5000, false, 1000);
    expect_sorted(dtype, {1, 9001, 1}, 9001, true, 100000);
  }
}
TEST_F(GpuSort, LinesAlongAnInnerDimension) {
  expect_sorted(kFloat32, {12, 7, 4}, 7, false, 100);
  expect_sorted(kFloat32, {12, 7, 4}, 3, true, 100);
  expect_sorted(kInt64, {6, 4500, 3}, 4500, true, 100);
}
TEST_F(GpuSort, SizesAroundTheLimits) {
  for (int64_t length : {1, 2, 3, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 8193})
    expect_sorted(kFloat32, {3, length, 1}, length, false, 50);
  expect_sorted(kFloat32, {0, 5, 1}, 5, false, 50);
  expect_sorted(kFloat32, {70000, 3, 1}, 3, false, 50);
}
TEST_F(GpuSort, BestOfLongLines) {
  for (bool descending : {false, true})
    for (int64_t keep : {1, 5, 50, 1000, 1024, 1025, 3000})
      for (DType dtype : {kFloat32, kBFloat16, kInt64}) expect_sorted(dtype, {2, 20000, 1}, keep, descending, 5000);
  expect_sorted(kFloat32, {1, 128256, 1}, 1024, true, 1000000);  // three rounds
}

TEST_F(GpuSort, NonzeroGivesCoordinatesInOrder) {
  for (DType dtype : kAllTypes)
    visit_dtype(dtype, [&](auto zero) {
      using T = Stored<decltype(zero)>;
      int64_t sizes[] = {3, 41, 100};
      auto x = numbers<decltype(zero)>(3 * 41 * 100, 3);
      std::vector<int64_t> want;
      for (int64_t j = 0; j < int64_t(x.size()); ++j)
        if (x[size_t(j)] != T(0)) want.insert(want.end(), {j / 4100, j / 100 % 41, j % 100});
      OnDevice source(x), workspace(size_t(cuda_nonzero_workspace(int64_t(x.size()))));
      int64_t count = cuda_nonzero_count(0, dtype, source.data, int64_t(x.size()), workspace.data);
      ASSERT_EQ(count, int64_t(want.size() / 3)) << dtype;
      OnDevice coordinates(want.size() * 8);
      cuda_nonzero(0, dtype, source.data, sizes, workspace.data, coordinates.ints());
      EXPECT_EQ(coordinates.read<int64_t>(), want) << dtype;
    });
}

TEST_F(GpuSort, UniqueGivesValuesPlacesAndCounts) {
  for (DType dtype : kAllTypes)
    for (int64_t numel : {1, 300, 10000})
      visit_dtype(dtype, [&](auto zero) {
        using T = Stored<decltype(zero)>;
        auto x = numbers<decltype(zero)>(numel, 90);
        std::vector<size_t> order(x.size());
        std::iota(order.begin(), order.end(), size_t(0));
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return less(x[a], x[b]); });
        std::vector<T> values;
        std::vector<int64_t> inverse(x.size()), counts;
        for (size_t j = 0; j < order.size(); ++j) {
          if (j == 0 || x[order[j]] != x[order[j - 1]]) values.push_back(x[order[j]]), counts.push_back(0);
          ++counts.back();
          inverse[order[j]] = int64_t(values.size()) - 1;
        }
        OnDevice source(x), workspace(size_t(cuda_unique_workspace(dtype, numel)));
        int64_t count = cuda_unique_count(0, dtype, source.data, numel, workspace.data);
        ASSERT_EQ(count, int64_t(values.size())) << dtype;
        OnDevice got_values(values.size() * sizeof(T)), got_inverse(x.size() * 8), got_counts(counts.size() * 8);
        cuda_unique(0, dtype, numel, count, workspace.data, got_values.data, got_inverse.ints(), got_counts.ints());
        EXPECT_EQ(got_inverse.read<int64_t>(), inverse) << dtype;
        EXPECT_EQ(got_counts.read<int64_t>(), counts) << dtype;
        auto read = got_values.read<T>();
        for (size_t j = 0; j < values.size(); ++j) EXPECT_TRUE(same_bits(read[j], values[j])) << dtype << j;
      });
}

TEST_F(GpuSort, SearchFindsPlaces) {
  for (DType dtype : kAllTypes)
    for (bool right : {false, true})
      visit_dtype(dtype, [&](auto zero) {
        using T = Stored<decltype(zero)>;
        constexpr int64_t kRows = 3, kLength = 70, kPerRow = 200;
        auto sorted = numbers<decltype(zero)>(kRows * kLength, 80),
             values = numbers<decltype(zero)>(kRows * kPerRow, 90);
        auto before = [](const T& a, const T& b) { return less(a, b); };
        std::vector<int64_t> want;
        for (int64_t row = 0; row < kRows; ++row) {
          auto first = sorted.begin() + row * kLength, last = first + kLength;
          std::sort(first, last, before);
          for (int64_t j = 0; j < kPerRow; ++j) {
            T v = values[size_t(row * kPerRow + j)];
            want.push_back(
                (right ? std::upper_bound(first, last, v, before) : std::lower_bound(first, last, v, before)) - first);
          }
        }
        OnDevice on_sorted(sorted), on_values(values), places(values.size() * 8);
        cuda_searchsorted(
            0, {dtype, on_sorted.data, on_values.data, kLength, kRows * kPerRow, kPerRow, right, places.ints()});
        EXPECT_EQ(places.read<int64_t>(), want) << dtype << right;
      });
}

}  // namespace
}  // namespace sinter::runtime
