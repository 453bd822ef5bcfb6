// Skinny products for the GPU: the text, that it compiles for each architecture, the ways that are offered to tuning;
// and where there is a GPU, results against the host's.
#include "sinter/codegen/cuda/gemv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <set>

#include "sinter/base/format.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"
#include "tests/codegen/on_gpu.h"

namespace sinter::codegen {
namespace {

// What the kernels use of the prelude of CUDA kernels, and a prologue and epilogues such as generated ones.
const char* const kAround = R"(
namespace k {
typedef long i64;
template <int N>
struct Args {
  i64 slot[N];
  __device__ __forceinline__ i64 operator[](int i) const { return slot[i]; }
};
__device__ __forceinline__ void wait_for_previous() {}
__device__ __forceinline__ void let_next_start() {}
}
)";
const char* const kFunctions = R"(
namespace k {
template <class X>
__device__ void twice(const X& a, i64 begin, i64 end) {
  for (i64 i = begin * a[1] + threadIdx.x; i < end * a[1]; i += blockDim.x)
    gemv::encode(2 * gemv::decode(((gemv::Bf16*)a[0])[i]), ((gemv::Bf16*)a[2])[i]);
}
template <class X>
__device__ void gate(const X& a, const float* tiles, i64 row, i64 column) {
  ((float*)a[0])[row * a[1] + column] = tiles[0] * tiles[1];
}
template <class X>
__device__ void residual(const X& a, const float* tiles, i64 row, i64 column) {
  ((float*)a[0])[row * a[1] + column] += tiles[0];
}
}
)";

GemvSpec product(DType dtype, int m, int64_t k, std::vector<int64_t> widths, bool k_contiguous = true) {
  GemvSpec spec{.name = "product", .a = dtype, .b = dtype, .c = dtype, .m = m, .k = k, .slots = 16,
                .together = widths.size() == 1, .a_slot = 0, .a_stride = {.value = k}};
  for (int64_t n : widths) {
    int p = int(spec.parts.size());
    spec.parts.push_back({.n = n, .b_slot = 1 + p, .k_contiguous = k_contiguous,
                          .b_stride = {.value = k_contiguous ? k : n}, .c_slot = 4 + p, .c_stride = {.value = n}});
  }
  return spec;
}
GemvSpec with_gate(GemvSpec spec) {
  spec.together = true;
  spec.parts[0].epilogue = "gate";
  spec.parts[0].epilogue_slot = 8;
  return spec;
}
GemvSpec with_prologue(GemvSpec spec) {
  spec.prologue = "twice";
  spec.prologue_slot = 10;
  spec.prologue_output = 2;
  spec.prologue_range = spec.m;
  spec.prologue_stride = spec.k;
  return spec;
}

// Shapes of each kind.
std::vector<GemvSpec> specs() {
  std::vector<GemvSpec> out{
      product(kBFloat16, 1, 2048, {2048, 512, 512}),
      with_prologue(with_gate(product(kBFloat16, 1, 2048, {8192, 8192}))),
      product(kFloat16, 3, 777, {100}),
      with_gate(product(kBFloat16, 8, 4096, {1000, 1000})),
      product(kFloat16, 16, 14336, {4096}),
      with_gate(product(kBFloat16, 32, 2048, {8192, 8192})),
      product(kBFloat16, 64, 4096, {1000, 200, 64}),
      product(kFloat32, 16, 1000, {333, 77}),
      product(kBFloat16, 4, 1000, {700, 33}, false),
      with_gate(product(kFloat32, 1, 64, {2000, 2000}, false)),
  };
  GemvSpec mixed = product(kBFloat16, 2, 512, {300});
  mixed.a = kFloat32;
  mixed.a_stride = {.slot = 7};
  mixed.parts[0].b_stride = {.slot = 8};
  mixed.parts[0].epilogue = "residual";
  mixed.parts[0].epilogue_slot = 8;
  out.push_back(mixed);
  return out;
}

TEST(CudaGemv, CompilesForEachArchitecture) {
  if (!runtime::nvrtc_problem().empty()) GTEST_SKIP() << runtime::nvrtc_problem();
  for (auto* architecture : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    std::string text = kAround + gemv_prelude() + kFunctions;
    int count = 0;
    for (auto& spec : specs()) {
      auto all = gemv_candidates(spec, {.clusters = architecture[3] == '9'});
      ASSERT_FALSE(all.empty());
      // The default of all, and of the first the last: bulk copies.
      for (auto& tuning : {all.front(), all.back()}) {
        if (count > 1 && tuning == all.back()) continue;
        GemvSpec tuned = spec;
        tuned.tuning = tuning;
        tuned.name = format("product{}", count++);
        text += emit_gemv(tuned).text;
      }
    }
    EXPECT_FALSE(runtime::compile_cuda(text, "gemv", architecture).empty()) << architecture;
  }
}

TEST(CudaGemv, Text) {
  GemvSpec spec = with_prologue(product(kBFloat16, 2, 512, {96, 32}));
  spec.parts[1].epilogue = "residual";
  spec.parts[1].epilogue_slot = 8;
  spec.parts[1].b_stride = {.slot = 7};
  spec.tuning = {.blocks = 16, .warps = 4, .split_k = 2, .rows_per_warp = 4, .unroll = 1, .stages = 2};
  GemvText text = emit_gemv(spec);
  EXPECT_EQ(text.blocks, 16u);
  EXPECT_EQ(text.threads, 128u);
  // Two stages of four rows for each of four warps, sums of 8 rows in two slices, two rows of the left operand.
  EXPECT_EQ(text.shared_bytes, 4u * 2 * 4 * 512 + 2u * 2 * 8 * 4 + 2u * 512 * 2);
  EXPECT_EQ(text.text, R"(namespace k {
struct product_shape {
  typedef gemv::Bf16 A;
  typedef gemv::Bf16 B;
  enum : int {
    m = 2, parts = 1, inner = 512, n = 128, blocks = 16, split = 2, groups = 2, rows = 4,
    units = 1, span = 1, depth = 2, steps = 1,
    barrier_at = 16384, partial_at = 16384, left_at = 16512
  };
  static constexpr bool resident = true, bulk = false;
  struct Weights {
    const char* b0_;
    i64 s0_;
    const char* b1_;
    i64 s1_;
    template <class X_>
    __device__ __forceinline__ explicit Weights(const X_& a_) : b0_((const char*)a_[1]), s0_(i64(512) * 2), b1_((const char*)a_[2]), s1_(a_[7] * 2) {}
    __device__ __forceinline__ bool is_aligned(int bytes_) const {
      return (((i64)b0_ | s0_ | (i64)b1_ | s1_) & (bytes_ - 1)) == 0;
    }
    __device__ __forceinline__ const char* start(i64 column_, int) const {
      return column_ < 96 ? b0_ + column_ * s0_ : b1_ + (column_ - 96) * s1_;
    }
    __device__ __forceinline__ i64 step(i64 column_, int) const { return column_ < 96 ? s0_ : s1_; }
  };
  template <class X_>
  static __device__ __forceinline__ const A* left(const X_& a_, char* own_) {
    twice(gemv::Slots<X_, 10, 2>{a_, (i64)own_}, 0, 2);
    __syncthreads();
    return (const A*)own_;
  }
  template <class X_>
  static __device__ __forceinline__ i64 left_stride(const X_& a_) {
    (void)a_;
    return i64(512);
  }
  template <class X_>
  static __device__ __forceinline__ void finish(const X_& a_, const float* tiles_, i64 row_, i64 column_) {
    if (column_ < 96) {
      gemv::store<gemv::Bf16>(a_[4], row_ * i64(96) + column_, tiles_[0]);
      return;
    }
    residual(gemv::Slots<X_, 8>{a_}, tiles_, row_, column_ - 96);
  }
};
extern "C" __global__ void __launch_bounds__(128, 3) product(const __grid_constant__ Args<16> a_) {
  gemv::product_of_rows<product_shape>(a_);
}
}  // namespace k
)");
}

// Every way offered is different, can be launched, and divides what it has to.
TEST(CudaGemv, Candidates) {
  for (auto& spec : specs()) {
    EXPECT_TRUE(gemv_fits(spec, 227 * 1024));
    std::set<std::string> seen;
    for (auto& t : gemv_candidates(spec, {})) {
      EXPECT_TRUE(seen.insert(to_string(t)).second) << to_string(t);
      EXPECT_GE(t.blocks, 1);
      EXPECT_LE(t.warps, 16);
      EXPECT_EQ(t.blocks % t.cluster, 0);
      EXPECT_EQ(t.warps % t.split_k, 0);
      EXPECT_GE(t.stages, 2);
      GemvSpec tuned = spec;
      tuned.tuning = t;
      EXPECT_LE(emit_gemv(tuned).shared_bytes, 227u * 1024) << to_string(t);
    }
  }
}

// A decode step's default: all multiprocessors, the next kernel's weights beside this one's, each warp some of k.
TEST(CudaGemv, DefaultOfADecodeStep) {
  GemvSpec spec = with_prologue(product(kBFloat16, 1, 2048, {2048, 512, 512}));
  spec.tuning = gemv_candidates(spec, {}).front();
  EXPECT_EQ(to_string(spec.tuning), "132x8 split 8 rows 4 unroll 1 stages 6");
  EXPECT_LE(emit_gemv(spec).shared_bytes * 2, 227u * 1024);
  GemvSpec few = product(kBFloat16, 8, 4096, {4096});
  EXPECT_TRUE(gemv_candidates(few, {}).front().tensor_cores);
  few.a = kFloat32;
  EXPECT_FALSE(gemv_candidates(few, {}).front().tensor_cores);
}

TEST(CudaGemv, WhatDoesNotFit) {
  EXPECT_TRUE(gemv_fits(product(kBFloat16, 64, 512, {64}), 227 * 1024));
  EXPECT_FALSE(gemv_fits(product(kBFloat16, 65, 512, {64}), 227 * 1024));
  EXPECT_FALSE(gemv_fits(product(kBFloat16, 17, 512, {64}, false), 227 * 1024));
  EXPECT_FALSE(gemv_fits(product(kFloat32, 17, 512, {64}), 227 * 1024));
  EXPECT_FALSE(gemv_fits(product(kFloat64, 1, 512, {64}), 227 * 1024));
  EXPECT_FALSE(gemv_fits(product(kInt32, 1, 512, {64}), 227 * 1024));
  // 16 rows of 14336 numbers are more than a block's memory, but only where a prologue computes them.
  EXPECT_TRUE(gemv_fits(product(kBFloat16, 16, 14336, {4096}), 227 * 1024));
  EXPECT_FALSE(gemv_fits(with_prologue(product(kBFloat16, 16, 14336, {4096})), 227 * 1024));
  GemvSpec mixed = product(kBFloat16, 1, 512, {64, 64});
  mixed.parts[1].k_contiguous = false;
  EXPECT_FALSE(gemv_fits(mixed, 227 * 1024));
}

// Launches a product and compares each part (the gate's product of two) with sums in double on the host.
void expect_product(const GemvSpec& spec, const runtime::CudaFunction& function, const GemvText& text) {
  OnGpu a(spec.a, numbers(spec.m * spec.k, 1, 1));
  std::vector<float> left = a.values();
  if (!spec.prologue.empty())
    for (auto& v : left) v *= 2;
  int64_t slots[16] = {a.address()};
  std::vector<std::unique_ptr<OnGpu>> weights, results;
  std::vector<std::vector<double>> wanted;
  bool gated = spec.parts[0].epilogue == "gate";
  for (size_t p = 0; p < spec.parts.size(); ++p) {
    auto& part = spec.parts[p];
    weights.push_back(std::make_unique<OnGpu>(spec.b, numbers(part.n * spec.k, 2 + double(p), 0.1)));
    std::vector<float> poison(size_t(spec.m * part.n), NAN);
    results.push_back(std::make_unique<OnGpu>(gated ? kFloat32 : spec.c, poison));
    slots[1 + p] = weights[p]->address();
    slots[4 + p] = results[p]->address();
    std::vector<float> b = weights[p]->values();
    wanted.emplace_back();
    for (int64_t i = 0; i < spec.m; ++i)
      for (int64_t j = 0; j < part.n; ++j) {
        double sum = 0;
        for (int64_t q = 0; q < spec.k; ++q)
          sum += double(left[size_t(i * spec.k + q)]) * b[size_t(part.k_contiguous ? j * spec.k + q : q * part.n + j)];
        wanted[p].push_back(sum);
      }
  }
  slots[8] = results[0]->address();
  slots[9] = spec.parts[0].n;
  slots[10] = a.address();
  slots[11] = spec.k;
  runtime::CudaGrid grid{
      .blocks = {text.blocks, 1, 1}, .threads = {text.threads, 1, 1}, .shared_bytes = text.shared_bytes};
  runtime::cuda_launch(function, 0, grid, slots, sizeof slots);
  runtime::cuda_synchronize(0);
  for (size_t p = 0; p < (gated ? 1 : spec.parts.size()); ++p) {
    double error = relative_error(results[p]->values(), [&](size_t i) {
      return gated ? wanted[0][i] * wanted[1][i] : wanted[p][i];
    });
    EXPECT_LE(error, gated || spec.c == kFloat32 ? 1e-5 : 4e-3)
        << spec.name << " m " << spec.m << " part " << p << ": " << to_string(spec.tuning);
  }
}

TEST(GpuGemv, AgreesWithTheHost) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  std::vector<GemvSpec> all;
  for (int m : {17, 24, 31, 33, 64}) {
    all.push_back(product(kBFloat16, m, 512, {300, 70, 33}));
    all.push_back(with_gate(product(kFloat16, m, 776, {150, 150})));
    all.push_back(product(kFloat16, m, 333, {1000}));
    all.push_back(product(kBFloat16, m, 8192, {64}));
  }
  for (int m : {1, 2, 3, 8, 16}) {
    all.push_back(product(kBFloat16, m, 512, {300, 70, 33}));
    all.push_back(with_gate(product(kFloat16, m, 776, {150, 150})));
    all.push_back(with_prologue(product(kBFloat16, m, 1024, {260})));
    all.push_back(product(kFloat32, m, 333, {100}));
    all.push_back(product(kFloat16, m, 333, {100}));
    all.push_back(product(kBFloat16, m, 300, {333, 64}, false));
  }
  auto& info = runtime::cuda_device_info(0);
  const GemvDevice device{.multiprocessors = info.multiprocessors, .clusters = info.major >= 9};
  std::vector<GemvText> texts;
  std::vector<runtime::CudaSource> sources;
  for (size_t i = 0; i < all.size(); ++i) {
    auto ways = gemv_candidates(all[i], device);
    all[i].tuning = ways[i * 5 % ways.size()];
    all[i].name = format("product{}", i);
    texts.push_back(emit_gemv(all[i]));
    sources.push_back({all[i].name, texts[i].text, int(texts[i].shared_bytes)});
  }
  auto functions = runtime::load_cuda(sources, kAround + gemv_prelude() + kFunctions, 0);
  for (size_t i = 0; i < all.size(); ++i) expect_product(all[i], functions[i], texts[i]);
}

}  // namespace
}  // namespace sinter::codegen
