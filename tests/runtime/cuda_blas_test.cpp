#include "sinter/runtime/cuda/cublaslt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/library_search.h"
#include "tests/runtime/cuda_test_memory.h"

namespace sinter::runtime {
namespace {

TEST(CudaLibrarySearch, SaysWhatIsMissingAndWhatToDo) {
  std::string problem;
  EXPECT_FALSE(open_cuda_library("cuNothing", {"libcunothing.so.7", "libcunothing.so"}, problem));
  EXPECT_NE(problem.find("cuNothing was not found: there is no libcunothing.so.7, libcunothing.so in"),
            std::string::npos)
      << problem;
  EXPECT_NE(problem.find("CUDA_HOME"), std::string::npos) << problem;
}

TEST(CudaBlas, WithoutAGpuAProductSaysWhy) {
  if (cublaslt_problem().empty()) GTEST_SKIP() << "cuBLASLt works here";
  try {
    cuda_matmul(0, {});
    FAIL() << "there is no GPU to run this";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(cublaslt_problem()), std::string::npos) << e.what();
  }
}

class GpuBlas : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
    ASSERT_EQ(cublaslt_problem(), "");
  }
};

struct Case {
  DType dtype = kFloat32;
  int64_t batch = 1, m = 4, n = 4, k = 4;
  bool transposed_a = false, transposed_b = false;
  CudaMatmulEpilogue epilogue = CudaMatmulEpilogue::kNone;
  float alpha = 1, beta = 0;
  int64_t padding = 0;  // elements between the rows of each matrix
  bool tune = false, prepare = false;
};

double activated(double v, CudaMatmulEpilogue e) {
  if (e == CudaMatmulEpilogue::kRelu || e == CudaMatmulEpilogue::kReluBias) return std::max(v, 0.0);
  if (e == CudaMatmulEpilogue::kGelu || e == CudaMatmulEpilogue::kGeluBias)
    return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  return v;
}

// The relative error of the product against sums in double.
double error_of(const Case& c) {
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  auto fill = [&](int64_t count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (auto& v : values) v = normal(random);
    return decode(encode(values, c.dtype), c.dtype);
  };
  auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    CudaMatrix x;
    int64_t line = (transposed ? rows : columns) + c.padding, lines = transposed ? columns : rows;
    x.row_stride = transposed ? 1 : line;
    x.column_stride = transposed ? line : 1;
    x.batch_stride = line * lines;
    return x;
  };
  CudaMatmul p;
  p.batch = c.batch, p.m = c.m, p.n = c.n, p.k = c.k;
  p.dtype = c.dtype, p.alpha = c.alpha, p.beta = c.beta, p.epilogue = c.epilogue;
  p.a = matrix(c.m, c.k, c.transposed_a), p.b = matrix(c.k, c.n, c.transposed_b), p.c = matrix(c.m, c.n, false);
  auto a = fill(c.batch * p.a.batch_stride), b = fill(c.batch * p.b.batch_stride),
       before = fill(c.batch * p.c.batch_stride), bias = fill(c.n);
  OnDevice on_a(encode(a, c.dtype)), on_b(encode(b, c.dtype)), on_c(encode(before, c.dtype)),
      on_bias(encode(bias, c.dtype));
  p.a.data = on_a.data, p.b.data = on_b.data, p.c.data = on_c.data;
  bool biased = c.epilogue == CudaMatmulEpilogue::kBias || c.epilogue == CudaMatmulEpilogue::kGeluBias ||
                c.epilogue == CudaMatmulEpilogue::kReluBias;
  if (biased) p.bias = on_bias.data;
  if (c.tune) {
    EXPECT_GT(tune_cuda_matmul(0, p, 0.1), 0);
  }
  if (c.prepare) {
    CudaMatmul elsewhere = p;
    elsewhere.a.data = elsewhere.b.data = elsewhere.c.data = reinterpret_cast<void*>(uintptr_t(1) << 20);
    std::thread([&] { prepare_cuda_matmul(0, elsewhere); }).join();
  }
  cuda_matmul(0, p);
  auto after = decode(on_c.read<char>(), c.dtype);
  double wrong = 0, size = 0;
  for (int64_t i = 0; i < c.batch; ++i)
    for (int64_t row = 0; row < c.m; ++row)
      for (int64_t column = 0; column < c.n + c.padding; ++column) {
        auto at = size_t(i * p.c.batch_stride + row * p.c.row_stride + column);
        double want = before[at];
        if (column < c.n) {
          double sum = 0;
          for (int64_t j = 0; j < c.k; ++j)
            sum += a[size_t(i * p.a.batch_stride + row * p.a.row_stride + j * p.a.column_stride)] *
                   b[size_t(i * p.b.batch_stride + j * p.b.row_stride + column * p.b.column_stride)];
          want = activated(c.alpha * sum + c.beta * before[at] + (biased ? bias[size_t(column)] : 0), c.epilogue);
        }
        wrong += (after[at] - want) * (after[at] - want);
        size += want * want;
      }
  return std::sqrt(wrong / size);
}

TEST_F(GpuBlas, PreparedOnAnotherThread) {
  EXPECT_LT(error_of({.dtype = kBFloat16, .m = 40, .n = 136, .k = 64, .prepare = true}), tolerance(kBFloat16));
}

TEST_F(GpuBlas, EveryTypeAndOrderOfOperands) {
  for (DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16})
    for (bool a : {false, true})
      for (bool b : {false, true})
        for (int64_t padding : {0, 8, 3})
          EXPECT_LT(error_of({dtype, 1, 40, 72, 96, a, b, CudaMatmulEpilogue::kNone, 1, 0, padding}), tolerance(dtype))
              << dtype << " " << a << b << " " << padding;
}

TEST_F(GpuBlas, OddAndSmallSizes) {
  for (DType dtype : {kFloat32, kBFloat16})
    for (auto [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {1, 7, 5}, {7, 1, 5}, {3, 5, 1}, {129, 65, 33}, {1, 512, 2048}})
      for (bool b : {false, true})
        EXPECT_LT(error_of({dtype, 1, m, n, k, false, b}), tolerance(dtype)) << m << " " << n << " " << k;
}

TEST_F(GpuBlas, BatchesScalesAndEpilogues) {
  for (DType dtype : {kFloat32, kBFloat16, kFloat16}) {
    EXPECT_LT(error_of({dtype, 5, 17, 24, 32, false, true}), tolerance(dtype));
    EXPECT_LT(error_of({.dtype = dtype, .m = 33, .n = 48, .k = 64, .alpha = 0.5f, .beta = 2}), tolerance(dtype));
    for (int e = 0; e <= int(CudaMatmulEpilogue::kReluBias); ++e)
      EXPECT_LT(error_of({dtype, 1, 64, 96, 128, false, true, CudaMatmulEpilogue(e)}), 2 * tolerance(dtype))
          << dtype << e;
  }
}

TEST_F(GpuBlas, ATunedProductIsStillRight) {
  EXPECT_LT(error_of({.dtype = kBFloat16, .m = 64, .n = 512, .k = 1024, .transposed_b = true, .tune = true}), 5e-3);
  EXPECT_LT(error_of({.dtype = kFloat32, .m = 100, .n = 60, .k = 200, .tune = true}), 1e-6);
}

TEST_F(GpuBlas, ARecordedProductSeesNewData) {
  CudaMatmul p;
  p.m = p.n = p.k = 2;
  OnDevice a(encode({1, 2, 3, 4}, kFloat32)), b(encode({1, 0, 0, 1}, kFloat32)), c(encode({9, 9, 9, 9}, kFloat32));
  p.a = {a.data, 2, 1, 0}, p.b = {b.data, 2, 1, 0}, p.c = {c.data, 2, 1, 0};
  cuda_matmul(0, p);
  auto graph = CudaGraph::capture(0, [&] { cuda_matmul(0, p); });
  auto other = encode({5, 6, 7, 8}, kFloat32);
  cuda_copy(a.data, cuda(0), other.data(), cpu(), other.size());
  graph->launch(cuda_stream(0));
  EXPECT_EQ(decode(c.read<char>(), kFloat32), (std::vector<double>{5, 6, 7, 8}));
}

TEST_F(GpuBlas, EmptySumsAndMistakes) {
  CudaMatmul p;
  p.m = 2, p.n = 3, p.k = 0;
  OnDevice c(encode({1, 2, 3, 4, 5, 6}, kFloat32));
  p.c = {c.data, 3, 1, 0};
  cuda_matmul(0, p);
  EXPECT_EQ(decode(c.read<char>(), kFloat32), std::vector<double>(6, 0.0));
  p.k = 2;
  p.a = {c.data, 2, 2, 0}, p.b = {c.data, 3, 1, 0};
  EXPECT_THROW(cuda_matmul(0, p), Error);  // no stride of `a` is 1
}

}  // namespace
}  // namespace sinter::runtime
