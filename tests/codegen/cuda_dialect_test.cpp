// CUDA kernels as text: what some look like, that those of every op compile for every architecture, and how they are spread
// over a device.
#include <gtest/gtest.h>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/codegen/gpu/emit.h"
#include "sinter/codegen/gpu/geometry.h"
#include "sinter/runtime/cuda/module.h"
#include "tests/codegen/kernels.h"

namespace sinter {
namespace {

using codegen::GpuGeometry;
using codegen::GpuKernelText;
using codegen::GpuLaunch;

// ---- texts ----
TEST(CudaDialect, MapInVectors) {
  auto kernel = cuda_text(nest_of("add", "x[3, 10], x[3, 10]", kBFloat16), "add");
  EXPECT_EQ(kernel.lanes, 8);
  EXPECT_EQ(kernel.slots, 4);
  EXPECT_EQ(kernel.spread, Spread::kElements);
  EXPECT_TRUE(kernel.range.same_as(30));
  EXPECT_EQ(kernel.text, R"(namespace k {
struct add_kernel : Vectors<8> {
template <class A_>
static __device__ __forceinline__ void run_(const A_& a_, i64 begin_, i64 end_, const Rows& b_) {
  const void* in0_ = (const void*)a_[0];
  const void* in1_ = (const void*)a_[1];
  void* out2_ = (void*)a_[2];
  const i32 vectors_ = (10 + kLanes - 1) / kLanes;
  const i64 steps_ = (i64)(3) * (vectors_);
  for (i64 step_ = first_step(b_); step_ < steps_; step_ += all_threads(b_)) {
    const u32 at_ = (u32)step_ / (u32)(vectors_);
    const i32 i1_ = (i32)((u32)step_ - at_ * (u32)(vectors_)) * kLanes;
    const i32 i0_ = (i32)at_;
    if (i1_ + kLanes <= 10 && fits<k::bf16>(in0_, 10*i0_ + i1_) && fits<k::bf16>(in1_, 10*i0_ + i1_) && fits<k::bf16>(out2_, 10*i0_ + i1_)) {
      const f32v t0_ = load<k::bf16>(in0_, 10*i0_ + i1_);
      const f32v t1_ = load<k::bf16>(in1_, 10*i0_ + i1_);
      const f32v t2_ = t0_ + t1_;
      store<k::bf16>(out2_, 10*i0_ + i1_, t2_);
    }
    else {
      for (i32 tail_ = i1_, last_ = minimum(i1_ + (i32)kLanes, (i32)(10)); tail_ < last_; ++tail_) {
        const i32 i1_ = tail_;
        const float t0_ = load1<k::bf16>(in0_, 10*i0_ + i1_);
        const float t1_ = load1<k::bf16>(in1_, 10*i0_ + i1_);
        const float t2_ = t0_ + t1_;
        store1<k::bf16>(out2_, 10*i0_ + i1_, t2_);
      }
    }
  }
}
};
extern "C" __global__ void __launch_bounds__(256) add(const __grid_constant__ Args<4> a_) {
  wait_for_previous();
  add_kernel::run_(a_, 0, a_.range, this_block<Rows>());
}
}  // namespace k
)");
}

TEST(CudaDialect, RowReduction) {
  auto kernel = cuda_text(nest_of("sum", "x[5, 9] | dims=[1]", kFloat32), "sum", {.wide = true});
  EXPECT_EQ(kernel.spread, Spread::kRows);
  EXPECT_TRUE(kernel.along);
  EXPECT_EQ(kernel.members, R"(template <class A_>
static __device__ __forceinline__ void run_(const A_& a_, i64 begin_, i64 end_, const Rows& b_) {
  const void* in0_ = (const void*)a_[0];
  void* out1_ = (void*)a_[1];
  float row0_;
  for (i64 base_ = begin_ + (i64)b_.index * b_.rows; base_ < end_; base_ += (i64)b_.count * b_.rows) {
    const bool valid_ = base_ + b_.row < end_;
    const i64 at_ = valid_ ? base_ + b_.row : end_ - 1;
    const i64 i0_ = (i64)at_;
    {
      float tail0_ = (float)(0.0);
      f32v acc0_ = splat_f32((float)(0.0));
      const i64 stop_ = valid_ ? (i64)(9) : 0;
      i64 k0_ = (i64)b_.member * kLanes;
      const bool whole_ = true && fits<k::f32>(in0_, 9*i0_ + k0_);
      #pragma unroll 2
      for (; whole_ && k0_ + kLanes <= stop_; k0_ += (i64)b_.members * kLanes) {
        const f32v t0_ = load<k::f32>(in0_, 9*i0_ + k0_);
        acc0_ = acc0_ + t0_;
      }
      const i64 run_ = whole_ ? kLanes : 1;
      if (!whole_) k0_ = (i64)b_.member;
      for (; k0_ < stop_; k0_ += (i64)b_.members * run_) {
        for (i64 tail_ = k0_, last_ = minimum(k0_ + (i64)run_, (i64)(stop_)); tail_ < last_; ++tail_) {
          const i64 k0_ = tail_;
          const float t0_ = load1<k::f32>(in0_, 9*i0_ + k0_);
          tail0_ = tail0_ + t0_;
        }
      }
      row0_ = join<Sum>(b_, Sum::join(join_lanes<Sum>(acc0_), tail0_), (float)(0.0));
    }
    {
      if (valid_ && b_.member == 0) {
        const float t0_ = row0_;
        store1<k::f32>(out1_, i0_, t0_);
      }
    }
  }
}
)");
}

TEST(CudaDialect, FusedSoftmax) {
  auto kernel = cuda_text(softmax_nest(kFloat32), "softmax", {.lanes = false});
  EXPECT_EQ(kernel.spread, Spread::kRows);
  EXPECT_EQ(to_string(kernel.range), "n0");
  EXPECT_EQ(to_string(kernel.work), "n1");
  EXPECT_NE(kernel.text.find("row0_ = join<Max>(b_, tail0_,"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("row1_ = join<Sum>(b_, tail1_,"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("for (i32 place_ = (i32)b_.member; place_ < stop_; place_ += (i32)b_.members) {"), std::string::npos);
}

TEST(CudaDialect, RowsStayInRegisters) {
  auto kernel = cuda_text(softmax_nest(kFloat32), "softmax", {.held_vectors = 4});
  EXPECT_NE(kernel.text.find("Held<k::f32> held0_[4];"), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("held0_[round_] = hold<k::f32>(in0_, "), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("const Held<k::f32>& prepared0_ = held0_[round_];"), std::string::npos) << kernel.text;
}

// A vector that lies on one side of every cut is taken whole; the others element by element.
TEST(CudaDialect, VectorsBetweenCuts) {
  auto kernel = cuda_text(rotary_nest(kBFloat16), "rope");
  EXPECT_EQ(kernel.lanes, 8);
  for (auto* part : {"&& alike(i1_ - n1_, n1_) && alike(i1_, n1_) &&",
                     "(!((u64)(i1_) < (u64)(n1_)) || fits<k::bf16>(in0_, i0_*n1_ + i1_))",
                     "load_if<k::bf16>((u64)(i1_) < (u64)(n1_), "})
    EXPECT_NE(kernel.text.find(part), std::string::npos) << part << "\n" << kernel.text;
  // A sum over such a row.
  auto rows = cuda_text(padded_sum_nest(), "rows", {.held_vectors = 4});
  EXPECT_EQ(rows.lanes, 4);
  EXPECT_NE(rows.text.find("if (alike("), std::string::npos) << rows.text;
  EXPECT_EQ(rows.text.find("held0_"), std::string::npos) << rows.text;
}

TEST(CudaDialect, SearchInVectors) {
  auto kernel = cuda_text(nest_of("argmax", "x[5, 9] | dims=[1]", kFloat32), "f");
  EXPECT_EQ(kernel.lanes, 4);
  EXPECT_EQ(kernel.most, 1024);
  EXPECT_NE(kernel.text.find("__launch_bounds__(1024)"), std::string::npos);
  EXPECT_NE(kernel.text.find("const f32v t0_ = load<k::f32>(in0_, "), std::string::npos) << kernel.text;
  EXPECT_NE(kernel.text.find("if (!may_beat<true>(values_[u_], best_)) continue;"), std::string::npos) << kernel.text;
  EXPECT_EQ(cuda_text(nest_of("argmax", "x[5, 9] | dims=[0]", kFloat32), "f").lanes, 1);
}

TEST(CudaDialect, WhatTurnsGoesThroughSquares) {
  LoopNest nest = transposed_nest(kFloat32);
  auto kernel = cuda_text(nest, "transposed");
  EXPECT_EQ(kernel.spread, Spread::kTiles);
  EXPECT_TRUE(kernel.work.same_as(4));
  // A stride that the nest does not know.
  nest.sweeps[0].body[1].offset = nest.rows[0].symbol * Dim::symbol("p") + nest.inner[0].symbol * 40;
  EXPECT_EQ(cuda_text(nest, "transposed").spread, Spread::kElements);
  EXPECT_EQ(cuda_text(nest, "transposed", {.transposed_along = 0}).spread, Spread::kTiles);
}

TEST(CudaDialect, SpreadFollowsMemory) {
  EXPECT_EQ(cuda_text(nest_of("sum", "x[5, 9] | dims=[0]", kFloat32), "f").spread, Spread::kColumns);
  EXPECT_EQ(cuda_text(nest_of("argmax", "x[5, 9] | dims=[1]", kFloat32), "f").spread, Spread::kRows);
  EXPECT_TRUE(cuda_text(nest_of("cumsum", "x[5, 9] | dim=1", kFloat32), "f").along);
  EXPECT_FALSE(cuda_text(nest_of("cumsum", "x[5, 9] | dim=0", kFloat32), "f").along);
}

// ---- compiling ----
void expect_compiled(const Kernels& kernels, const std::string& architecture) {
  for (auto& program : kernels.programs(64))
    EXPECT_NO_THROW(runtime::compile_cuda(codegen::cuda_prelude() + program, "kernels", architecture));
}

TEST(CudaDialect, EveryOpCompiles) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  Kernels kernels(codegen::kCudaTarget);
  kernels.add_every_op();
  EXPECT_GT(kernels.size(), 100u);
  expect_compiled(kernels, "sm_90");
}

TEST(CudaDialect, EveryKindCompilesForEveryArchitecture) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  Kernels kernels(codegen::kCudaTarget);
  kernels.add_every_kind();
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90"}) expect_compiled(kernels, architecture);
}

// ---- geometry ----
TEST(LaunchGeometry, ElementsGetAThreadAVector) {
  const GpuLaunch map{Spread::kElements, 8, false};
  EXPECT_EQ(codegen::gpu_geometry(map, 8 << 20, 1, 132), (GpuGeometry{4096, {256, 1}, 0}));
  EXPECT_EQ(codegen::gpu_geometry(map, int64_t(1) << 40, 1, 132), (GpuGeometry{132 * 64, {256, 1}, 0}));
  // Few elements: smaller blocks on more multiprocessors.
  EXPECT_EQ(codegen::gpu_geometry(map, 8192, 1, 132), (GpuGeometry{16, {64, 1}, 0}));
  EXPECT_EQ(codegen::gpu_geometry(map, 0, 1, 132), (GpuGeometry{1, {64, 1}, 0}));
}

TEST(LaunchGeometry, RowsAreSharedAsTheyAreLong) {
  const GpuLaunch rows{Spread::kRows, 4, true};
  EXPECT_EQ(codegen::gpu_geometry(rows, 100000, 64, 132), (GpuGeometry{6250, {16, 16}, 0}));
  EXPECT_EQ(codegen::gpu_geometry(rows, 8192, 4096, 132), (GpuGeometry{8192, {256, 1}, 0}));
  EXPECT_EQ(codegen::gpu_geometry(rows, 1, 1 << 20, 132), (GpuGeometry{1, {512, 1}, 0}));
  const GpuLaunch strided{Spread::kRows, 1, false};
  EXPECT_EQ(codegen::gpu_geometry(strided, 1 << 20, 64, 132), (GpuGeometry{4096, {1, 256}, 0}));
  // A search takes more threads.
  EXPECT_EQ(codegen::gpu_geometry({Spread::kRows, 4, true, 1024}, 1, 128256, 132), (GpuGeometry{1, {1024, 1}, 0}));
  for (int64_t range : {1, 3, 100, 5000, 1000000})
    for (int64_t work : {1, 5, 100, 3000, 100000}) {
      auto g = codegen::gpu_geometry(rows, range, work, 132);
      EXPECT_EQ(g.threads[0] * g.threads[1] % 32, 0u);
      EXPECT_LE(g.threads[0] * g.threads[1], 512u);
      EXPECT_EQ(g.threads[0] & (g.threads[0] - 1), 0u);
    }
}

// Threads that run in step are all there, and share memory lines, however many they are.
TEST(LaunchGeometry, WarpsAreWhole) {
  for (int warp : {32, 64})
    for (Spread spread : {Spread::kElements, Spread::kPoints, Spread::kRows, Spread::kColumns, Spread::kTiles})
      for (bool along : {true, false})
        for (int64_t range : {1, 77, 5000, 1000000})
          for (int64_t work : {1, 5, 100, 3000, 100000}) {
            auto g = codegen::gpu_geometry({spread, 4, along, 512, warp}, range, work, 104);
            EXPECT_EQ(g.threads[0] * g.threads[1] % unsigned(warp), 0u);
            EXPECT_LE(g.threads[0] * g.threads[1], 512u);
          }
  const LoopNest columns = nest_of("sum", "x[500, 900] | dims=[0]", kFloat32);
  auto wide = GpuLaunch::of(cuda_text(columns, "f", {.target = gpu_target(64)}));
  EXPECT_EQ(codegen::gpu_geometry(wide, 900, 500, 104).threads[0], 64u);
  EXPECT_EQ(codegen::gpu_geometry({Spread::kRows, 1, true, 512, 64}, 1 << 20, 100, 104).threads[0], 64u);
}

TEST(LaunchGeometry, SiblingsHaveOneSizeOfBlock) {
  for (Spread spread : {Spread::kElements, Spread::kPoints, Spread::kRows, Spread::kColumns})
    for (int64_t range : {1, 77, 100000}) {
      auto g = codegen::gpu_sibling_geometry({spread, 4, true}, range, 3000, 132);
      EXPECT_EQ(g.threads[0] * g.threads[1], unsigned(codegen::kSiblingThreads));
    }
}

}  // namespace
}  // namespace sinter
