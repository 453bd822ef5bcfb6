// Products of many rows by our own kernel on tensor cores, and what follows them: compiled, recorded and replayed, against
// the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/engine/programs.h"
#include "tests/support/distance.h"

namespace sinter {
namespace {

using Function = std::function<TensorList(const TensorList&)>;

class GpuTileProducts : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    setenv("SINTER_CUDA_PRODUCTS", "tiles", 1);
    manual_seed(3);
  }
  void TearDown() override { unsetenv("SINTER_CUDA_PRODUCTS"); }

  // The first operand moves from call to call; `shapes` begin with it.
  void check(const Function& f, std::vector<Shape> shapes) {
    NoGradGuard no_grad;
    TensorList wide, there;
    for (auto& shape : shapes) {
      Tensor t = (randn(shape) * (shape.size() == 2 && wide.size() ? 0.1 : 1.0)).to(GetParam());
      wide.push_back(t.to(kFloat32));
      there.push_back(t.to(cuda()));
    }
    TensorList want = f(wide);
    for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
      auto fast = compile(testing::with_parameters(f, {there.begin() + 1, there.end()}), {.mode = mode});
      TensorList kept;
      for (int call = 0; call < 4; ++call) {
        kept.push_back(there[0].clone());
        TensorList got = fast(kept.back());
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LT(distance(got[i], want[i]), 1.5e-2) << to_string(mode) << " call " << call << " result " << i;
      }
    }
  }
};

TEST_P(GpuTileProducts, Alone) {
  for (int64_t m : {17, 128, 300}) {
    check([](auto& x) { return TensorList{mm(x[0], x[1])}; }, {{m, 72}, {72, 200}});
    check([](auto& x) { return TensorList{mm(x[0], x[1].t())}; }, {{m, 72}, {203, 72}});
  }
}
TEST_P(GpuTileProducts, BiasAndActivation) {
  check([](auto& x) { return TensorList{gelu(mm(x[0], x[1].t()) + x[2])}; }, {{100, 256}, {320, 256}, {320}});
  check([](auto& x) { return TensorList{relu(mm(x[0], x[1].t()) + x[2])}; }, {{33, 64}, {77, 64}, {77}});
}
TEST_P(GpuTileProducts, Residual) {
  check([](auto& x) { return TensorList{x[2] + mm(x[0], x[1].t())}; }, {{150, 512}, {264, 512}, {150, 264}});
}
TEST_P(GpuTileProducts, Gate) {
  check([](auto& x) { return TensorList{silu(mm(x[0], x[1].t())) * mm(x[0], x[2].t())}; },
        {{200, 128}, {360, 128}, {360, 128}});
  check([](auto& x) { return TensorList{silu(mm(x[0], x[1])) * mm(x[0], x[2])}; }, {{40, 128}, {128, 320}, {128, 320}});
}
TEST_P(GpuTileProducts, SideBySide) {
  check(
      [](auto& x) {
        return TensorList{mm(x[0], x[1].t()) * 2, mm(x[0], x[2].t()), mm(x[0], x[3].t()) + 1};
      },
      {{130, 256}, {256, 256}, {64, 256}, {64, 256}});
}
TEST_P(GpuTileProducts, HeadsOfAttention) {
  check(
      [](auto& x) {
        return TensorList{(mm(x[0], x[1].t()) * 0.5).view({2, 65, 4, 32}).transpose(1, 2).contiguous()};
      },
      {{130, 64}, {128, 64}});
}

INSTANTIATE_TEST_SUITE_P(All, GpuTileProducts, ::testing::Values(kBFloat16, kFloat16),
                         [](auto& info) { return to_string(info.param); });

}  // namespace
}  // namespace sinter
