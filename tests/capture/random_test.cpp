// Random numbers: the same seed gives the same ones, eager or compiled.
#include "common.h"

namespace sinter {
namespace {

template <class F, class... A>
void expect_same_numbers(F f, const A&... args) {
  auto compiled = compile(f);
  TensorList eager, fast;
  manual_seed(11);
  for (int i = 0; i < 4; ++i) eager.push_back(f(args...));
  manual_seed(11);
  for (int i = 0; i < 4; ++i) fast.push_back(compiled(args...));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same(fast[size_t(i)], eager[size_t(i)])) << "call " << i;
  EXPECT_FALSE(same(fast[0], fast[1]));
  // What follows a call finds the stream where eager leaves it.
  manual_seed(12);
  f(args...);
  Tensor want = rand({3});
  manual_seed(12);
  compiled(args...);
  EXPECT_TRUE(same(rand({3}), want));
  EXPECT_EQ(programs_of(compiled), 1);
}

TEST(Random, Distributions) {
  expect_same_numbers([](const Tensor& x) { return x + rand({32}); }, ones({32}));
  expect_same_numbers([](const Tensor& x) { return x + randn({32}); }, ones({32}));
  expect_same_numbers([](const Tensor& x) { return x + randint(1000, {32}); }, ones({32}));
  expect_same_numbers([](const Tensor& x) { return bernoulli(x * 0.5); }, ones({64}));
  expect_same_numbers([](const Tensor& x) { return rand_like(x) + randn_like(x); }, ones({32}));
}

TEST(Random, TwoDraws) {
  expect_same_numbers([](const Tensor& x) { return x + rand({32}) - rand({32}) * 2; }, ones({32}));
}

TEST(Random, UnusedDrawStillMovesTheStream) {
  expect_same_numbers(
      [](const Tensor& x) {
        rand({16});
        return x + rand({32});
      },
      ones({32}));
}

TEST(Random, Dropout) {
  expect_same_numbers([](const Tensor& x) { return dropout(x, 0.3); }, ones({64}));
  nn::Dropout layer(0.5);
  expect_same_numbers([layer](const Tensor& x) { return layer(x) + layer(x); }, ones({64}));
}

TEST(Random, DropoutInsideAttention) {
  expect_same_numbers([](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, 0.5, true) + 1; },
                      randn({2, 3, 19, 8}));
}
TEST(Random, PermutationAndMultinomial) {
  expect_same_numbers([](const Tensor& x) { return x.index_select(0, randperm(32)); }, wave({32}));
  expect_same_numbers([](const Tensor& x) { return multinomial(x, 8, true); }, ones({32}));
  expect_same_numbers([](const Tensor& x) { return multinomial(x, 8); }, ones({32}));
}

TEST(Random, InPlace) {
  expect_same_numbers(
      [](const Tensor& x) {
        Tensor y = x * 0;
        y.uniform_(-1, 1);
        Tensor z = x * 0;
        z.normal_(1, 2);
        return y + z;
      },
      ones({32}));
}

TEST(Random, AcrossABreak) {
  expect_same_numbers(
      [](const Tensor& x) {
        Tensor y = x + rand({8});
        if (y.sum().item() > 0.0) return y + rand({8});
        return y;
      },
      ones({8}));
}

TEST(Random, GradientsUseTheMaskOfTheForward) {
  auto f = compile([](const Tensor& x) { return dropout(x, 0.5) * 3; });
  Tensor x = ones({64}).requires_grad_();
  for (int i = 0; i < 3; ++i) {
    x.set_grad({});
    Tensor y = f(x);
    y.sum().backward();
    EXPECT_TRUE(close(x.grad(), y));
  }
}

}  // namespace
}  // namespace sinter
