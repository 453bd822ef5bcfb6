// Tensors without elements and tensors without dimensions, through every family.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(Empty, Pointwise) {
  Tensor e = zeros({0, 3});
  for (Tensor t : {e + 1, e * e, exp(e), e + ones({3}), e.to(kInt64), gelu(e), where(e > 0, e, 1), e.clone()})
    EXPECT_EQ(t.sizes(), Shape({0, 3}));
  EXPECT_EQ((ones({1, 3}) + e).sizes(), Shape({0, 3}));
  EXPECT_EQ(e.add_(1).sizes(), Shape({0, 3}));
  EXPECT_EQ(e.copy_(ones({3})).numel(), 0);
  EXPECT_ERROR(e + ones({2, 3}), "add", "[0, 3]", "[2, 3]");
}

TEST(Empty, Reductions) {
  Tensor e = zeros({0, 3}), w = zeros({3, 0});
  EXPECT_TRUE(has_values(e.sum(), {0}));
  EXPECT_TRUE(has_values(e.sum(0), {0, 0, 0}));
  EXPECT_EQ(e.sum(1).sizes(), Shape({0}));
  EXPECT_TRUE(has_values(e.prod(), {1}));
  EXPECT_TRUE(has_values(e.mean(), {kNan}));
  EXPECT_TRUE(has_values(e.all(), {1}));
  EXPECT_TRUE(has_values(e.any(), {0}));
  EXPECT_EQ(e.amax(1).sizes(), Shape({0}));
  EXPECT_EQ(e.argmax(1).sizes(), Shape({0}));
  EXPECT_EQ(e.softmax(0).sizes(), Shape({0, 3}));
  EXPECT_EQ(w.softmax(1).sizes(), Shape({3, 0}));
  EXPECT_EQ(e.cumsum(0).sizes(), Shape({0, 3}));
  EXPECT_EQ(std::get<0>(e.sort(0)).sizes(), Shape({0, 3}));
  EXPECT_EQ(nonzero(e).sizes(), Shape({0, 2}));
  EXPECT_TRUE(has_values(w.logsumexp(1), {-kInf, -kInf, -kInf}));
  EXPECT_ERROR(e.amax(0), "amax", "[0, 3]");
  EXPECT_ERROR(e.max(), "max", "[0, 3]");
  EXPECT_ERROR(e.max(0), "max", "[0, 3]");
  EXPECT_ERROR(e.argmax(), "argmax", "[0, 3]");
  EXPECT_ERROR(e.amin(), "amin", "[0, 3]");
  EXPECT_TRUE(has_values(tensor({1.0}).var(), {kNan}));
}

TEST(Empty, Products) {
  EXPECT_EQ(matmul(zeros({0, 3}), ones({3, 4})).sizes(), Shape({0, 4}));
  EXPECT_TRUE(has_values(matmul(zeros({2, 0}), zeros({0, 2})), {0, 0, 0, 0}));
  EXPECT_TRUE(has_values(bmm(zeros({1, 2, 0}), zeros({1, 0, 1})), {0, 0}));
  EXPECT_EQ(bmm(zeros({0, 2, 3}), zeros({0, 3, 4})).sizes(), Shape({0, 2, 4}));
  EXPECT_TRUE(has_values(linear(zeros({1, 0}), zeros({2, 0}), ones({2})), {1, 1}));
  EXPECT_TRUE(has_values(dot(zeros({0}), zeros({0})), {0}));
  EXPECT_TRUE(has_values(einsum("ij,jk->ik", {zeros({1, 0}), zeros({0, 1})}), {0}));
  EXPECT_TRUE(has_values(matmul(zeros({2, 0}, kInt64), zeros({0, 1}, kInt64)), {0, 0}));
  EXPECT_EQ(conv2d(zeros({0, 3, 5, 5}), ones({4, 3, 3, 3})).sizes(), Shape({0, 4, 3, 3}));
  EXPECT_EQ(max_pool2d(zeros({0, 3, 4, 4}), 2).sizes(), Shape({0, 3, 2, 2}));
  EXPECT_EQ(avg_pool2d(zeros({0, 3, 4, 4}), 2).sizes(), Shape({0, 3, 2, 2}));
  Tensor q = zeros({1, 2, 0, 8}), k = ones({1, 2, 3, 8});
  EXPECT_EQ(scaled_dot_product_attention(q, k, k).sizes(), Shape({1, 2, 0, 8}));
}

TEST(Empty, Layouts) {
  Tensor e = zeros({0, 3}), x = ones({2, 3});
  EXPECT_EQ(cat({e, x}).sizes(), Shape({2, 3}));
  EXPECT_EQ(cat({zeros({0}), x}, 1).sizes(), Shape({2, 3}));
  EXPECT_EQ(stack({e, e}).sizes(), Shape({2, 0, 3}));
  EXPECT_EQ(e.view({3, 0}).sizes(), Shape({3, 0}));
  EXPECT_EQ(e.t().contiguous().sizes(), Shape({3, 0}));
  EXPECT_EQ(e.repeat({2, 2}).sizes(), Shape({0, 6}));
  EXPECT_EQ(x.repeat({0, 1}).sizes(), Shape({0, 3}));
  EXPECT_EQ(e.flip(0).sizes(), Shape({0, 3}));
  EXPECT_EQ(roll(e, 1, 0).sizes(), Shape({0, 3}));
  EXPECT_EQ(pad(e, {1, 1}).sizes(), Shape({0, 5}));
  EXPECT_TRUE(has_values(pad(zeros({0}), {1, 1}, "constant", 7), {7, 7}));
  EXPECT_EQ(tril(e).sizes(), Shape({0, 3}));
  EXPECT_EQ(arange(0).sizes(), Shape({0}));
  EXPECT_EQ(e.split(1).size(), 1u);
  EXPECT_EQ(e.unbind().size(), 0u);
}

TEST(Empty, Indexing) {
  Tensor e = zeros({0, 3}), x = ones({2, 3}), none = zeros({0}, kInt64);
  EXPECT_EQ(index_select(x, 0, none).sizes(), Shape({0, 3}));
  EXPECT_EQ(embedding(x, none).sizes(), Shape({0, 3}));
  EXPECT_EQ(x.index({none}).sizes(), Shape({0, 3}));
  EXPECT_EQ(x.index({x > 5}).sizes(), Shape({0}));
  EXPECT_EQ(gather(x, 0, zeros({0, 3}, kInt64)).sizes(), Shape({0, 3}));
  EXPECT_TRUE(equal(scatter(x, 0, zeros({0, 3}, kInt64), e), x));
  EXPECT_TRUE(equal(index_add(x, 0, none, e), x));
  EXPECT_TRUE(equal(x.index_put_({none}, 7), x));
  EXPECT_ERROR(embedding(e, tensor({0})), "embedding", "0");
  EXPECT_ERROR(index_select(e, 0, tensor({0})), "index_select", "0");
  EXPECT_ERROR(scatter_add(e, 0, zeros({1, 3}, kInt64), ones({1, 3})), "scatter_add", "[0, 3]");
  EXPECT_ERROR(index_add(e, 0, tensor({0}), ones({1, 3})), "index_add", "[0, 3]");
  EXPECT_ERROR(index_put(e, {tensor({0})}, 1), "index_put", "[0, 3]");
  EXPECT_ERROR(e[0], "select", "[0, 3]");
  EXPECT_EQ(masked_select(e, e > 0).sizes(), Shape({0}));
}

TEST(Empty, Normalisations) {
  EXPECT_EQ(layer_norm(zeros({0, 4}), {4}).sizes(), Shape({0, 4}));
  EXPECT_EQ(rms_norm(zeros({0, 4}), {4}).sizes(), Shape({0, 4}));
  EXPECT_EQ(group_norm(zeros({0, 4, 2}), 2).sizes(), Shape({0, 4, 2}));
  EXPECT_EQ(batch_norm(zeros({0, 4}), zeros({4}), ones({4})).sizes(), Shape({0, 4}));
  EXPECT_TRUE(has_values(mse_loss(zeros({0}), zeros({0})), {kNan}));
  EXPECT_TRUE(has_values(mse_loss(zeros({0}), zeros({0}), Reduction::kSum), {0}));
  EXPECT_TRUE(has_values(cross_entropy(zeros({0, 3}), zeros({0}, kInt64)), {kNan}));
  EXPECT_EQ(dropout(zeros({0, 2})).sizes(), Shape({0, 2}));
  EXPECT_EQ(randn({0, 2}).sizes(), Shape({0, 2}));
  EXPECT_EQ(randperm(0).sizes(), Shape({0}));
}

TEST(Empty, Gradients) {
  Tensor x = zeros({0, 3}).requires_grad_();
  (x * 2).sum().backward();
  EXPECT_EQ(x.grad().sizes(), Shape({0, 3}));
  Tensor w = ones({3, 4}).requires_grad_();
  matmul(zeros({0, 3}), w).sum().backward();
  EXPECT_TRUE(has_values(w.grad(), std::vector<double>(12, 0)));
}

TEST(ZeroDim, EveryFamily) {
  Tensor s = tensor(4.0);
  EXPECT_EQ((s + s).dim(), 0);
  EXPECT_TRUE(has_values(s * tensor({1.0, 2.0}), {4, 8}));
  for (Tensor t : {s.sum(), s.sum(0), s.sum(-1), s.mean(), s.max(), s.amax(0), s.prod(), s.cumsum(0), s.t(), s.flip({}),
                   std::get<0>(s.sort()), std::get<0>(s.max(0)), s.clone(), s.contiguous(), s.squeeze(), s.view(Shape())})
    EXPECT_TRUE(has_values(t, {4})) << to_string(t);
  EXPECT_EQ(s.sum(0).dim(), 0);
  EXPECT_EQ(s.argmax().item<int64_t>(), 0);
  EXPECT_EQ(s.softmax(0).item<float>(), 1);
  EXPECT_EQ(s.view({1, 1}).sizes(), Shape({1, 1}));
  EXPECT_EQ(s.expand({2, 3}).sizes(), Shape({2, 3}));
  EXPECT_EQ(s.unsqueeze(0).sizes(), Shape({1}));
  EXPECT_EQ(s.flatten().sizes(), Shape({1}));
  EXPECT_EQ(stack({s, s}).sizes(), Shape({2}));
  EXPECT_EQ(nonzero(s).sizes(), Shape({1, 0}));
  EXPECT_EQ(embedding(ones({3, 2}), tensor(1)).sizes(), Shape({2}));
  EXPECT_EQ(ones({3}).index({tensor(1)}).dim(), 0);
  EXPECT_TRUE(has_values(s.index({Ellipsis}), {4}));
  EXPECT_EQ(s.index({None}).sizes(), Shape({1}));
  s.add_(1);
  EXPECT_EQ(s.item<float>(), 5);
  EXPECT_ERROR(s.sum(1), "sum", "1");
  EXPECT_ERROR(s[0], "select", "0-d");
  EXPECT_ERROR(s.size(0), "size", "0 dimensions");
  EXPECT_ERROR(s.unbind(), "unbind");
  EXPECT_ERROR(s.split(1), "split");
}

}  // namespace
}  // namespace sinter
