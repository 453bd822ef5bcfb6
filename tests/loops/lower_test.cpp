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
            "    sweep i1 < n1\n"
            "      %0 = load f32 in0[i0*n1 + i1]\n"
            "      %1 = load bf16 in1[i1]\n"
            "      %2 = f32 mul(%0, %1) in f32\n"
            "      store f32 out2[i0*n1 + i1] = %2\n");
  EXPECT_EQ(to_string(schedule(nest)), "map lanes i1");
  ASSERT_EQ(nest.parameters.size(), 2u);
  EXPECT_EQ(nest.parameters[0].name, "n0");
  EXPECT_EQ(nest.parameters[1].name, "n1");
}

TEST(Lower, RowAndColumnReductions) {
  Type x{kFloat32, {n(0), n(1)}, {}, false};
  auto rows = lower_op("sum", {x}, {{"dims", "[1]"}}, {contiguous_layout(x.shape), strides({1})});
  EXPECT_EQ(rows.text(),
            "kernel sum\n"
            "  for i0 < n0 (parallel)\n"
            "    sweep k0 < n1\n"
            "      %0 = load f32 in0[i0*n1 + k0]\n"
            "      row value 0 = sum %0\n"
            "    once\n"
            "      %0 = row value 0\n"
            "      store f32 out1[i0] = %0\n");
  EXPECT_EQ(to_string(schedule(rows)), "rows lanes k0");
  auto columns = lower_op("sum", {x}, {{"dims", "[0]"}}, {contiguous_layout(x.shape), strides({1})});
  EXPECT_EQ(to_string(schedule(columns)), "columns lanes i0");
}

TEST(Lower, HalfSumsKeepAWideAccumulator) {
  Type x{kBFloat16, {n(0)}, {}, false};
  auto accumulator = [](const LoopNest& nest) { return nest.sweeps[0].reductions[0].accumulator; };
  EXPECT_EQ(accumulator(lower_op("sum", {x}, {}, {strides({1}), strides({})})), kFloat32);
  Type i{kInt8, {n(0)}, {}, false};
  EXPECT_EQ(accumulator(lower_op("sum", {i}, {}, {strides({1}), strides({})})), kInt64);
}

TEST(Lower, GatherReadsThroughAnIndex) {
  Type x{kFloat32, {n(0), n(1)}, {}, false}, index{kInt64, {n(2)}, {}, false};
  auto nest = lower_op("index_select", {x, index}, {{"dim", "0"}},
                       {contiguous_layout(x.shape), strides({1}), contiguous_layout({n(2), n(1)})});
  EXPECT_EQ(nest.text(),
            "kernel index_select\n"
            "  for i0 < n2 (parallel)\n"
            "    sweep i1 < n1\n"
            "      %0 = x0 = index in1[i0] < n0\n"
            "      %1 = load f32 in0[i1 + n1*x0]\n"
            "      store f32 out2[i0*n1 + i1] = %1\n");
  // The index is the same for all lanes of a row, so rows are copied in vectors.
  EXPECT_EQ(to_string(schedule(nest)), "map lanes i1");
}

TEST(Lower, ScatterRunsCollidingAxesInOrder) {
  Type x{kFloat32, {n(0), n(1)}, {}, false}, index{kInt64, {n(2), n(1)}, {}, false}, source{kFloat32, {n(2), n(1)}, {}, false};
  auto nest = lower_op("scatter_add", {x, index, source}, {{"dim", "0"}},
                       {contiguous_layout(x.shape), contiguous_layout(index.shape), contiguous_layout(source.shape), contiguous_layout(x.shape)});
  EXPECT_EQ(nest.text(),
            "kernel scatter_add\n"
            "  for i1 < n1 (parallel)\n"
            "    sweep i0 < n2\n"
            "      %0 = x0 = index in1[i0*n1 + i1] < n0\n"
            "      %1 = load f32 in2[i0*n1 + i1]\n"
            "      store f32 out3[i1 + n1*x0] = sum with %1\n");
  EXPECT_EQ(to_string(schedule(nest)), "scalar");
  EXPECT_EQ(to_string(schedule(nest, GpuFacts())), "points");
}

TEST(Lower, ASearchKeepsAPlaceAndAScanStoresAsItGoes) {
  Type x{kFloat32, {n(0), n(1)}, {}, false};
  auto search = lower_op("argmax", {x}, {{"dims", "[1]"}}, {contiguous_layout(x.shape), strides({1})});
  EXPECT_EQ(search.text(),
            "kernel argmax\n"
            "  for i0 < n0 (parallel)\n"
            "    sweep k0 < n1\n"
            "      %0 = load f32 in0[i0*n1 + k0]\n"
            "      %1 = coordinate k0\n"
            "      row value 0 = argmax %0 keeping %1\n"
            "    once\n"
            "      %0 = row value 0\n"
            "      store i64 out1[i0] = %0\n");
  EXPECT_EQ(to_string(schedule(search)), "rows lanes k0");
  EXPECT_EQ(to_string(schedule(search, GpuFacts())), "rows, 4 at a time, along memory, 8 under way");
  auto scan = lower_op("cumsum", {x}, {{"dim", "1"}}, {contiguous_layout(x.shape), contiguous_layout(x.shape)});
  EXPECT_EQ(scan.text(),
            "kernel cumsum\n"
            "  for i0 < n0 (parallel)\n"
            "    sweep i1 < n1\n"
            "      %0 = load f32 in0[i0*n1 + i1]\n"
            "      row value 0 = sum %0\n"
            "      store f32 out1[i0*n1 + i1] = row value 0 so far\n");
  EXPECT_EQ(to_string(schedule(scan)), "scalar");
}

TEST(Lower, ParametersSayWhatTheyStandFor) {
  Parameters named;
  Type x{kFloat32, {named.size(0), named.size(1)}, {}, false};
  const Op& op = *find_op("neg");
  const Attrs none;
  OpCall call{op, {&x, 1}, none};
  std::vector<Layout> layouts{strides({named.stride(0, 0), named.stride(0, 1)}), contiguous_layout(x.shape)};
  LoopNest nest = lower(call, x, layouts, named);
  std::string text;
  for (auto& p : nest.parameters) text += format("{}: {} {}; ", p.name, p.operand, p.axis);
  EXPECT_EQ(text, "n0: -1 0; n1: -1 1; p0_0: 0 0; p0_1: 0 1; ");
}

TEST(Schedule, AStridedReductionIsNotPutInLanes) {
  Type x{kFloat32, {n(0), n(1)}, {}, false};
  auto nest = lower_op("sum", {x}, {{"dims", "[1]"}}, {strides({Dim::symbol("p0_0"), Dim::symbol("p0_1")}), strides({1})});
  EXPECT_EQ(to_string(schedule(nest)), "scalar; sweep 0 adding up 256 at a time");
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
