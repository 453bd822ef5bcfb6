// Schedules read as text: how kernels of one op and of fused programs are run, before any code is written.
#include <gtest/gtest.h>

#include "sinter/engine/kernel_stages.h"
#include "sinter/ops/pointwise.h"
#include "tests/codegen/nests.h"

namespace sinter {
namespace {

std::string on_cpu(const LoopNest& nest) { return to_string(schedule(nest)); }
std::string on_gpu(const LoopNest& nest, const GpuFacts& facts = {}) { return to_string(schedule(nest, facts)); }

TEST(Schedules, OfOneOp) {
  auto map = nest_of("add", "x[3, 10], x[3, 10]", kBFloat16);
  EXPECT_EQ(on_cpu(map), "map lanes i1");
  EXPECT_EQ(to_string(schedule(map, CpuFacts{.stream = true})), "map lanes i1 streaming");
  EXPECT_EQ(on_gpu(map), "elements, 8 at a time");
  EXPECT_EQ(on_gpu(map, {.lanes = false}), "elements");
  auto columns = nest_of("sum", "x[5, 9] | dims=[0]", kFloat32);
  EXPECT_EQ(on_cpu(columns), "columns lanes i0");
  EXPECT_EQ(on_gpu(columns), "columns; sweep 0 unrolled 4 times");
  auto scan = nest_of("cumsum", "x[5, 9] | dim=1", kFloat32);
  EXPECT_EQ(on_gpu(scan), "rows, 4 at a time, along memory, 4 under way");
}

TEST(Schedules, WhatLiesAlongAnotherAxisIsTurned) {
  EXPECT_EQ(on_cpu(transposed_nest(kFloat32)), "map lanes i1 transposed along i0: %1; sweep 0 with a tail one by one");
  EXPECT_EQ(on_gpu(transposed_nest(kFloat32)), "squares transposed along i0: %1");
  // Registers hold squares of f32 alone.
  EXPECT_EQ(on_cpu(transposed_nest(kFloat16)), "map lanes i1; sweep 0 with a tail one by one");
}

// A copy of one op is cut like a fused one.
TEST(Schedules, LoopsAreCutWhereConditionsChange) {
  EXPECT_EQ(on_cpu(nest_of("constant_pad_nd", "x[3, 40] | pad=[2, 3]", kBFloat16)),
            "map lanes i1; sweep 0 cut at 2, 42");
  // But for what compilers do as well.
  EXPECT_EQ(on_cpu(nest_of("constant_pad_nd", "x[3, 40] | pad=[2, 3]", kFloat32)), "scalar");
  EXPECT_EQ(on_cpu(rotary_nest(kFloat32)), "map lanes i1; sweep 0 cut at n1, 2*n1");
  EXPECT_EQ(on_gpu(rotary_nest(kFloat32)), "elements, 4 at a time");
}

TEST(Schedules, OfRows) {
  EXPECT_EQ(on_cpu(softmax_nest(kFloat32)), "rows lanes i1");
  EXPECT_EQ(on_gpu(softmax_nest(kFloat32), {.held_vectors = 2}),
            "rows, 4 at a time, along memory, 2 vectors held of in0[i0*n1 + i1]; sweep 0 unrolled 2 times");
  EXPECT_EQ(on_gpu(softmax_nest(kFloat32), {.part = KernelPart::kRows}),
            "rows of another kernel, 4 at a time; sweep 0 unrolled 2 times");
  EXPECT_EQ(on_gpu(epilogue_nest(), {.part = KernelPart::kElement}), "one element of a contraction");
  EXPECT_EQ(on_gpu(epilogue_nest(), {.part = KernelPart::kRun}), "neighbours of a contraction, 8 at a time");
  NoLanes no_lanes;
  EXPECT_EQ(on_cpu(softmax_nest(kFloat32)), "scalar; sweep 0 adding up 256 at a time; sweep 1 adding up 256 at a time");
}

// Interleaved pairs are computed even and odd places apart, and stored together.
TEST(Schedules, PairsAreStoredAsOne) {
  auto program = [](const TensorList& x) {
    Tensor pairs = x[0].reshape({7, 32, 2});
    Tensor even = pairs.select(2, 0), odd = pairs.select(2, 1);
    return TensorList{stack({-odd, even}, 2).reshape({7, 64}) * x[1]};
  };
  LoopNest nest = fused_nest(program, std::vector<Type>(2, {kFloat32, {7, 64}, Device()}));
  EXPECT_NE(on_cpu(nest).find("storing pairs"), std::string::npos) << on_cpu(nest) << "\n" << nest.text();
}

TEST(Schedules, KernelsAreListedWhileSomebodyListens) {
  KernelStages kernel{"k_test", "loops", "scalar", "code"};
  {
    KernelList list;
    EXPECT_TRUE(kernels_are_noted());
    note_kernel(kernel);
    EXPECT_EQ(list.take(), std::vector<KernelStages>{kernel});
  }
  note_kernel(kernel);
  EXPECT_TRUE(KernelList().take().empty());
}

}  // namespace
}  // namespace sinter
