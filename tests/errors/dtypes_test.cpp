// Wrong dtypes and devices.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(DTypes, IntegerOpsRefuseFloats) {
  Tensor x = ones({2}), n = tensor({1, 2});
  EXPECT_ERROR(x & x, "bitwise_and", "f32");
  EXPECT_ERROR(bitwise_or(x, n), "bitwise_or", "f32");
  EXPECT_ERROR(x ^ 1, "bitwise_xor", "f32");
  EXPECT_ERROR(~x, "bitwise_not", "f32");
  EXPECT_ERROR(bitwise_left_shift(x, 1), "bitwise_left_shift", "f32");
  EXPECT_ERROR(bitwise_and(n, 1.5), "bitwise_and");
  EXPECT_ERROR(bincount(x), "bincount", "f32");
  EXPECT_ERROR(one_hot(x), "one_hot", "f32");
}

TEST(DTypes, FloatOpsRefuseIntegers) {
  Tensor n = tensor({1, 2}), mask = tensor({true, false});
  EXPECT_ERROR(n.mean(), "mean", "i64");
  EXPECT_ERROR(mask.mean(), "mean", "bool");
  EXPECT_ERROR(n.var(), "var", "i64");
  EXPECT_ERROR(n.std(), "std", "i64");
  EXPECT_ERROR(norm(n), "norm", "i64");
  EXPECT_ERROR(n.softmax(0), "softmax", "i64");
  EXPECT_ERROR(layer_norm(n, {2}), "layer_norm", "i64");
  EXPECT_ERROR(rms_norm(n, {2}), "rms_norm", "i64");
  EXPECT_ERROR(cross_entropy(tensor({{1, 2}}), tensor({0})), "cross_entropy", "i64");
  EXPECT_ERROR(rand({2}, kInt64), "rand", "i64");
  EXPECT_ERROR(randn({2}, kInt64), "randn", "i64");
  EXPECT_ERROR(-mask, "neg", "bool");
  EXPECT_ERROR(mask - mask, "sub", "bool");
  EXPECT_ERROR(n.requires_grad_(), "requires_grad_", "i64");
  EXPECT_ERROR(zeros({2}, TensorOptions(kInt64).requires_grad(true)), "i64");
  EXPECT_ERROR(multinomial(tensor({1, 2}), 1), "multinomial", "i64");
}

TEST(DTypes, ProductsWantOneDType) {
  Tensor f = ones({2, 2}), d = ones({2, 2}, kFloat64), n = ones({2, 2}, kInt64), h = ones({2, 2}, kBFloat16);
  EXPECT_ERROR(matmul(f, d), "matmul", "f32", "f64");
  EXPECT_ERROR(matmul(f, n), "matmul", "f32", "i64");
  EXPECT_ERROR(mm(h, f), "mm", "bf16", "f32");
  EXPECT_ERROR(linear(f, d), "linear", "f32", "f64");
  EXPECT_ERROR(linear(f, f, ones({2}, kFloat64)), "linear", "f32", "f64");
  EXPECT_ERROR(bmm(ones({1, 2, 2}), ones({1, 2, 2}, kFloat64)), "bmm", "f32", "f64");
  EXPECT_ERROR(einsum("ij,jk->ik", {f, d}), "f32", "f64");
  EXPECT_ERROR(conv1d(ones({1, 1, 4}), ones({1, 1, 2}, kFloat64)), "conv1d", "f32", "f64");
  EXPECT_ERROR(scaled_dot_product_attention(f, f, d), "scaled_dot_product_attention", "f32", "f64");
}

TEST(DTypes, IndicesAreIntegers) {
  Tensor x = ones({3, 2}), at = ones({1}), square = ones({1, 1});
  EXPECT_ERROR(index_select(x, 0, at), "index_select", "f32");
  EXPECT_ERROR(gather(x, 0, square), "gather", "f32");
  EXPECT_ERROR(scatter(x, 0, square, square), "scatter", "f32");
  EXPECT_ERROR(scatter_add(x, 0, square, square), "scatter_add", "f32");
  EXPECT_ERROR(embedding(x, at), "embedding", "f32");
  EXPECT_ERROR(x.index({at}), "index", "f32");
  EXPECT_ERROR(x.index_put_({at}, 1), "index", "f32");
  EXPECT_ERROR(index_add(x, 0, at, x), "index_add", "f32");
  EXPECT_ERROR(take(x, at), "f32");
  EXPECT_ERROR(nll_loss(x, ones({3})), "nll_loss", "f32");
  EXPECT_ERROR(where(x, x, x), "where", "f32");
  EXPECT_ERROR(x.masked_fill(x, 0), "masked_fill", "f32");
  EXPECT_ERROR(masked_select(x, x), "masked_select", "f32");
  EXPECT_ERROR(x.masked_fill_(tensor({1, 0}), 0), "masked_fill", "i64");
  EXPECT_TRUE(has_values(x, {1, 1, 1, 1, 1, 1}));
}

TEST(DTypes, NoNarrowingInPlace) {
  Tensor n = tensor({1, 2}), mask = tensor({true, false}), f = ones({2});
  EXPECT_ERROR(n.add_(f), "add_", "f32", "i64");
  EXPECT_ERROR(n.add_(1.5), "add_", "i64");
  EXPECT_ERROR(n.mul_(f), "mul_", "f32", "i64");
  EXPECT_ERROR(n.div_(2), "div_", "f32", "i64");
  EXPECT_ERROR(n.sqrt_(), "sqrt_", "f32", "i64");
  EXPECT_ERROR(n += f, "add_", "f32", "i64");
  EXPECT_ERROR(mask.add_(n), "add_", "i64", "bool");
  EXPECT_ERROR(mask.mul_(2), "mul_", "bool");
  EXPECT_ERROR(n.uniform_(), "uniform_", "i64");
  EXPECT_ERROR(n.normal_(), "normal_", "i64");
  EXPECT_TRUE(has_values(n, {1, 2}));
  EXPECT_TRUE(has_values(mask, {1, 0}));
  // These convert, as in PyTorch.
  EXPECT_TRUE(has_values(n.copy_(tensor({1.7, -2.7})), {1, -2}));
  EXPECT_TRUE(has_values(tensor({1.5}, kFloat16).add_(tensor({1.0}, kFloat64)), {2.5}));
}

TEST(DTypes, DataPointers) {
  Tensor x = ones({2});
  EXPECT_ERROR(x.data_ptr<double>(), "data_ptr", "f64", "f32", ".to(");
  EXPECT_ERROR(x.data_ptr<int64_t>(), "data_ptr", "i64", "f32");
  EXPECT_ERROR(tensor({1, 2}).data_ptr<float>(), "data_ptr", "f32", "i64");
}

TEST(Devices, CudaIsDeclaredOnly) {
  Tensor x = ones({2});
  EXPECT_ERROR(zeros({2}, kCUDA), "cuda:0");
  EXPECT_ERROR(empty({2}, kCUDA), "empty", "cuda:0");
  EXPECT_ERROR(randn({2}, cuda(1)), "cuda:1");
  EXPECT_ERROR(arange(5, TensorOptions(kInt64).device(kCUDA)), "cuda:0");
  EXPECT_ERROR(eye(2, kCUDA), "cuda:0");
  EXPECT_ERROR(zeros_like(x, kCUDA), "cuda:0");
  EXPECT_ERROR(randperm(2, kCUDA), "cuda:0");
  EXPECT_ERROR(x.to(kCUDA), "to", "cuda:0");
  EXPECT_ERROR(x.to(cuda(), kFloat64), "to", "cuda:0");
  EXPECT_ERROR(x.cuda(), "to", "cuda:0");
  EXPECT_ERROR(x.to(x.options().device(kCUDA)), "to", "cuda:0");
  EXPECT_TRUE(x.to(kCPU).is_same(x));
  EXPECT_TRUE(has_values(ones({2}) + x, {2, 2}));  // usable afterwards
}

}  // namespace
}  // namespace sinter
