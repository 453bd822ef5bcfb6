// Undefined tensors: default-constructed and moved from, in functions, methods and lists.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(Undefined, Questions) {
  Tensor u;
  EXPECT_FALSE(u.defined());
  EXPECT_ERROR(u.dim(), "dim", "undefined");
  EXPECT_ERROR(u.size(0), "size", "undefined");
  EXPECT_ERROR(u.sizes(), "sizes", "undefined");
  EXPECT_ERROR(u.numel(), "numel", "undefined");
  EXPECT_ERROR(u.dtype(), "dtype", "undefined");
  EXPECT_ERROR(u.device(), "device", "undefined");
  EXPECT_ERROR(u.options(), "undefined");
  EXPECT_ERROR(u.strides(), "strides", "undefined");
  EXPECT_ERROR(u.stride(0), "stride", "undefined");
  EXPECT_ERROR(u.data_ptr(), "data_ptr", "undefined");
  EXPECT_ERROR(u.data_ptr<float>(), "data_ptr", "undefined");
  EXPECT_ERROR(u.item(), "item", "undefined");
  EXPECT_ERROR(u.item<float>(), "item", "undefined");
  EXPECT_ERROR(u.to_vector<float>(), "to_vector", "undefined");
  EXPECT_ERROR(u.backward(), "backward", "undefined");
  EXPECT_ERROR(u.requires_grad_(), "requires_grad_", "undefined");
  EXPECT_ERROR_TEXT(u.requires_grad(), "undefined");
  EXPECT_ERROR_TEXT(u.grad(), "undefined");
  EXPECT_ERROR_TEXT(u.detach(), "undefined");
  EXPECT_ERROR_TEXT(u.is_contiguous(), "undefined");
  EXPECT_NE(to_string(u).find("undefined"), std::string::npos);
}

TEST(Undefined, Methods) {
  Tensor u, x = ones({2, 2});
  EXPECT_ERROR(u.add(1), "add", "undefined");
  EXPECT_ERROR(u.exp(), "exp", "undefined");
  EXPECT_ERROR(u.sum(), "sum", "undefined");
  EXPECT_ERROR(u.mean(), "mean", "undefined");
  EXPECT_ERROR(u.max(), "max", "undefined");
  EXPECT_ERROR(u.max(0), "max", "undefined");
  EXPECT_ERROR(u.softmax(0), "softmax", "undefined");
  EXPECT_ERROR(u.matmul(x), "matmul", "undefined");
  EXPECT_ERROR(u.view({1}), "view", "undefined");
  EXPECT_ERROR(u.reshape({1}), "reshape", "undefined");
  EXPECT_ERROR(u.flatten(), "flatten", "undefined");
  EXPECT_ERROR(u.permute({0}), "permute", "undefined");
  EXPECT_ERROR(u.t(), "t:", "undefined");
  EXPECT_ERROR(u.expand({1}), "expand", "undefined");
  EXPECT_ERROR(u[0], "select", "undefined");
  EXPECT_ERROR(u.slice(0), "slice", "undefined");
  EXPECT_ERROR(u.index({0}), "index", "undefined");
  EXPECT_ERROR(u.to(kInt64), "to", "undefined");
  EXPECT_ERROR(u.to(kCPU), "to", "undefined");
  EXPECT_ERROR(u.contiguous(), "contiguous", "undefined");
  EXPECT_ERROR(u.clone(), "clone", "undefined");
  EXPECT_ERROR(u.split(1), "split", "undefined");
  EXPECT_ERROR(u.unbind(), "unbind", "undefined");
  EXPECT_ERROR(u.clamp(0), "clamp", "undefined");
  EXPECT_ERROR(u.masked_fill(x > 0, 0), "masked_fill", "undefined");
  EXPECT_ERROR(u.gather(0, x), "gather", "undefined");
  EXPECT_ERROR(u.sort(), "sort", "undefined");
  EXPECT_ERROR(u.add_(1), "add", "undefined");
  EXPECT_ERROR(u += 1, "add", "undefined");
  EXPECT_ERROR(u.zero_(), "zero_", "undefined");
  EXPECT_ERROR(u.fill_(1), "fill_", "undefined");
  EXPECT_ERROR(u.copy_(x), "copy_", "undefined");
  EXPECT_ERROR(u.relu_(), "relu", "undefined");
  EXPECT_ERROR(u.index_put_({0}, 1), "index_put_", "undefined");
  EXPECT_ERROR(u.scatter_(0, x, x), "scatter", "undefined");
  EXPECT_ERROR(u.uniform_(), "uniform_", "undefined");
  EXPECT_ERROR(x.copy_(u), "copy_", "undefined");
  EXPECT_ERROR(x.add_(u), "add", "undefined");
  EXPECT_ERROR(x.fill_(u), "fill_", "undefined");
  EXPECT_ERROR(x.index_put_({0}, u), "undefined");
  EXPECT_ERROR(x.index({u}), "index", "undefined");
  EXPECT_ERROR(x.expand_as(u), "undefined");
  EXPECT_TRUE(has_values(x, {1, 1, 1, 1}));
}

TEST(Undefined, Functions) {
  Tensor u, x = ones({2, 2});
  EXPECT_ERROR(u + x, "add", "undefined");
  EXPECT_ERROR(x + u, "add", "undefined");
  EXPECT_ERROR(1 - u, "undefined");
  EXPECT_ERROR(-u, "neg", "undefined");
  EXPECT_ERROR(u < 1, "lt", "undefined");
  EXPECT_ERROR(where(u, x, x), "where", "undefined");
  EXPECT_ERROR(pow(u, 2), "pow", "undefined");
  EXPECT_ERROR(matmul(x, u), "matmul", "undefined");
  EXPECT_ERROR(mm(u, x), "mm", "undefined");
  EXPECT_ERROR(linear(u, x), "linear", "undefined");
  EXPECT_ERROR(linear(x, u), "linear", "undefined");
  EXPECT_ERROR(einsum("i->", {u}), "einsum", "undefined");
  EXPECT_ERROR(conv2d(u, x), "conv2d", "undefined");
  EXPECT_ERROR(conv2d(x, u), "conv2d", "undefined");
  EXPECT_ERROR(max_pool2d(u, 2), "max_pool2d", "undefined");
  EXPECT_ERROR(avg_pool2d(u, 2), "avg_pool2d", "undefined");
  EXPECT_ERROR(adaptive_avg_pool2d(u, {1, 1}), "adaptive_avg_pool2d", "undefined");
  EXPECT_ERROR(cat({x, u}), "cat", "undefined");
  EXPECT_ERROR(stack({u, x}), "stack", "undefined");
  EXPECT_ERROR(pad(u, {1, 1}), "pad", "undefined");
  EXPECT_ERROR(gather(x, 0, u), "gather", "undefined");
  EXPECT_ERROR(scatter(x, 0, u, x), "scatter", "undefined");
  EXPECT_ERROR(embedding(u, x), "embedding", "undefined");
  EXPECT_ERROR(embedding(x, u), "embedding", "undefined");
  EXPECT_ERROR(index_select(x, 0, u), "index_select", "undefined");
  EXPECT_ERROR(layer_norm(u, {2}), "layer_norm", "undefined");
  EXPECT_ERROR(rms_norm(u, {2}), "rms_norm", "undefined");
  EXPECT_ERROR(group_norm(u, 2), "group_norm", "undefined");
  EXPECT_ERROR(batch_norm(u, x, x), "batch_norm", "undefined");
  EXPECT_ERROR(cross_entropy(u, x), "cross_entropy", "undefined");
  EXPECT_ERROR(cross_entropy(x, u), "cross_entropy", "undefined");
  EXPECT_ERROR(mse_loss(x, u), "mse_loss", "undefined");
  EXPECT_ERROR(scaled_dot_product_attention(u, x, x), "scaled_dot_product_attention", "undefined");
  EXPECT_ERROR(scaled_dot_product_attention(x, u, x), "scaled_dot_product_attention", "undefined");
  EXPECT_ERROR(gelu(u), "gelu", "undefined");
  EXPECT_ERROR(glu(u), "glu", "undefined");
  EXPECT_ERROR(dropout(u), "dropout", "undefined");
  EXPECT_ERROR(interpolate(u, {.scale_factor = {2}}), "interpolate", "undefined");
  EXPECT_ERROR(zeros_like(u), "zeros_like", "undefined");
  EXPECT_ERROR(randn_like(u), "randn_like", "undefined");
  EXPECT_ERROR(topk(u, 1), "topk", "undefined");
  EXPECT_ERROR(nonzero(u), "nonzero", "undefined");
  EXPECT_ERROR(unique(u), "unique", "undefined");
  EXPECT_ERROR(tril(u), "tril", "undefined");
  EXPECT_ERROR(one_hot(u), "one_hot", "undefined");
  EXPECT_ERROR(repeat_interleave(x, u), "repeat_interleave", "undefined");
  EXPECT_ERROR(meshgrid({u}), "meshgrid", "undefined");
  EXPECT_ERROR(allclose(x, u), "allclose", "undefined");
  EXPECT_ERROR(max(u), "max", "undefined");
  EXPECT_ERROR(max(x, u), "max", "undefined");
  EXPECT_ERROR(autograd::backward({u}), "backward", "undefined");
  EXPECT_ERROR(autograd::grad({x.sum()}, {u}), "grad", "undefined");
}

TEST(Undefined, MovedFrom) {
  Tensor x = ones({2}), y = std::move(x);
  EXPECT_ERROR(x + y, "add", "undefined");  // NOLINT: the point of the test
  EXPECT_ERROR(x.sum(), "sum", "undefined");
  x = y;  // and may be given a value again
  EXPECT_TRUE(has_values(x + y, {2, 2}));
}

}  // namespace
}  // namespace sinter
