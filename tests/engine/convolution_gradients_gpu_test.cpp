// Gradients of convolutions, and transposed ones, on a GPU: eagerly, compiled, recorded and replayed, against the CPU.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/engine/training_block.h"
#include "tests/support/distance.h"

namespace sinter {
namespace {

struct Geometry {
  const char* name;
  Shape x, w;
  int64_t stride = 1, padding = 1, dilation = 1, groups = 1;
  bool transposed = false;
  int64_t output_padding = 0;
};

// Sizes that the strides do not divide among them: the last positions of the image then have no gradient.
const Geometry kGeometries[] = {
    {.name = "Plain", .x = {2, 16, 9, 11}, .w = {24, 16, 3, 3}},
    {.name = "OnePlace", .x = {3, 32, 7, 7}, .w = {16, 32, 1, 1}, .padding = 0},
    {.name = "OnePlaceStrided", .x = {3, 32, 8, 8}, .w = {64, 32, 1, 1}, .stride = 2, .padding = 0},
    {.name = "Strided", .x = {2, 16, 14, 13}, .w = {32, 16, 3, 3}, .stride = 2},
    {.name = "Stem", .x = {2, 3, 34, 33}, .w = {16, 3, 7, 7}, .stride = 2, .padding = 3},
    {.name = "Dilated", .x = {1, 16, 12, 13}, .w = {16, 16, 3, 3}, .padding = 2, .dilation = 2},
    {.name = "Groups", .x = {2, 32, 9, 9}, .w = {32, 8, 3, 3}, .groups = 4},
    {.name = "DepthWise", .x = {2, 32, 10, 10}, .w = {32, 1, 3, 3}, .stride = 2, .groups = 32},
    {.name = "OddChannels", .x = {2, 5, 9, 9}, .w = {7, 5, 3, 3}},
    {.name = "OneDimension", .x = {2, 8, 33}, .w = {16, 8, 5}, .stride = 2, .padding = 2},
    {.name = "ThreeDimensions", .x = {1, 8, 5, 6, 7}, .w = {16, 8, 3, 3, 3}},
    {.name = "Transposed", .x = {2, 16, 7, 9}, .w = {16, 24, 3, 3}, .stride = 2, .transposed = true, .output_padding = 1},
    {.name = "TransposedGroups", .x = {2, 16, 7, 9}, .w = {16, 4, 2, 2}, .stride = 2, .padding = 0, .groups = 4, .transposed = true},
    {.name = "TransposedWithMorePadding", .x = {2, 8, 6, 6}, .w = {8, 8, 3, 3}, .dilation = 2, .transposed = true, .output_padding = 1},
};

struct Case {
  Geometry geometry;
  DType dtype;
  bool channels_last;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (auto& geometry : kGeometries)
    for (DType dtype : {kFloat32, kFloat16, kBFloat16})
      for (bool channels_last : {false, true})
        if (!channels_last || geometry.x.size() == 4) out.push_back({geometry, dtype, channels_last});
  return out;
}
std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  auto& c = info.param;
  return std::string(c.geometry.name) + "_" + to_string(c.dtype) + (c.channels_last ? "_channels_last" : "_rows");
}

// The result, and the gradients of the image, the weight and the bias.
TensorList run(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& flow) {
  TensorList leaves{x.detach(), w.detach(), bias.detach()};
  for (auto& leaf : leaves) leaf.requires_grad_(true);
  Tensor y = convolution(leaves[0], leaves[1], leaves[2], g.stride, g.padding, g.dilation, g.transposed,
                         g.output_padding, g.groups);
  TensorList grads = autograd::grad({y}, leaves, {flow});
  return {y.detach(), grads[0], grads[1], grads[2]};
}

class GpuConvolutionGradients : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    manual_seed(7);
  }
};

TEST_P(GpuConvolutionGradients, AreThoseOfTheCpu) {
  auto& [g, dtype, channels_last] = GetParam();
  const int64_t channels = (g.transposed ? g.w[1] * g.groups : g.w[0]).to_int();
  Tensor x = randn(g.x).to(dtype), w = randn(g.w).to(dtype), bias = randn({channels}).to(dtype);
  Tensor y = convolution(x, w, bias, g.stride, g.padding, g.dilation, g.transposed, g.output_padding, g.groups);
  Tensor flow = randn(y.sizes()).to(dtype);
  TensorList want = run(g, x.to(kFloat32), w.to(kFloat32), bias.to(kFloat32), flow.to(kFloat32));
  TensorList there{x.to(cuda()), w.to(cuda()), bias.to(cuda()), flow.to(cuda())};
  if (channels_last)
    for (int i : {0, 1, 3}) there[size_t(i)] = there[size_t(i)].contiguous(MemoryFormat::kChannelsLast);
  const double tolerance = dtype == kFloat32 ? 1e-4 : dtype == kFloat16 ? 3e-3 : 2e-2;
  auto compare = [&](const TensorList& got, const std::string& how) {
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_LT(distance(got[i], want[i]), tolerance)
          << how << ": " << std::array{"result", "image", "weight", "bias"}[i];
  };
  TensorList eager = run(g, there[0], there[1], there[2], there[3]);
  compare(eager, "eager");
  // By loops, where no library takes it, they lie row-major.
  if (channels_last && dtype != kFloat32 && !(g.transposed && g.output_padding > 0 && g.dilation > 1)) {
    EXPECT_TRUE(eager[1].is_contiguous(MemoryFormat::kChannelsLast));
  }
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
    auto step = [&g](const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& flow) { return run(g, x, w, bias, flow); };
    auto fast = compile(step, {.mode = mode});
    TensorList kept;
    for (int call = 0; call < 4; ++call) {
      kept.push_back(there[0].clone());  // moves the image
      compare(fast(kept.back(), there[1], there[2], there[3]), to_string(mode) + " call " + std::to_string(call));
    }
  }
}

TEST(GpuTrainingBlock, CompiledIsAsEager) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead})
    for (bool half : {false, true}) testing::check_training_block(cuda(), mode, half);
}

INSTANTIATE_TEST_SUITE_P(All, GpuConvolutionGradients, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace sinter
