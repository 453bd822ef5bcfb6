#include "sinter/runtime/cuda/cudnn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/graph.h"
#include "tests/runtime/cuda_test_memory.h"

namespace sinter::runtime {
namespace {

TEST(CudaDnn, WithoutAGpuAConvolutionSaysWhy) {
  if (cudnn_problem().empty()) GTEST_SKIP() << "cuDNN works here";
  try {
    cuda_convolution(0, {});
    FAIL() << "there is no GPU to run this";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(cudnn_problem()), std::string::npos) << e.what();
  }
}

class GpuDnn : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
    if (!cudnn_problem().empty()) GTEST_SKIP() << cudnn_problem();
  }
};

struct Case {
  CudaConvKind kind = CudaConvKind::kForward;
  DType dtype = kFloat32;
  int spatial = 2;
  bool channels_last = true;
  int64_t groups = 1, stride = 1, padding = 1, dilation = 1, kernel = 3;
  bool bias = false, residual = false, relu = false, tune = false;
};

int64_t volume(const CudaConvTensor& t) { return t.sizes[0] * t.sizes[1] * t.sizes[2] * t.sizes[3] * t.sizes[4]; }

// A packed tensor; dimensions beyond the rank have size 1 and stride 0, so that three loops serve all.
CudaConvTensor packed(int64_t first, int64_t channels, int64_t extent, int spatial, bool channels_last) {
  CudaConvTensor t;
  t.sizes = {first, channels, extent, spatial > 1 ? extent : 1, spatial > 2 ? extent : 1};
  int64_t step = channels_last ? channels : 1;
  t.strides = {};
  for (int d = spatial + 1; d >= 2; --d) {
    t.strides[size_t(d)] = step;
    step *= t.sizes[size_t(d)];
  }
  t.strides[1] = channels_last ? 1 : step;
  t.strides[0] = channels_last ? step : step * channels;
  return t;
}

constexpr int64_t kBatch = 2, kIn = 16, kOut = 32;

// Calls visit(x, w, y) for every product in it: the places of its factors, and of the sum that it belongs to.
void for_each_product(const Case& c, const CudaConvolution& p, const std::function<void(size_t, size_t, size_t)>& visit) {
  auto offset = [](const CudaConvTensor& t, int64_t n, int64_t ch, const std::array<int64_t, 3>& place) {
    return size_t(n * t.strides[0] + ch * t.strides[1] + place[0] * t.strides[2] + place[1] * t.strides[3] +
                  place[2] * t.strides[4]);
  };
  auto place_of = [](const CudaConvTensor& t, int64_t number) {
    return std::array<int64_t, 3>{number / (t.sizes[3] * t.sizes[4]), number / t.sizes[4] % t.sizes[3],
                                  number % t.sizes[4]};
  };
  auto places = [](const CudaConvTensor& t) { return t.sizes[2] * t.sizes[3] * t.sizes[4]; };
  const int64_t inputs = kIn / c.groups;
  for (int64_t n = 0; n < kBatch; ++n)
    for (int64_t o = 0; o < kOut; ++o)
      for (int64_t at = 0; at < places(p.y); ++at)
        for (int64_t tap = 0; tap < places(p.w); ++tap) {
          auto to = place_of(p.y, at), k = place_of(p.w, tap);
          std::array<int64_t, 3> from{};
          bool inside = true;
          for (size_t d = 0; d < size_t(c.spatial); ++d) {
            from[d] = to[d] * c.stride + k[d] * c.dilation - c.padding;
            inside = inside && from[d] >= 0 && from[d] < p.x.sizes[d + 2];
          }
          for (int64_t ch = 0; inside && ch < inputs; ++ch)
            visit(offset(p.x, n, o / (kOut / c.groups) * inputs + ch, from), offset(p.w, o, ch, k), offset(p.y, n, o, to));
        }
}

// The relative error against sums in double; -1 when the library cannot do it.
double error_of(const Case& c) {
  int64_t extent = c.spatial == 3 ? 5 : 9;
  int64_t reached = (extent + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  CudaConvolution p;
  p.kind = c.kind, p.dtype = c.dtype, p.spatial = c.spatial;
  p.x = packed(kBatch, kIn, extent, c.spatial, c.channels_last);
  p.w = packed(kOut, kIn / c.groups, c.kernel, c.spatial, c.channels_last);
  p.y = packed(kBatch, kOut, reached, c.spatial, c.channels_last);
  p.stride.fill(c.stride), p.padding.fill(c.padding), p.dilation.fill(c.dilation);
  p.activation = c.relu ? CudaConvActivation::kRelu : CudaConvActivation::kNone;
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  auto fill = [&](int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (auto& v : values) v = normal(random);
    return decode(encode(values, c.dtype), c.dtype);
  };
  auto x = fill(volume(p.x)), w = fill(volume(p.w)), y = fill(volume(p.y)), bias = fill(kOut), residual = fill(volume(p.y));
  OnDevice on_x(encode(x, c.dtype)), on_w(encode(w, c.dtype)), on_y(encode(y, c.dtype)), on_bias(encode(bias, c.dtype)),
      on_residual(encode(residual, c.dtype));
  p.x.data = on_x.data, p.w.data = on_w.data, p.y.data = on_y.data;
  p.bias = c.bias ? on_bias.data : nullptr;
  p.residual = c.residual ? on_residual.data : nullptr;
  if (!prepare_cuda_convolution(0, p)) return -1;
  if (c.tune) {
    EXPECT_GT(tune_cuda_convolution(0, p, 0.1), 0);
  }
  auto graph = CudaGraph::capture(0, [&] { cuda_convolution(0, p); });
  graph->launch(cuda_stream(0));
  const bool forward = c.kind == CudaConvKind::kForward, data = c.kind == CudaConvKind::kData;
  auto got = decode((forward ? on_y : data ? on_x : on_w).read<char>(), c.dtype);
  std::vector<double> want(got.size(), 0);
  for_each_product(c, p, [&](size_t i, size_t j, size_t k) {
    if (forward)
      want[k] += x[i] * w[j];
    else if (data)
      want[i] += y[k] * w[j];
    else
      want[j] += x[i] * y[k];
  });
  double wrong = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double sum = want[i];
    const size_t channel = c.channels_last ? i % kOut : i / size_t(p.y.strides[1]) % kOut;
    if (c.residual) sum += residual[i];
    if (c.bias) sum += bias[channel];
    if (c.relu) sum = std::max(sum, 0.0);
    wrong += (got[i] - sum) * (got[i] - sum);
    size += sum * sum;
  }
  return std::sqrt(wrong / size);
}

void expect_right(const Case& c) {
  double error = error_of(c);
  EXPECT_GE(error, 0) << "the library has no way";
  EXPECT_LT(error, 2 * tolerance(c.dtype)) << c.dtype << " " << c.spatial << "d";
}

TEST_F(GpuDnn, BothLayoutsOfEveryType) {
  for (DType dtype : {kFloat32, kFloat16, kBFloat16})
    for (bool channels_last : {true, false}) expect_right({.dtype = dtype, .channels_last = channels_last});
}
TEST_F(GpuDnn, StridesDilationGroupsAndDimensions) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    expect_right({.dtype = dtype, .stride = 2});
    expect_right({.dtype = dtype, .padding = 2, .dilation = 2});
    expect_right({.dtype = dtype, .padding = 0, .kernel = 1});
    expect_right({.dtype = dtype, .groups = 2});
    expect_right({.dtype = dtype, .spatial = 1});
    expect_right({.dtype = dtype, .spatial = 3});
  }
}
TEST_F(GpuDnn, FusedBiasResidualAndActivation) {
  for (DType dtype : {kFloat16, kBFloat16}) {
    expect_right({.dtype = dtype, .bias = true});
    expect_right({.dtype = dtype, .bias = true, .relu = true});
    expect_right({.dtype = dtype, .bias = true, .residual = true, .relu = true});
  }
}
TEST_F(GpuDnn, ATunedConvolutionIsStillRight) {
  expect_right({.dtype = kBFloat16, .bias = true, .relu = true, .tune = true});
  expect_right({.dtype = kFloat32, .tune = true});
}

TEST_F(GpuDnn, GradientsOfEveryTypeAndLayout) {
  for (auto kind : {CudaConvKind::kData, CudaConvKind::kFilter})
    for (DType dtype : {kFloat32, kFloat16, kBFloat16})
      for (bool channels_last : {true, false}) {
        SCOPED_TRACE(kind == CudaConvKind::kData ? "data" : "filter");
        expect_right({.kind = kind, .dtype = dtype, .channels_last = channels_last});
        expect_right({.kind = kind, .dtype = dtype, .channels_last = channels_last, .padding = 0, .kernel = 1});
      }
}
TEST_F(GpuDnn, GradientsOfStridesDilationGroupsAndDimensions) {
  for (auto kind : {CudaConvKind::kData, CudaConvKind::kFilter})
    for (DType dtype : {kFloat32, kBFloat16}) {
      SCOPED_TRACE(kind == CudaConvKind::kData ? "data" : "filter");
      expect_right({.kind = kind, .dtype = dtype, .stride = 2});
      expect_right({.kind = kind, .dtype = dtype, .stride = 2, .padding = 0, .kernel = 1});
      expect_right({.kind = kind, .dtype = dtype, .padding = 2, .dilation = 2});
      expect_right({.kind = kind, .dtype = dtype, .groups = 2});
      expect_right({.kind = kind, .dtype = dtype, .spatial = 1});
      expect_right({.kind = kind, .dtype = dtype, .spatial = 3});
    }
}
TEST_F(GpuDnn, ATunedGradientIsStillRight) {
  expect_right({.kind = CudaConvKind::kData, .dtype = kBFloat16, .tune = true});
  expect_right({.kind = CudaConvKind::kFilter, .dtype = kBFloat16, .tune = true});
}
TEST_F(GpuDnn, NothingFollowsAGradient) {
  EXPECT_EQ(error_of({.kind = CudaConvKind::kData, .dtype = kBFloat16, .relu = true}), -1);
}

}  // namespace
}  // namespace sinter::runtime
