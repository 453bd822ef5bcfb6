// Programs as CUDA graphs: results are the caller's, inputs may lie anywhere, and what goes wrong is survived.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compile.h"
#include "sinter/engine/cuda/replay.h"
#include "sinter/engine/profile.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/cuda.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {
namespace {

class GpuGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  }
  NoGradGuard no_grad_;
  const CompileOptions graphs_{.mode = Mode::kReduceOverhead};
};

double largest_difference(const Tensor& a, const Tensor& b) {
  return (a.to(cpu()).to(kFloat64) - b.to(cpu()).to(kFloat64)).abs().amax().item<double>();
}

TEST_F(GpuGraphs, EveryResultOfAThousandCallsStays) {
  auto fast = compile([](const Tensor& x) { return x.softmax(-1) * 2 + x; }, graphs_);
  std::vector<Tensor> inputs, results;
  for (int i = 0; i < 1000; ++i) {
    inputs.push_back(full({4, 33}, double(i) / 7, TensorOptions(kFloat32).device(cuda())));
    results.push_back(fast(inputs.back()));
  }
  for (int i = 0; i < 1000; ++i) {
    float want = 2.0f / 33 + float(double(i) / 7);
    for (float got : results[size_t(i)].to_vector<float>()) ASSERT_NEAR(got, want, 1e-4 * want + 1e-6) << i;
  }
}

// Contractions without neighbours, their operands and results in other memory at every call: one graph is recorded, and
// every call from then on replays it.
TEST_F(GpuGraphs, LoneContractionsAreRecordedWithMemoryOfTheCaller) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> f;
    IntList x, w;
  };
  const Case cases[] = {
      {"mm", [](auto& x, auto& w) { return mm(x, w); }, {40, 64}, {64, 96}},
      {"mm of few rows", [](auto& x, auto& w) { return mm(x, w); }, {2, 64}, {64, 96}},
      {"mm of a transposed weight", [](auto& x, auto& w) { return mm(x, w.transpose(0, 1)); }, {40, 64}, {96, 64}},
      {"bmm", [](auto& x, auto& w) { return bmm(x, w); }, {3, 40, 64}, {3, 64, 24}},
      {"conv2d", [](auto& x, auto& w) { return conv2d(x, w); }, {2, 8, 12, 12}, {16, 8, 3, 3}},
      {"conv1d", [](auto& x, auto& w) { return conv1d(x, w); }, {2, 8, 30}, {16, 8, 3}},
  };
  for (auto& c : cases)
    for (DType dtype : {kFloat32, kBFloat16}) {
      auto fast = compile(c.f, graphs_);
      CudaReplayStats before = cuda_replay_stats();
      std::vector<Tensor> kept;  // so that memory is not used again
      constexpr int kCalls = 5;
      for (int i = 0; i < kCalls; ++i) {
        Tensor x = randn(Shape(c.x)).to(dtype), w = randn(Shape(c.w)).to(dtype);
        for (auto& t : {x, w}) kept.push_back(t.to(cuda()));
        kept.push_back(fast(kept[size_t(3 * i)], kept[size_t(3 * i) + 1]));
        double limit = dtype == kFloat32 ? 1e-3 : 0.3;
        EXPECT_LT(largest_difference(kept.back(), c.f(x.to(kFloat32), w.to(kFloat32))), limit) << c.name << " " << i;
      }
      CudaReplayStats now = cuda_replay_stats();
      EXPECT_EQ(now.given_up, before.given_up) << c.name << " of " << dtype << ": " << now.why;
      EXPECT_EQ(now.recorded - before.recorded, 1) << c.name << " of " << dtype;
      EXPECT_EQ(now.replayed - before.replayed, kCalls - 1) << c.name << " of " << dtype;
    }
}

TEST_F(GpuGraphs, WeightsThatMoveAreFoundAgain) {
  auto fast = compile([](const Tensor& x, const Tensor& w) { return mm(x, w).relu() + 1; }, graphs_);
  Tensor x = randn({3, 32}).to(cuda());
  for (int i = 0; i < 40; ++i) {
    // The same memory for a while, then other memory.
    Tensor w = randn({32, 16}).to(cuda());
    for (int again = 0; again < 3; ++again) {
      w.add_(1);
      EXPECT_LT(largest_difference(fast(x, w), mm(x.to(cpu()), w.to(cpu())).relu() + 1), 1e-3) << i << " " << again;
    }
  }
}

TEST_F(GpuGraphs, NumbersOfTheCallerAreRead) {
  auto fast = compile([](const Tensor& x, double scale) { return x * scale - 1; }, graphs_);
  Tensor x = ones({5}).to(cuda());
  for (double scale : {1.5, -2.0, 0.25, 7.0, -3.5})
    EXPECT_EQ(fast(x, scale).to_vector<float>(), std::vector<float>(5, float(scale - 1)));
}

TEST_F(GpuGraphs, WhatTheProgramChangesInPlace) {
  Tensor state = zeros({8}).to(cuda());
  auto step = compile([state](const Tensor& x) {
    state.add_(x);
    return state * 2;
  }, graphs_);
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(step(ones({8}).to(cuda())).to_vector<float>(), std::vector<float>(8, float(2 * i)));
}

// More operands than a kernel has room for: the norms of all gradients of a model are stacked.
TEST_F(GpuGraphs, ManyTensorsAreJoined) {
  TensorList pieces;
  for (int i = 0; i < 300; ++i) pieces.push_back(full({3, 2, 1 + i % 2}, i, TensorOptions().device(cuda())).transpose(0, 1));
  TensorList on_cpu;
  for (auto& piece : pieces) on_cpu.push_back(piece.to(cpu()));
  auto join = [](const TensorList& in) { return cat(in, 2) * 2; };
  auto compiled = compile(join, {.mode = Mode::kReduceOverhead});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(equal(compiled(pieces).to(cpu()), join(on_cpu)));
  EXPECT_TRUE(equal(join(pieces).to(cpu()), join(on_cpu)));
}

TEST_F(GpuGraphs, OrderingsAreRecorded) {
  auto fast = compile([](const Tensor& x) { return std::get<0>(topk(x * 3, Dim(4), -1)); }, graphs_);
  for (int i = 0; i < 5; ++i) {
    Tensor x = randn({6, 500});
    EXPECT_LT(largest_difference(fast(x.to(cuda())), std::get<0>(topk(x * 3, Dim(4), -1))), 1e-6) << i;
  }
}

TEST_F(GpuGraphs, AnIndexOutOfRangeIsAnErrorAndTheDeviceGoesOn) {
  Tensor table = arange(12).to(kFloat32).view({6, 2}).to(cuda());
  auto fast = compile([table](const Tensor& at) { return table.index_select(0, at) + 1; }, graphs_);
  Tensor good = tensor({1, 5}).to(cuda()), bad = tensor({1, 99}).to(cuda());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(fast(good).to_vector<float>(), (std::vector<float>{3, 4, 11, 12}));
  try {
    fast(bad).to_vector<float>();
    ADD_FAILURE() << "an index of 99 was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("index 99 is out of range for size 6"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fast(good).to_vector<float>(), (std::vector<float>{3, 4, 11, 12}));
}

TEST_F(GpuGraphs, OutOfMemoryInTheMiddleIsSurvived) {
  auto fast = compile([](const Tensor& x) {
    Tensor y = mm(x, x);
    return mm(y, x) + y;
  }, graphs_);
  Tensor kept = randn({256, 256}).to(cuda()), before = kept.to(cpu());
  Tensor large = randn({4096, 4096}).to(cuda());
  empty_cuda_cache(cuda());
  set_cuda_memory_limit(size_t(cuda_memory_stats(cuda()).reserved) + (8 << 20));
  EXPECT_THROW(fast(large), OutOfMemoryError);
  set_cuda_memory_limit(0);
  EXPECT_EQ(largest_difference(kept, before), 0);
  Tensor small = kept * 0.01;
  for (int i = 0; i < 4; ++i) {
    Tensor y = mm(small.to(cpu()), small.to(cpu()));
    EXPECT_LT(largest_difference(fast(small), mm(y, small.to(cpu())) + y), 1e-3) << i;
  }
}

TEST_F(GpuGraphs, AProfileHasTheTimesOfKernels) {
  auto fast = compile([](const Tensor& x) { return x.softmax(-1); }, graphs_);
  Tensor x = randn({2048, 4096}).to(cuda());
  for (int i = 0; i < 3; ++i) fast(x);
  Profile profile([&] { fast(x); });
  auto kernels = profile.kernels();
  ASSERT_FALSE(kernels.empty());
  EXPECT_GT(kernels[0].seconds, 5e-6);
  EXPECT_LT(kernels[0].seconds, 5e-3);
  EXPECT_NE(profile.table().find("ceilings of cuda:0"), std::string::npos);
}

}  // namespace
}  // namespace sinter
