// The eager engine: which kernel serves which call, and the roads that only large or odd geometries take.
#include <gtest/gtest.h>

#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/geometry.h"
#include "sinter/engine/kernel.h"
#include "sinter/engine/profile.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {
namespace {

// Kernels that were asked of the toolchain, compiled or loaded, while f ran.
template <class F>
int64_t kernels_made(F&& f) {
  auto made = [] {
    auto s = runtime::toolchain_stats();
    return s.compiles + s.disk_hits + s.memory_hits;
  };
  int64_t before = made();
  f();
  return made() - before;
}

// Sizes 0 and 1 are classes of their own, as everywhere.
TEST(KernelReuse, NewSizesAndNumbersNeedNoNewKernel) {
  auto pointwise = [](int64_t size, double number) { return (rand({size}) + number).exp(); };
  pointwise(10, 1.5);
  EXPECT_EQ(kernels_made([&] {
              pointwise(1000, 2.5);
              pointwise(2, 7);
              pointwise(33333, 0.25);
            }),
            0);
}

TEST(KernelReuse, CreationReductionAndGatherFollowSizes) {
  auto run = [](int64_t a, int64_t b) {
    Tensor x = full({a, b}, 2.0) + arange(b).to(kFloat32);
    Tensor picked = index_select(x, 0, arange(a));
    return picked.sum({1}).amax();
  };
  run(5, 7);
  EXPECT_EQ(kernels_made([&] {
              run(6, 9);
              run(50, 3);
            }),
            0);
}

TEST(Geometry, CollapseJoinsWhatMemoryJoins) {
  eager::Geometry g;
  g.operands = 2;
  for (int64_t size : {2, 1, 3, 4}) g.add_axis(size);
  g.strides[0] = {12, 99, 4, 1};
  g.strides[1] = {12, 7, 4, 1};
  collapse(g, 1, true);
  EXPECT_EQ(g.axes, 1);
  EXPECT_EQ(g.sizes[0], 24);
  EXPECT_EQ(g.strides[0][0], 1);
}

TEST(Geometry, CollapseOrdersByTheLeader) {
  eager::Geometry g;
  g.operands = 2;
  g.add_axis(3);
  g.add_axis(5);
  g.strides[0] = {5, 1};
  g.strides[1] = {1, 3};  // the leader is transposed: its unit axis goes last
  collapse(g, 1, true);
  ASSERT_EQ(g.axes, 2);
  EXPECT_EQ(g.sizes[1], 3);
  EXPECT_EQ(g.strides[1][1], 1);
}

TEST(Pointwise, KeepsADenseMemoryFormat) {
  Tensor x = randn({2, 3, 4, 5}).contiguous(kChannelsLast);
  Tensor y = x * 2 + 1;
  EXPECT_TRUE(y.is_contiguous(kChannelsLast));
  EXPECT_EQ(y.sum({0, 1, 2, 3}).item<float>(), (x.contiguous() * 2 + 1).sum({0, 1, 2, 3}).item<float>());
}

TEST(Pointwise, TransposedOperandsInTilesWithEdges) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{200, 333}, {128, 160}, {1000, 40}, {33, 700}}) {
    Tensor x = rand({columns, rows}), y = rand({rows, columns});
    Tensor z = x.t() + y;
    auto a = x.to_vector<float>(), b = y.to_vector<float>(), c = z.to_vector<float>();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        ASSERT_EQ(c[size_t(i * columns + j)], a[size_t(j * rows + i)] + b[size_t(i * columns + j)]) << i << " " << j;
  }
}

TEST(Pointwise, LargeResultsAreStreamedWhole) {
  int64_t count = (5 << 20) + 7;  // past the size where stores bypass the caches, with a tail
  Tensor x = arange(count).to(kFloat32), y = x + 1;
  EXPECT_EQ(y.slice(0, count - 3).to_vector<float>(), (std::vector<float>{float(count - 2), float(count - 1), float(count)}));
  EXPECT_EQ((y - x).amin().item<float>(), 1);
  EXPECT_EQ((y - x).amax().item<float>(), 1);
}

TEST(Reduce, FewLongRowsAreCutTheSameForAnyThreadCount) {
  Tensor x = randn({3, 300007});
  std::vector<float> first;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    auto sums = x.sum({1}).to_vector<float>();
    auto all = x.sum().to_vector<float>();
    sums.insert(sums.end(), all.begin(), all.end());
    if (first.empty()) first = sums;
    EXPECT_EQ(sums, first) << threads << " threads";
  }
  set_num_threads(2);
  Tensor exact = x.to(kFloat64).sum({1});
  for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(first[size_t(i)], exact[i].item<double>(), 0.02);
}

TEST(Reduce, HalfSumsOfManyElementsDoNotStall) {
  // Added up in bf16, 65536 ones would stop at 256.
  EXPECT_EQ(ones({100000}, kBFloat16).sum().item<double>(), 99840);  // the nearest bf16 to 100000
  EXPECT_EQ(ones({300, 300}, kFloat16).mean().item<double>(), 1);
}

// Sums of columns stored a stride apart, as the last chunk of a cut row is: a tail of lanes stays within its elements.
TEST(Reduce, ColumnSumsStoredWithAStrideStayInside) {
  constexpr int64_t kRows = 5, kColumns = 19, kStride = 3;
  Parameters named;
  Dim n0 = named.size(0), n1 = named.size(1), p0 = named.stride(0, 0), p1 = named.stride(1, 0);
  Type types[] = {{kFloat32, Shape{n1, n0}, Device(), false}};
  ReduceAttrs reduce;
  reduce.dims = {0};
  Attrs attrs(reduce);
  OpCall call{*find_op("sum"), types, attrs};
  Layout layouts[] = {{.strides = {p0, 1}}, {.strides = {p1}}};
  auto kernel = compile_kernel(lower(call, Type{kFloat32, Shape{n0}, Device(), false}, layouts, named));
  std::vector<float> in(kRows * kColumns, 1), out((kColumns + 32) * kStride, -7);
  std::vector<int64_t> args{int64_t(in.data()), int64_t(out.data())};
  const int64_t sizes[] = {kColumns, kRows}, strides[] = {kColumns, kStride};
  for (auto& p : kernel->parameters) args.push_back(p.operand < 0 ? sizes[p.axis] : strides[p.operand]);
  args.push_back(0);
  kernel->function(args.data(), 0, kColumns);
  for (int64_t i = 0; i < int64_t(out.size()); ++i) {
    bool written = i % kStride == 0 && i / kStride < kColumns;
    EXPECT_EQ(out[size_t(i)], written ? float(kRows) : -7.0f) << i;
  }
}

TEST(Reduce, FewLongColumnsAreCutAndJoined) {
  Tensor x = randint(-9, 10, {70001, 3}), sums = x.sum({0});
  auto values = x.to_vector<int64_t>();
  int64_t expected[3] = {};
  for (size_t i = 0; i < values.size(); ++i) expected[i % 3] += values[i];
  EXPECT_EQ(sums.to_vector<int64_t>(), std::vector<int64_t>(expected, expected + 3));
}

TEST(Pointwise, ManyAxesOfBytes) {
  // Ten axes, scattered in memory so that no two collapse.
  IntList sizes(size_t(10), 2), strides;
  for (int d = 0; d < 10; ++d) strides.push_back(int64_t(1) << (9 - d));
  std::swap(strides[2], strides[7]);
  std::swap(strides[4], strides[9]);
  std::swap(strides[0], strides[5]);
  Tensor x = arange(1024).to(kInt8), y = as_strided(x, sizes, strides);
  Tensor flat = x.view(Shape(std::span<const int64_t>(sizes)));
  auto a = y.contiguous().to_vector<int8_t>(), b = flat.to_vector<int8_t>(), sum = (flat + y).to_vector<int8_t>();
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], int8_t(a[i] + b[i])) << i;
}

TEST(Pointwise, NegativePowersOfIntegersWhoseSquaresWrap) {
  for (auto [dtype, largest] : {std::pair<DType, int64_t>{kInt64, INT64_MAX}, {kInt32, INT32_MAX}}) {
    Tensor base = cat({full({17}, largest, dtype), full({1}, 1, dtype), full({1}, -1, dtype), full({1}, 2, dtype)});
    std::vector<int64_t> odd(20, 0);
    odd[17] = 1, odd[18] = -1;
    EXPECT_EQ(pow(base, full({20}, -3, dtype)).to(kInt64).to_vector<int64_t>(), odd);
  }
}

TEST(Reduce, ManySmallTermsAreNotLostInALargeSum) {
  // Added one by one in f32, a million tenths come out a percent wrong.
  auto expect_near = [](const Tensor& sums) {
    for (double sum : sums.reshape({-1}).to_vector<double>()) EXPECT_NEAR(sum, 1e5, 0.3);
  };
  Tensor tenths = full({1000000, 2}, 0.1f);
  expect_near(tenths.sum({0}));
  expect_near(full({1000000, 66}, 0.1f).sum({0}));
  expect_near(tenths.t().contiguous().sum({1}));
  expect_near(full({1}, 0.1f).expand({1000000}).sum());
  expect_near(tenths.select(1, 0).sum());
}

TEST(Profile, CountsCallsAndBytes) {
  Tensor x = rand({1000}), y = rand({1000});
  Profile profile;
  Tensor z = x + y;
  z = z + 1;
  auto rows = profile.rows();
  EXPECT_EQ(rows.at("add").calls, 2);
  EXPECT_EQ(rows.at("add").bytes, (3 + 2) * 4000);
  EXPECT_NE(profile.table().find("add"), std::string::npos);
}

TEST(Convolution, GemmRoadEqualsTheLoops) {
  // Integers always take the loops; small integers are exact in f32, so both roads must agree to the bit.
  Tensor x = randint(-4, 5, {2, 6, 11, 9}), w = randint(-3, 4, {8, 3, 3, 2});
  Tensor slow = conv2d(x, w, {}, {2, 1}, {1, 2}, {1, 2}, 2);
  Tensor fast = conv2d(x.to(kFloat32), w.to(kFloat32), {}, {2, 1}, {1, 2}, {1, 2}, 2);
  EXPECT_EQ(slow.to_vector<float>(), fast.to_vector<float>());
}

TEST(Convolution, AWeightWithoutTapsGivesZeros) {
  Tensor y = conv1d(ones({1, 8, 10}), empty({8, 8, 0}), {}, {1}, {0});
  EXPECT_EQ(y.size(2), 11);
  EXPECT_EQ(y.abs().amax().item<float>(), 0);
}

}  // namespace
}  // namespace sinter
