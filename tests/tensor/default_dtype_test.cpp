// set_default_dtype: what makes f32 where nothing is said makes the default type, and compiled functions tell the types apart.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "sinter/capture/compile.h"
#include "sinter/nn/linear.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// Sets a type and puts f32 back.
struct DefaultIs {
  explicit DefaultIs(DType dtype) { set_default_dtype(dtype); }
  ~DefaultIs() { set_default_dtype(kFloat32); }
};

TEST(DefaultDType, IsThatOfNewTensorsAndLiterals) {
  EXPECT_EQ(get_default_dtype(), kFloat32);
  DefaultIs wide(kFloat64);
  for (auto& t :
       {zeros({2}), ones({2}), rand({2}), randn({2}), empty({2}), eye(2), linspace(0, 1, 3), arange(0.0, 1.0, 0.5),
        full({2}, 1.5), tensor(1.5), tensor({1.5f, 2.5f}), tensor({{1.5}, {2.5}}), scalar_tensor(0.5)})
    EXPECT_EQ(t.dtype(), kFloat64) << t;
  EXPECT_EQ(arange(3).dtype(), kInt64);
  EXPECT_EQ(tensor({1, 2}).dtype(), kInt64);
  EXPECT_EQ(zeros({2}, kFloat32).dtype(), kFloat32);
  EXPECT_EQ(zeros_like(zeros({2}, kFloat16)).dtype(), kFloat16);
  EXPECT_EQ(zeros({2}, TensorOptions().requires_grad(true)).dtype(), kFloat64);
  EXPECT_EQ(nn::Linear(2, 3)->weight.dtype(), kFloat64);
  EXPECT_EQ(tensor(0.1).item<double>(), 0.1);
  EXPECT_EQ(to_string(tensor({0.5})), "tensor([0.5000])");
}

TEST(DefaultDType, IsThatOfIntegersAmongRealNumbers) {
  Tensor i = arange(1, 4), single = ones({3}, kFloat32), b = i > 1;
  for (DType dtype : {kFloat64, kBFloat16, kFloat16}) {
    DefaultIs standard(dtype);
    for (auto& t :
         {sqrt(i), sin(b), i / 2, i / i, i * 0.5, 0.5 + b, where(b, i, 0.5), lgamma(i), mean(i * 1.0), i + tensor(0.5)})
      EXPECT_EQ(t.dtype(), dtype) << t;
    // Tensors that are floating keep their type.
    for (auto& t : {single * 0.5, single + i, single * tensor(0.5, kFloat64), sqrt(single)})
      EXPECT_EQ(t.dtype(), kFloat32) << t;
    EXPECT_EQ((i * 2).dtype(), kInt64);
  }
  DefaultIs wide(kFloat64);
  EXPECT_EQ(sqrt(i)[1].item<double>(), std::sqrt(2.0));
  EXPECT_TRUE(((i / 10)[0] == 0.1).item<bool>());
  EXPECT_TRUE((tensor({16777217}) > 16777216.5).item<bool>());
}

TEST(DefaultDType, IsOneForAllThreads) {
  DefaultIs wide(kFloat64);
  DType seen = kBool;
  std::thread([&] { seen = zeros({1}).dtype(); }).join();
  EXPECT_EQ(seen, kFloat64);
}

TEST(DefaultDType, GuardsCompiledFunctions) {
  auto f = compile([](const Tensor& i) { return sqrt(i) * 0.5 + zeros({3}); }, {.fullgraph = true});
  Tensor i = arange(1, 4);
  EXPECT_EQ(f(i).dtype(), kFloat32);
  {
    DefaultIs wide(kFloat64);
    Tensor got = f(i);
    EXPECT_EQ(got.dtype(), kFloat64);
    EXPECT_TRUE(allclose(got, sqrt(i) * 0.5, 1e-15, 1e-15));
  }
  EXPECT_EQ(f(i).dtype(), kFloat32);
}

// A program that sets it does so in every call.
TEST(DefaultDType, MayBeSetInACompiledFunction) {
  auto f = compile([](const Tensor& x) {
    DType before = get_default_dtype();
    set_default_dtype(kFloat64);
    Tensor y = x.sum() + zeros({2});
    set_default_dtype(before);
    return y;
  });
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(f(ones({2})).dtype(), kFloat64);
    EXPECT_EQ(get_default_dtype(), kFloat32);
  }
}

TEST(DefaultDType, MustBeFloating) {
  EXPECT_NE(message_of([] { set_default_dtype(kInt64); }).find("i64 is no floating dtype"), std::string::npos);
  EXPECT_EQ(get_default_dtype(), kFloat32);
}

}  // namespace
}  // namespace sinter
