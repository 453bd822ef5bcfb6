// Methods made from the functions of their name, and their in-place forms.
#include "sinter/capture/compiler.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

Tensor counted() { return arange(6, kFloat32).view({2, 3}); }

TEST(Methods, AreTheFunctions) {
  Tensor x = tensor({-1.5, 0.0, 2.25});
  EXPECT_TRUE(has_values(x.absolute(), {1.5, 0, 2.25}));
  EXPECT_TRUE(has_values(x.hypot(2.0), {2.5, 2, double(float(std::hypot(2.25, 2.0)))}));
  EXPECT_TRUE(has_values(x.leaky_relu(0.5), {-0.75, 0, 2.25}));
  EXPECT_TRUE(has_values(x.addcmul(x, x, 2), {3, 0, 12.375}));
  EXPECT_TRUE(has_values(x.div(2, "floor"), {-1, 0, 1}));
  EXPECT_TRUE(has_values(counted().repeat_interleave(2, 1).select(0, 0), {0, 0, 1, 1, 2, 2}));
  EXPECT_TRUE(has_values(counted().unfold(1, 2, 1), {0, 1, 1, 2, 3, 4, 4, 5}));
  EXPECT_TRUE(has_values(std::get<0>(counted().kthvalue(2, 1)), {1, 4}));
}

TEST(Methods, InPlaceOnesKeepDtypeAndMemory) {
  Tensor x = tensor({-1.5, 0.0, 2.25}), same = x;
  EXPECT_TRUE(x.abs_().is_same(same));
  EXPECT_TRUE(has_values(same, {1.5, 0, 2.25}));
  x.floor_().add_(1, 2).clamp_(1, 3);
  EXPECT_TRUE(has_values(same, {3, 2, 3}));
  x.gt_(2);  // bool, stored as f32
  EXPECT_EQ(x.dtype(), kFloat32);
  EXPECT_TRUE(has_values(same, {1, 0, 1}));
  Tensor n = tensor({1, 2, 3, 4}, kInt32);
  n.cumsum_(0);
  EXPECT_EQ(n.dtype(), kInt32);
  EXPECT_TRUE(has_values(n, {1, 3, 6, 10}));
  n.div_(4, "floor").bitwise_xor_(1);
  EXPECT_TRUE(has_values(n, {1, 1, 0, 3}));
  n ^= 2;
  EXPECT_TRUE(has_values(n, {3, 3, 2, 1}));
  Tensor square = counted().new_ones({2, 2}).tril_();
  EXPECT_TRUE(has_values(square, {1, 0, 1, 1}));
  EXPECT_TRUE(has_values(square.addmm_(square, square, 0, 2), {2, 0, 4, 2}));
  Tensor view = counted().select(1, 1).sub_(1, 2);
  EXPECT_TRUE(has_values(view, {-1, 2}));
  EXPECT_ERROR_TEXT(n.sqrt_(), "sqrt_", "i32");
  EXPECT_ERROR_TEXT(x.add_(ones({2, 3})), "add_", "[2, 3]");
  EXPECT_ERROR_TEXT(tensor({1.0}).mul_(ones({2})), "mul_", "[2]");
  EXPECT_ERROR_TEXT(Tensor().exp_(), "undefined");
}

TEST(Methods, InPlaceOnesHaveGradients) {
  Tensor x = tensor({1.0, 2.0}, requires_grad());
  Tensor y = x * 2;
  y.add_(x).exp_();
  y.sum().backward();
  EXPECT_TRUE(allclose(x.grad(), tensor({60.25661, 1210.2864})));
  Tensor z = tensor({1.0, 2.0}, requires_grad());
  (z * 3).negative_().sum().backward();  // by way of a copy: no op has this name
  EXPECT_TRUE(has_values(z.grad(), {-3, -3}));
  EXPECT_ERROR_TEXT(z.cumsum_(0), "leaf");
  EXPECT_ERROR_TEXT(z.exp_(), "exp", "leaf");
}

TEST(Methods, InPlaceOnesAreCaptured) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x.clone();
    y.exp_().div_(2, "floor");
    y.index_fill_(0, tensor({0}), 7);
    return y;
  });
  Tensor x = tensor({0.0, 2.0});
  EXPECT_TRUE(has_values(f(x), {7, 3}));
  EXPECT_TRUE(has_values(f(x), {7, 3}));
}

}  // namespace
}  // namespace sinter
