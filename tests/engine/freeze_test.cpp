// Frozen weights: the same results from rearranged weights, and no stale ones after a broken promise.
#include <gtest/gtest.h>

#include <optional>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/executable/rearranged.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/lone_product.h"

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

// A product of so many rows with the weight, as far as its weight goes.
struct Product {
  Product(int64_t rows, const Tensor& weight) : inputs{TensorArg(empty({rows, weight.size(0)})), TensorArg(weight)} {
    Tensor out = empty({rows, weight.size(1)});
    const TensorImpl *from[] = {&inputs[0].tensor().impl(), &weight.impl()}, *to = &out.impl();
    step = make_step(testing::lone_product(inputs[0].tensor(), weight), from, {&to, 1}, Device());
    for (auto& t : inputs) arguments.add_address(int64_t(reinterpret_cast<uintptr_t>(t.tensor().data_ptr())));
    made.emplace(step, Device());
    refresh();
  }
  void refresh() { made->refresh(inputs, [&] { return arguments; }, nullptr); }

  std::vector<TensorArg> inputs;
  StepArguments arguments;
  std::shared_ptr<const CompiledStep> step;
  std::optional<Rearranged> made;
};

TEST(Freeze, AWeightIsPackedOnceForAllWhoReadIt) {
  Tensor w = randn({16, 32});
  EXPECT_EQ(Product(4, w).step->rearranged_bytes(), 0);  // few rows read it as it lies
  Product first(20, w), second(40, w), other(20, w.t().contiguous().t());
  EXPECT_NE(first.made->address(), 0);
  EXPECT_EQ(first.made->address(), second.made->address());
  EXPECT_NE(first.made->address(), other.made->address());
  w.add_(1);
  first.refresh();
  EXPECT_NE(first.made->address(), second.made->address());
  second.refresh();
  EXPECT_EQ(first.made->address(), second.made->address());
}

}  // namespace
}  // namespace sinter
