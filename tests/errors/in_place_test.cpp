// Writes in place: what is refused leaves the tensor as it was; what overlaps gives the result of reading first.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(InPlace, ExpandedTensorsAreRefused) {
  Tensor row = ones({3}), x = row.expand({2, 3});
  EXPECT_ERROR(x.add_(1), "add_", "expanded", "clone()");
  EXPECT_ERROR(x.fill_(1), "expanded", "clone()");
  EXPECT_ERROR(x.zero_(), "expanded", "clone()");
  EXPECT_ERROR(x.copy_(ones({2, 3})), "expanded", "clone()");
  EXPECT_ERROR(x.index_put_({tensor({0})}, 5), "expanded", "clone()");
  EXPECT_ERROR(x += 1, "expanded", "clone()");
  EXPECT_TRUE(has_values(row, {1, 1, 1}));
}

// Exactly those: elements that interleave without meeting may be written.
TEST(InPlace, TensorsThatOverlapThemselvesAreRefused) {
  Tensor row = ones({8}), x = unfold(row, 0, 3, 2);
  EXPECT_ERROR(x.add_(1), "add_", "share one place in memory", "clone()");
  EXPECT_ERROR(x.zero_(), "share one place in memory", "clone()");
  EXPECT_ERROR(x.index_put_({tensor({0})}, 5), "share one place in memory", "clone()");
  EXPECT_ERROR(x.scatter_(0, tensor({{0}}), ones({1, 1})), "share one place in memory", "clone()");
  EXPECT_ERROR(x.uniform_(), "share one place in memory", "clone()");
  EXPECT_ERROR(as_strided(ones({9}), {3, 2}, {2, 4}).zero_(), "share one place in memory");
  EXPECT_TRUE(has_values(row, {1, 1, 1, 1, 1, 1, 1, 1}));
  unfold(row, 0, 2, 3).zero_();
  as_strided(row, {2, 2}, {3, 2}, 2).fill_(5);
  EXPECT_TRUE(has_values(row, {0, 0, 5, 0, 5, 5, 0, 5}));
}

TEST(InPlace, ShapesDoNotGrow) {
  Tensor x = ones({3}), big = ones({2, 3});
  EXPECT_ERROR(x.add_(big), "add_", "[2, 3]", "[3]");
  EXPECT_ERROR(x.mul_(ones({4})), "mul", "[4]", "[3]");
  EXPECT_ERROR(x.copy_(big), "copy_", "[2, 3]", "[3]");
  EXPECT_ERROR(ones({1}).add_(x), "add_", "[3]", "[1]");
  EXPECT_ERROR(ones({}).add_(x), "add_", "[3]", "[]");
  EXPECT_ERROR(x.masked_fill_(big > 0, 0), "masked_fill", "[2, 3]", "[3]");
  EXPECT_ERROR(x.lerp_(big, 0.5), "lerp_", "[2, 3]", "[3]");
  EXPECT_ERROR(x.fill_(ones({2})), "fill_", "[2]");
  EXPECT_ERROR(x.clamp_({}, {}), "clamp");
  EXPECT_TRUE(has_values(x, {1, 1, 1}));
}

TEST(InPlace, Overlaps) {
  Tensor x = arange(5);
  x.slice(0, 1) = x.slice(0, 0, 4);  // x[1:] = x[:-1]
  EXPECT_TRUE(has_values(x, {0, 0, 1, 2, 3}));
  x = arange(5);
  x.slice(0, 0, 4).copy_(x.slice(0, 1));
  EXPECT_TRUE(has_values(x, {1, 2, 3, 4, 4}));
  x = arange(5);
  x.slice(0, 1) += x.slice(0, 0, 4);
  EXPECT_TRUE(has_values(x, {0, 1, 3, 5, 7}));
  x = arange(100000);
  x.slice(0, 1).copy_(x.slice(0, 0, 99999));
  EXPECT_TRUE(equal(x.slice(0, 1), arange(99999)));
}

TEST(InPlace, ATensorAndItsTranspose) {
  auto square = [] { return arange(9).view({3, 3}); };
  Tensor x = square();
  x.copy_(x.t());
  EXPECT_TRUE(equal(x, square().t()));
  x = square();
  x.add_(x.t());
  EXPECT_TRUE(has_values(x, {0, 4, 8, 4, 8, 12, 8, 12, 16}));
  x = square();
  x.mul_(x);
  EXPECT_TRUE(has_values(x, {0, 1, 4, 9, 16, 25, 36, 49, 64}));
  x = square();
  x.add_(x[0]);  // a row of itself, broadcast
  EXPECT_TRUE(has_values(x, {0, 2, 4, 3, 5, 7, 6, 8, 10}));
  x = square();
  x[0].copy_(x.select(1, 1));
  EXPECT_TRUE(has_values(x, {1, 4, 7, 3, 4, 5, 6, 7, 8}));
  Tensor big = arange(300 * 300).view({300, 300}), expected = big.t().clone();
  big.copy_(big.t());
  EXPECT_TRUE(equal(big, expected));
}

TEST(InPlace, IndicesFromTheTensorWritten) {
  Tensor x = tensor({2, 0, 1, 1});
  x.index_put_({x.slice(0, 0, 3)}, x.slice(0, 1));
  EXPECT_TRUE(has_values(x, {1, 1, 0, 1}));
  Tensor y = tensor({1, 0, 2});
  y.scatter_(0, y, y);
  EXPECT_TRUE(has_values(y, {0, 1, 2}));
  Tensor z = tensor({3, 1, 2});
  z.masked_fill_(z > 1, z.max());
  EXPECT_TRUE(has_values(z, {3, 1, 3}));
}

TEST(InPlace, AssigningToAViewWrites) {
  Tensor x = zeros({2, 3});
  x[0] = 5;
  x.index({1, Slice(1, None)}) = tensor({1.0, 2.0});
  EXPECT_TRUE(has_values(x, {5, 5, 5, 0, 1, 2}));
  Tensor row = x[0];
  row = ones({3});  // a name is bound anew, as ever
  EXPECT_TRUE(has_values(x, {5, 5, 5, 0, 1, 2}));
  EXPECT_ERROR(x[0] = ones({2}), "copy_", "[2]", "[3]");
}

TEST(Autograd, LeavesAreNotWritten) {
  Tensor w = ones({2}).requires_grad_();
  EXPECT_ERROR(w.add_(1), "add", "leaf", "NoGradGuard");
  EXPECT_ERROR(w += 1, "add", "leaf");
  EXPECT_ERROR(w[0].fill_(1), "leaf");
  EXPECT_ERROR(w.zero_(), "leaf");
  EXPECT_TRUE(has_values(w, {1, 1}));
  {
    NoGradGuard no_grad;
    w.add_(1);
  }
  EXPECT_TRUE(has_values(w, {2, 2}));
}

TEST(Autograd, Backward) {
  Tensor w = tensor({1.0, 2.0}).requires_grad_(), y = w * w;
  EXPECT_ERROR(y.backward(), "backward", "[2]");
  EXPECT_ERROR(y.backward(ones({3})), "backward", "[3]", "[2]");
  Tensor loss = y.sum();
  loss.backward();
  EXPECT_ERROR(loss.backward(), "backward", "retain_graph");
  EXPECT_TRUE(has_values(w.grad(), {2, 4}));
  EXPECT_ERROR(ones({}).backward(), "backward", "require");
  EXPECT_ERROR(tensor(3).backward(), "backward");
  Tensor used = tensor({1.0}).requires_grad_(), changed = used * 2, square = changed * changed;
  changed.add_(1);
  EXPECT_ERROR(square.sum().backward(), "changed", "in place");
  EXPECT_ERROR(autograd::grad({used.sum()}, {w}), "grad");
  EXPECT_ERROR(w.set_grad(ones({3})), "set_grad", "[3]", "[2]");
  EXPECT_ERROR(y.requires_grad_(false), "requires_grad_", "detach()");
}

TEST(Items, OneElementOnly) {
  EXPECT_ERROR(ones({2}).item(), "item", "[2]");
  EXPECT_ERROR(ones({2, 3}).item<float>(), "item", "[2, 3]", "6");
  EXPECT_ERROR(zeros({0}).item(), "item", "[0]");
  EXPECT_EQ(ones({1, 1}).item<float>(), 1);
}

}  // namespace
}  // namespace sinter
