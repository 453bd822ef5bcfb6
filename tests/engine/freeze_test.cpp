// Frozen weights: the same results from rearranged weights, and no stale ones after a broken promise.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/packed_weight.h"
#include "sinter/ops/activation.h"
#include "sinter/ops/binary.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/random.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {
namespace {

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().amax().item<double>(); }

TEST(Freeze, ResultsAreThoseOfTheWeights) {
  NoGradGuard no_grad;
  manual_seed(1);
  for (DType dtype : {kFloat32, kBFloat16}) {
    Tensor w = (randn({40, 64}) * 0.1).to(dtype), u = (randn({64, 24}) * 0.1).to(dtype);
    auto f = [w, u](const Tensor& x) { return matmul(gelu(matmul(x, w)), u); };
    auto frozen = compile(f, {.options = {{"freeze", int64_t(1)}}});
    for (int64_t rows : {1, 5, 70}) {
      Tensor x = randn({rows, 40}).to(dtype);
      EXPECT_LT(distance(frozen(x).to(kFloat32), f(x).to(kFloat32)), dtype == kFloat32 ? 1e-5 : 2e-2) << rows;
    }
  }
}

TEST(Freeze, AWeightThatChangesAllTheSameIsSeen) {
  NoGradGuard no_grad;
  manual_seed(2);
  Tensor w = randn({16, 32}), x = randn({20, 16});
  auto frozen = compile([w](const Tensor& x) { return matmul(x, w) + 1; }, {.options = {{"freeze", int64_t(1)}}});
  EXPECT_LT(distance(frozen(x), matmul(x, w) + 1), 1e-5);
  w.mul_(2);
  EXPECT_LT(distance(frozen(x), matmul(x, w) + 1), 1e-5);
}

TEST(Freeze, AWeightIsPackedOnceForAllWhoReadIt) {
  Tensor w = randn({16, 32});
  auto first = pack_weight(w), second = pack_weight(w);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, pack_weight(w.t().contiguous().t()));
  w.add_(1);
  EXPECT_FALSE(first->is_current());
  EXPECT_NE(first, pack_weight(w));
}

}  // namespace
}  // namespace sinter
