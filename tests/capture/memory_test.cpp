// Whose memory the results of a compiled function are.
#include <sinter/sinter.h>

#include <gtest/gtest.h>

namespace sinter {
namespace {

TEST(CaptureMemory, ContiguousCopiesAreNewInEachCall) {
  auto f = compile([](const Tensor& x) { return x.transpose(0, 1).contiguous(); });
  Tensor first = f(ones({2, 3})), second = f(zeros({2, 3}));
  EXPECT_TRUE(first.is_contiguous());
  EXPECT_FALSE(first.is_alias_of(second));
  EXPECT_EQ(first.sum().item<float>(), 6);
}

TEST(CaptureMemory, CopiesLieAsEagerOnes) {
  Tensor x = randn({2, 3, 4, 5}).requires_grad_();
  auto last = compile([](const Tensor& t) { return t.contiguous(MemoryFormat::kChannelsLast); });
  Tensor y = last(x);
  EXPECT_EQ(y.strides(), x.contiguous(MemoryFormat::kChannelsLast).strides());
  EXPECT_TRUE(equal(y, x));
  y.square().sum().backward();
  EXPECT_TRUE(equal(x.grad(), x * 2));
  auto kept = compile([](const Tensor& t) { return t.transpose(1, 2).clone(); });
  EXPECT_EQ(kept(x).strides(), x.transpose(1, 2).clone().strides());
}

TEST(CaptureMemory, CopiesKeepSizesSymbolic) {
  auto f = compile([](const Tensor& x) { return x.transpose(0, 1).reshape({-1}); }, {.dynamic = Dynamic::kTrue});
  for (int64_t n : {3, 4, 5})
    EXPECT_TRUE(equal(f(arange(2 * n).reshape({2, n})), arange(2 * n).reshape({2, n}).transpose(0, 1).reshape({-1})));
  EXPECT_EQ(f.function().entries().size(), 1u);
}

TEST(CaptureMemory, GradientsAddUpOverCalls) {
  Tensor w = ones({3}).requires_grad_();
  auto step = compile([w](const Tensor& x) { (x * w).sum().backward(); });
  for (int calls = 1; calls <= 4; ++calls) {
    step(full({3}, 2.0));
    ASSERT_FALSE(w.grad().is_traced());
    EXPECT_TRUE(equal(w.grad(), full({3}, 2.0 * calls))) << w.grad();
  }
}

}  // namespace
}  // namespace sinter
