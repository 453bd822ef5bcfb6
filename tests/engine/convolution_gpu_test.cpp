// Convolutions and what follows them on a GPU: eagerly, compiled, recorded and replayed, against the CPU.
#include <gtest/gtest.h>

#include <functional>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/engine/programs.h"
#include "tests/support/distance.h"

namespace sinter {
namespace {

struct Image {
  DType dtype;
  bool channels_last;
};

std::string name_of(const ::testing::TestParamInfo<Image>& info) {
  return to_string(info.param.dtype) + (info.param.channels_last ? "_channels_last" : "_rows");
}

using Function = std::function<Tensor(const TensorList&)>;

class GpuConvolution : public ::testing::TestWithParam<Image> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    manual_seed(7);
  }
  // The first is the image, the others parameters.
  void check(const Function& f, std::vector<Shape> shapes) {
    NoGradGuard no_grad;
    auto [dtype, channels_last] = GetParam();
    TensorList wide, there;
    for (auto& shape : shapes) {
      Tensor t = randn(shape).to(dtype);
      if (shape.size() == 1) t = (t.to(kFloat32).abs() + 0.5).to(dtype);
      wide.push_back(t.to(kFloat32));
      there.push_back(t.to(cuda()));
    }
    if (channels_last) there[0] = there[0].contiguous(MemoryFormat::kChannelsLast);
    Tensor want = f(wide);
    const double tolerance = dtype == kFloat32 ? 1e-4 : dtype == kFloat16 ? 3e-3 : 2e-2;
    EXPECT_LT(distance(f(there), want), tolerance) << "eager";
    for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
      auto fast = compile(testing::with_parameters(f, {there.begin() + 1, there.end()}), {.mode = mode});
      TensorList kept;
      for (int call = 0; call < 4; ++call) {
        kept.push_back(there[0].clone());  // moves the image
        EXPECT_LT(distance(fast(kept.back()), want), tolerance) << to_string(mode) << " call " << call;
      }
    }
  }
};

Tensor normed(const Tensor& y, const TensorList& x, size_t first) {
  return batch_norm(y, x[first], x[first + 1], x[first + 2], x[first + 3], false, 0.1, 1e-5);
}

TEST_P(GpuConvolution, Alone) {
  check([](auto& x) { return conv2d(x[0], x[1], {}, 1, 1); }, {{2, 16, 9, 11}, {24, 16, 3, 3}});
}
TEST_P(GpuConvolution, OddChannels) {
  check([](auto& x) { return relu(conv2d(x[0], x[1], x[2], 2, 3)); }, {{2, 3, 33, 31}, {7, 3, 7, 7}, {7}});
}
TEST_P(GpuConvolution, BiasAndRelu) {
  check([](auto& x) { return relu(conv2d(x[0], x[1], x[2], 1, 1)); }, {{2, 32, 14, 14}, {64, 32, 3, 3}, {64}});
}
TEST_P(GpuConvolution, BatchNormAndRelu) {
  Shape v{32};
  check([](auto& x) { return relu(normed(conv2d(x[0], x[1], {}, 2, 1), x, 2)); },
        {{4, 16, 15, 15}, {32, 16, 3, 3}, v, v, v, v});
}
TEST_P(GpuConvolution, BatchNormResidualAndRelu) {
  Shape v{32};
  check([](auto& x) { return relu(normed(conv2d(x[0], x[1], {}, 1, 1), x, 2) + x[0]); },
        {{2, 32, 14, 14}, {32, 32, 3, 3}, v, v, v, v});
}
TEST_P(GpuConvolution, TwoBranchesMeet) {
  Shape v{64};
  check(
      [](auto& x) {
        return relu(normed(conv2d(x[0], x[1], {}, 2, 1), x, 3) + normed(conv2d(x[0], x[2], {}, 2), x, 7)).mean({2, 3});
      },
      {{2, 32, 14, 14}, {64, 32, 3, 3}, {64, 32, 1, 1}, v, v, v, v, v, v, v, v});
}
TEST_P(GpuConvolution, WhatTheLibraryDoesNotDo) {
  Shape v{32};
  check([](auto& x) { return silu(normed(conv2d(x[0], x[1], {}, 1, 1), x, 2)) * 0.5; },
        {{2, 16, 10, 10}, {32, 16, 3, 3}, v, v, v, v});
  check([](auto& x) { Tensor y = conv2d(x[0], x[1], {}, 1, 1); return gelu(y) + y; }, {{2, 16, 10, 10}, {32, 16, 3, 3}});
}
TEST_P(GpuConvolution, Dilation) {
  check([](auto& x) { return relu(conv2d(x[0], x[1], {}, 1, 2, 2)); }, {{1, 16, 12, 13}, {16, 16, 3, 3}});
}
TEST_P(GpuConvolution, Groups) {
  check([](auto& x) { return relu(conv2d(x[0], x[1], {}, 1, 1, 1, 4)); }, {{2, 32, 9, 9}, {32, 8, 3, 3}});
  check([](auto& x) { return relu(conv2d(x[0], x[1], {}, 1, 1, 1, 32)); }, {{2, 32, 9, 9}, {32, 1, 3, 3}});
}
TEST_P(GpuConvolution, StemWithPool) {
  Shape v{64};
  check([](auto& x) { return max_pool2d(relu(normed(conv2d(x[0], x[1], {}, 2, 3), x, 2)), 3, 2, 1); },
        {{2, 3, 64, 64}, {64, 3, 7, 7}, v, v, v, v});
}
TEST_P(GpuConvolution, PoolBeforeAConvolution) {
  check([](auto& x) { return relu(conv2d(max_pool2d(relu(conv2d(x[0], x[1], {}, 1, 1)), 2, 2), x[2])); },
        {{2, 16, 13, 13}, {12, 16, 3, 3}, {8, 12, 1, 1}});
}
TEST_P(GpuConvolution, AveragePool) {
  check([](auto& x) { return adaptive_avg_pool2d(relu(conv2d(x[0], x[1], {}, 1, 1)), {1, 1}).flatten(1); },
        {{2, 16, 12, 12}, {48, 16, 3, 3}});
}

// The weights are read in another order than they lie, made once; a write must not be missed.
TEST_P(GpuConvolution, ChangedWeightsAreSeen) {
  NoGradGuard no_grad;
  auto [dtype, channels_last] = GetParam();
  Tensor x = randn({2, 16, 10, 10}).to(dtype).to(cuda()), w = randn({32, 16, 3, 3}).to(dtype).to(cuda());
  Tensor mean = randn({32}).to(dtype).to(cuda()), var = (randn({32}).abs() + 0.5).to(dtype).to(cuda());
  if (channels_last) x = x.contiguous(MemoryFormat::kChannelsLast);
  auto f = [w, mean, var](const Tensor& x) { return relu(batch_norm(conv2d(x, w, {}, 1, 1), mean, var)); };
  auto fast = compile(f, {.mode = Mode::kReduceOverhead});
  const double tolerance = dtype == kFloat32 ? 1e-4 : 2e-2;
  for (int call = 0; call < 4; ++call) EXPECT_LT(distance(fast(x), f(x)), tolerance) << call;
  w.mul_(-1);
  EXPECT_LT(distance(fast(x), f(x)), tolerance);
  mean.add_(2);
  var.mul_(4);
  for (int call = 0; call < 2; ++call) EXPECT_LT(distance(fast(x), f(x)), tolerance) << call;
}

INSTANTIATE_TEST_SUITE_P(All, GpuConvolution,
                         ::testing::Values(Image{kFloat32, false}, Image{kFloat32, true}, Image{kBFloat16, false},
                                           Image{kBFloat16, true}, Image{kFloat16, true}),
                         name_of);

Tensor without_nan(const Tensor& t) { return where(ne(t, t), 77.0, t); }

// Maxima of channels-last images, odd windows and NaN included.
TEST(GpuMaxPool, ChannelsLast) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  NoGradGuard no_grad;
  for (int64_t channels : {5, 64})
    for (DType dtype : {kFloat32, kBFloat16}) {
      Tensor host = randn({2, channels, 13, 17}).to(dtype);
      host.slice(3, 4, 5).fill_(std::nan(""));
      Tensor x = host.to(cuda()).contiguous(MemoryFormat::kChannelsLast);
      auto f = [](const Tensor& x) { return max_pool2d(x, {3, 2}, {2, 1}, {1, 0}, {1, 2}); };
      auto fast = compile(f, {.mode = Mode::kReduceOverhead});
      Tensor want = without_nan(f(host).to(kFloat32));
      for (int call = 0; call < 3; ++call)
        EXPECT_EQ(distance(without_nan(fast(x.clone()).to(cpu()).to(kFloat32)), want), 0) << channels << " " << call;
    }
}

// Where the maxima come from: ties, windows of -inf and overlapping ones included.
TEST(GpuMaxPool, GradientsOfChannelsLast) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  for (int64_t channels : {5, 64})
    for (DType dtype : {kFloat32, kBFloat16}) {
      Tensor host = randint(-3, 3, {2, channels, 13, 17}).to(dtype), weights = randint(-9, 9, {2, channels, 13, 17}).to(dtype);
      host.slice(3, 4, 9).fill_(-std::numeric_limits<double>::infinity());
      auto f = [](const Tensor& x, const Tensor& weights) {
        Tensor leaf = x.detach().requires_grad_();
        Tensor y = max_pool2d(leaf * 1, {3, 2}, {2, 1}, {1, 0}, {1, 2});
        Tensor part = weights.slice(2, 0, y.size(2)).slice(3, 0, y.size(3));
        return autograd::grad({y}, {leaf}, {part.contiguous(MemoryFormat::kChannelsLast)})[0];
      };
      Tensor want = f(host, weights).to(kFloat32);
      auto last = [](const Tensor& t) { return t.to(cuda()).contiguous(MemoryFormat::kChannelsLast); };
      auto fast = compile(f, {.mode = Mode::kReduceOverhead});
      for (int call = 0; call < 3; ++call)
        EXPECT_EQ(distance(fast(last(host), last(weights)).to(cpu()).to(kFloat32), want), 0) << channels << " " << call;
    }
}

}  // namespace
}  // namespace sinter
