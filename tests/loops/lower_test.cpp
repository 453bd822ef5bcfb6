// Lowering and scheduling, read as text: what an op's definition becomes before any code is written.
#include "sinter/loops/lower.h"

#include <gtest/gtest.h>

#include "sinter/loops/schedule.h"

namespace sinter {
namespace {

Layout strides(std::initializer_list<Dim> dims) { return {.scalar = false, .strides = dims}; }

Dim n(int i) { return Dim::symbol("n" + std::to_string(i)); }

LoopNest lower_op(const char* name, const std::vector<Type>& inputs, const FieldTexts& attrs, const std::vector<Layout>& layouts) {
  const Op& op = *find_op(name);
  Attrs parsed = op.parse(attrs);
  OpCall call{op, inputs, parsed};
  return lower(call, op.infer(call)[0], layouts);
}

TEST(Lower, PointwiseWithBroadcastAndNumber) {
  Type x{kFloat32, {n(0), n(1)}, {}, false}, row{kBFloat16, {n(1)}, {}, false};
  auto nest = lower_op("mul", {x, row}, {}, {contiguous_layout(x.shape), contiguous_layout(row.shape), contiguous_layout(x.shape)});
  EXPECT_EQ(nest.text(),
            "kernel mul\n"
            "  for i0 < n0 (parallel)\n"
            "    for i1 < n1 (parallel)\n"
            "      %0 = load f32 in0[i0*n1 + i1]\n"
            "      %1 = load bf16 in1[i1]\n"
            "      %2 = f32 mul(%0, %1) in f32\n"
            "      store f32 out[i0*n1 + i1] = %2\n");
  EXPECT_EQ(to_string(schedule(nest)), "map lanes i1");
  EXPECT_EQ(nest.params(), (std::vector<std::string>{"n0", "n1"}));
}

TEST(Lower, RowAndColumnReductions) {
  Type x{kFloat32, {n(0), n(1)}, {}, false};
  auto rows = lower_op("sum", {x}, {{"dims", "[1]"}}, {contiguous_layout(x.shape), strides({1})});
  EXPECT_EQ(rows.text(),
            "kernel sum\n"
            "  for i0 < n0 (parallel)\n"
            "    for k0 < n1 (sum)\n"
            "      %0 = load f32 in0[i0*n1 + k0]\n"
            "    store f32 out[i0] = sum %0\n");
  EXPECT_EQ(to_string(schedule(rows)), "rows lanes k0");
  auto columns = lower_op("sum", {x}, {{"dims", "[0]"}}, {contiguous_layout(x.shape), strides({1})});
  EXPECT_EQ(to_string(schedule(columns)), "columns lanes i0");
}

TEST(Lower, HalfSumsKeepAWideAccumulator) {
  Type x{kBFloat16, {n(0)}, {}, false};
  EXPECT_EQ(lower_op("sum", {x}, {}, {strides({1}), strides({})}).accumulator, kFloat32);
  Type i{kInt8, {n(0)}, {}, false};
  EXPECT_EQ(lower_op("sum", {i}, {}, {strides({1}), strides({})}).accumulator, kInt64);
}

TEST(Lower, GatherReadsThroughAnIndex) {
  Type x{kFloat32, {n(0), n(1)}, {}, false}, index{kInt64, {n(2)}, {}, false};
  auto nest = lower_op("index_select", {x, index}, {{"dim", "0"}},
                       {contiguous_layout(x.shape), strides({1}), contiguous_layout({n(2), n(1)})});
  EXPECT_EQ(nest.text(),
            "kernel index_select\n"
            "  for i0 < n2 (parallel)\n"
            "    for i1 < n1 (parallel)\n"
            "      %0 = x0 = index in1[i0] < n0\n"
            "      %1 = load f32 in0[i1 + n1*x0]\n"
            "      store f32 out[i0*n1 + i1] = %1\n");
  // The index is the same for all lanes of a row, so rows are copied in vectors.
  EXPECT_EQ(to_string(schedule(nest)), "map lanes i1");
}

TEST(Lower, ScatterRunsCollidingAxesInOrder) {
  Type x{kFloat32, {n(0), n(1)}, {}, false}, index{kInt64, {n(2), n(1)}, {}, false}, source{kFloat32, {n(2), n(1)}, {}, false};
  auto nest = lower_op("scatter_add", {x, index, source}, {{"dim", "0"}},
                       {contiguous_layout(x.shape), contiguous_layout(index.shape), contiguous_layout(source.shape), contiguous_layout(x.shape)});
  ASSERT_EQ(nest.parallel.size(), 1u);
  EXPECT_EQ(to_string(nest.parallel[0].symbol), "i1");
  ASSERT_EQ(nest.sequential.size(), 1u);
  EXPECT_EQ(nest.combine, Combine::kSum);
}

TEST(Schedule, AStridedReductionIsNotPutInLanes) {
  Type x{kFloat32, {n(0), n(1)}, {}, false};
  auto nest = lower_op("sum", {x}, {{"dims", "[1]"}}, {strides({Dim::symbol("p0_0"), Dim::symbol("p0_1")}), strides({1})});
  EXPECT_EQ(to_string(schedule(nest)), "scalar");
}

TEST(Schedule, Movement) {
  Dim i = Dim::symbol("i0"), s = Dim::symbol("s");
  EXPECT_EQ(movement(i * 3 + s, i), Movement::kStrided);
  EXPECT_EQ(movement(i + s, i), Movement::kUnit);
  EXPECT_EQ(movement(s * 2, i), Movement::kFixed);
  EXPECT_EQ(movement(i / 2, i), Movement::kIrregular);
  EXPECT_EQ(movement(i * i, i), Movement::kIrregular);
}

}  // namespace
}  // namespace sinter
