// Shapes that do not fit, family by family: the Error names the op and the shapes it was given.
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

TEST(Shapes, Broadcasting) {
  Tensor a = ones({2, 3}), b = ones({4}), c = ones({3, 2});
  EXPECT_ERROR(add(a, b), "add", "[2, 3]", "[4]");
  EXPECT_ERROR(a + b, "add", "[2, 3]", "[4]");
  EXPECT_ERROR(a * c, "mul", "[2, 3]", "[3, 2]");
  EXPECT_ERROR(a / b, "div", "[2, 3]", "[4]");
  EXPECT_ERROR(a < b, "lt", "[2, 3]", "[4]");
  EXPECT_ERROR(a.sub(b), "sub", "[2, 3]", "[4]");
  EXPECT_ERROR(pow(a, b), "pow", "[2, 3]", "[4]");
  EXPECT_ERROR(maximum(a, b), "maximum", "[2, 3]", "[4]");
  EXPECT_ERROR(where(a > 0, b, 0), "where", "[2, 3]", "[4]");
  EXPECT_ERROR(a.masked_fill(b > 0, 0), "masked_fill", "[2, 3]", "[4]");
  EXPECT_ERROR(lerp(a, b, 0.5), "lerp", "[2, 3]", "[4]");
  EXPECT_ERROR(addcmul(a, b, b), "addcmul", "[2, 3]", "[4]");
  EXPECT_TRUE(has_values(a, {1, 1, 1, 1, 1, 1}));
}

TEST(Shapes, Products) {
  Tensor a = ones({2, 3}), b = ones({4, 5}), v = ones({4}), batch = ones({2, 3, 4});
  EXPECT_ERROR(matmul(a, b), "matmul", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(matmul(a, v), "matmul", "[2, 3]", "[4]");
  EXPECT_ERROR(matmul(v, a), "matmul", "[4]", "[2, 3]");
  EXPECT_ERROR(matmul(batch, a), "matmul", "[2, 3, 4]", "[2, 3]");
  EXPECT_ERROR(matmul(batch, ones({5, 4, 6})), "matmul", "[2, 3, 4]", "[5, 4, 6]");
  EXPECT_ERROR(matmul(a, 2), "matmul");
  EXPECT_ERROR(matmul(a, ones({})), "matmul", "[2, 3]", "[]");
  EXPECT_ERROR(a.matmul(b), "matmul", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(mm(a, b), "mm", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(mm(a, v), "mm", "[2, 3]", "[4]");
  EXPECT_ERROR(bmm(batch, ones({3, 4, 5})), "bmm", "[2, 3, 4]", "[3, 4, 5]");
  EXPECT_ERROR(bmm(a, b), "bmm", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(dot(v, ones({5})), "dot", "[4]", "[5]");
  EXPECT_ERROR(mv(a, v), "mv", "[2, 3]", "[4]");
  EXPECT_ERROR(outer(a, v), "outer", "[2, 3]", "[4]");
  EXPECT_ERROR(addmm(ones({7}), a, ones({3, 5})), "addmm", "[7]", "[2, 5]");
  EXPECT_ERROR(baddbmm(ones({7}), batch, ones({2, 4, 5})), "baddbmm", "[7]", "[2, 3, 5]");
  EXPECT_ERROR(linear(a, b), "linear", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(linear(a, ones({5, 3}), ones({4})), "linear", "[4]", "[2, 5]");
  EXPECT_ERROR(tensordot(a, b, {1}, {0}), "tensordot", "[2, 3]", "[4, 5]");
}

TEST(Shapes, Einsum) {
  Tensor a = ones({2, 3}), b = ones({4, 5});
  EXPECT_ERROR(einsum("ij,jk->ik", {a, b}), "einsum", "ij,jk->ik", "[2, 3]", "[4, 5]");
  EXPECT_ERROR(einsum("ijk->i", {a}), "einsum", "ijk", "3", "2");
  EXPECT_ERROR(einsum("ij,jk->ik", {a}), "einsum", "ij,jk->ik");
  EXPECT_ERROR(einsum("ij->iz", {a}), "einsum", "z");
  EXPECT_ERROR(einsum("i$->i", {a}), "einsum", "$");
  EXPECT_ERROR(einsum("ii->i", {a}), "einsum", "[2, 3]");
  EXPECT_ERROR(einsum("", {}), "einsum");
}

TEST(Shapes, Convolutions) {
  Tensor x = ones({1, 3, 8, 8}), w = ones({4, 2, 3, 3});
  EXPECT_ERROR(conv2d(x, w), "conv2d", "[1, 3, 8, 8]", "[4, 2, 3, 3]");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3})), "conv2d", "[1, 3, 8, 8]", "[4, 3, 3]");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3, 3}), ones({5})), "conv2d", "[5]", "4");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 9, 9})), "conv2d", "[1, 3, 8, 8]", "[4, 3, 9, 9]");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3, 3}), {}, 0), "conv2d", "stride");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3, 3}), {}, 1, -1), "conv2d", "padding");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3, 3}), {}, 1, 0, 0), "conv2d", "dilation");
  EXPECT_ERROR(conv2d(x, ones({4, 3, 3, 3}), {}, {1, 1, 1}), "conv2d", "stride");
  EXPECT_ERROR(conv2d(x, ones({4, 1, 3, 3}), {}, 1, 0, 1, 2), "conv2d", "groups");
  EXPECT_ERROR(conv2d(x, ones({4, 1, 3, 3}), {}, 1, 0, 1, 0), "conv2d", "groups");
  EXPECT_ERROR(conv1d(ones({2, 3}), ones({1, 3})), "conv1d", "[2, 3]", "[1, 3]");
  EXPECT_ERROR(conv3d(x, ones({4, 3, 3, 3, 3})), "conv3d");
  EXPECT_ERROR(conv_transpose2d(x, w), "conv_transpose2d", "[1, 3, 8, 8]", "[4, 2, 3, 3]");
  EXPECT_ERROR(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 1, 0, 3), "conv_transpose2d", "output_padding");
}

TEST(Shapes, Pools) {
  Tensor x = ones({1, 3, 8, 8});
  EXPECT_ERROR(max_pool2d(x, 9), "max_pool2d", "9", "8");
  EXPECT_ERROR(max_pool2d(x, 0), "max_pool2d", "kernel");
  EXPECT_ERROR(max_pool2d(x, 3, 0), "max_pool2d", "stride");
  EXPECT_ERROR(max_pool2d(x, 2, 2, 2), "max_pool2d", "padding");
  EXPECT_ERROR(max_pool2d(ones({8}), 2), "max_pool2d", "[8]");
  EXPECT_ERROR(max_pool2d(x, {2, 2, 2}), "max_pool2d", "kernel");
  EXPECT_ERROR(avg_pool2d(x, 9), "avg_pool2d", "9", "8");
  EXPECT_ERROR(avg_pool2d(x, 2, 2, 2), "avg_pool2d", "padding");
  EXPECT_ERROR(avg_pool1d(ones({}), 2), "avg_pool1d", "[]");
  EXPECT_ERROR(adaptive_avg_pool2d(x, {2, 2, 2}), "adaptive_avg_pool2d", "[2, 2, 2]");
  EXPECT_ERROR(adaptive_avg_pool2d(x, {-1, 2}), "adaptive_avg_pool2d", "[-1, 2]");
  EXPECT_ERROR(adaptive_max_pool1d(ones({2, 3}), {1, 1}), "adaptive_max_pool1d", "[1, 1]");
}

TEST(Shapes, Joining) {
  Tensor a = ones({2, 3}), b = ones({4, 4});
  EXPECT_ERROR(cat({a, b}), "cat", "[2, 3]", "[4, 4]");
  EXPECT_ERROR(cat({a, ones({2, 3, 1})}, 1), "cat", "[2, 3]", "[2, 3, 1]");
  EXPECT_ERROR(cat({a, a}, 2), "cat", "2");
  EXPECT_ERROR(cat({}), "cat");
  EXPECT_ERROR(cat({ones({}), ones({})}), "cat");
  EXPECT_ERROR(stack({a, b}), "stack", "[2, 3]", "[4, 4]");
  EXPECT_ERROR(stack({a, a}, 4), "stack", "4");
  EXPECT_ERROR(stack({}), "stack");
  EXPECT_ERROR(repeat(a, {2}), "repeat", "[2]", "[2, 3]");
  EXPECT_ERROR(repeat(a, {2, -1}), "repeat", "-1");
  EXPECT_ERROR(a.repeat({2}), "repeat", "[2]", "[2, 3]");
  EXPECT_ERROR(repeat_interleave(a, -1), "repeat_interleave", "-1");
  EXPECT_ERROR(repeat_interleave(a, tensor({1, 2}), 1), "repeat_interleave", "2 repeats", "[2, 3]");
  EXPECT_ERROR(roll(a, {1, 1}, {0}), "roll", "[1, 1]", "[0]");
  EXPECT_ERROR(pad(a, {1}), "pad", "[1]");
  EXPECT_ERROR(pad(a, {1, 1, 1, 1, 1, 1}), "pad", "[2, 3]");
  EXPECT_ERROR(pad(a, {-2, -2}), "pad", "[2, 3]", "[-2, -2]");
  EXPECT_ERROR(pad(ones({1, 2, 3}), {3, 0}, "reflect"), "pad", "[1, 2, 3]", "3");
  EXPECT_ERROR(pad(a, {1, 1}, "mirror"), "pad", "mirror");
}

TEST(Shapes, Views) {
  Tensor a = ones({2, 3}), t = ones({3, 2}).t();
  EXPECT_ERROR(a.view({4}), "view", "[2, 3]", "[4]");
  EXPECT_ERROR(a.view({-1, -1}), "view", "-1");
  EXPECT_ERROR(a.view({-1, 4}), "view", "[2, 3]", "[-1, 4]");
  EXPECT_ERROR(a.view({-2, 3}), "view", "-2");
  EXPECT_ERROR(t.view({6}), "view", "[2, 3]", "[6]", "reshape");
  EXPECT_ERROR(a.reshape({5}), "reshape", "[2, 3]", "[5]");
  EXPECT_ERROR(zeros({0, 3}).view({-1, 0}), "view");
  EXPECT_ERROR(a.expand({2, 4}), "expand", "[2, 3]", "[2, 4]");
  EXPECT_ERROR(a.expand({3}), "expand", "[2, 3]", "[3]");
  EXPECT_ERROR(a.expand({-1, 2, 3}), "expand", "-1");
  EXPECT_ERROR(a.expand_as(ones({4})), "expand", "[2, 3]", "[4]");
  EXPECT_ERROR(a.permute({0}), "permute", "[0]", "[2, 3]");
  EXPECT_ERROR(a.permute({0, 0}), "permute", "[0, 0]");
  EXPECT_ERROR(a.permute({0, 2}), "permute", "2");
  EXPECT_ERROR(ones({1, 2, 3}).t(), "t:", "[1, 2, 3]");
  EXPECT_ERROR(a.unflatten(1, {2, 2}), "unflatten", "[3]", "[2, 2]");
  EXPECT_ERROR(a.flatten(1, 0), "flatten");
  EXPECT_ERROR(a.split(0), "split", "0");
  EXPECT_ERROR(split_with_sizes(a, {1, 1}, 1), "split", "[1, 1]", "3");
  EXPECT_ERROR(a.chunk(0), "chunk", "0");
  EXPECT_ERROR(unfold(a, 1, 4, 1), "unfold", "4", "3");
  EXPECT_ERROR(unfold(a, 1, 2, 0), "unfold", "step");
  EXPECT_ERROR(as_strided(a, {3, 3}, {3, 1}), "as_strided", "[3, 3]");
  EXPECT_ERROR(as_strided(a, {3, 3}, {3}), "as_strided");
  EXPECT_ERROR(as_strided(a, {2}, {-1}), "as_strided", "-1");
  EXPECT_ERROR(ones({2}).diagonal(), "diagonal");
  EXPECT_ERROR(a.diagonal(0, 1, 1), "diagonal", "1");
  EXPECT_ERROR(sum_to_size(a, {4}), "sum_to_size", "[2, 3]", "[4]");
  EXPECT_ERROR(zeros({-1}), "full", "[-1]");
  EXPECT_ERROR(from_data(Floats{1, 2}, {3}), "from_data", "2", "[3]");
}

TEST(Shapes, IndexTensors) {
  Tensor x = ones({3, 4}), i = tensor({0, 1});
  EXPECT_ERROR(gather(x, 0, i), "gather", "[3, 4]", "[2]");
  EXPECT_ERROR(gather(x, 0, zeros({2, 5}, kInt64)), "gather", "[3, 4]", "[2, 5]");
  EXPECT_ERROR(scatter(x, 0, zeros({2, 5}, kInt64), zeros({2, 5})), "scatter", "[3, 4]", "[2, 5]");
  EXPECT_ERROR(scatter(x, 0, zeros({2, 2}, kInt64), zeros({1, 2})), "scatter", "[2, 2]", "[1, 2]");
  EXPECT_ERROR(scatter_add(x, 0, i, ones({2})), "scatter_add", "[3, 4]", "[2]");
  EXPECT_ERROR(scatter_reduce(x, 0, zeros({1, 1}, kInt64), zeros({1, 1}), "median"), "scatter_reduce", "median");
  EXPECT_ERROR(index_select(x, 0, zeros({2, 2}, kInt64)), "index_select", "[2, 2]");
  EXPECT_ERROR(index_copy(x, 0, i, ones({3, 4})), "index_copy", "[3, 4]");
  EXPECT_ERROR(index_add(x, 0, i, ones({2, 5})), "index_add", "[2, 4]", "[2, 5]");
  EXPECT_ERROR(index_fill(x, 0, i, ones({2})), "index_fill", "[2]");
  EXPECT_ERROR(x.index({i, tensor({0, 1, 2})}), "index", "[2]", "[3]");
  EXPECT_ERROR(x.index({0, 0, 0}), "index", "[3, 4]");
  EXPECT_ERROR(x.index({Ellipsis, 0, Ellipsis}), "index", "Ellipsis");
  EXPECT_ERROR(x.index({tensor({true, false})}), "index", "[2]", "[3, 4]");
  EXPECT_ERROR(x.index_put_({i}, ones({3})), "index_put", "[3]", "[2, 4]");
  EXPECT_ERROR(x.index_put_({0}, ones({3})), "[3]", "[4]");
  EXPECT_ERROR(embedding(ones({4}), i), "embedding", "[4]");
  EXPECT_ERROR(masked_select(x, ones({5}) > 0), "masked_select", "[3, 4]", "[5]");
  EXPECT_ERROR(take_along_dim(x, i, 0), "take_along_dim", "[3, 4]", "[2]");
  EXPECT_TRUE(has_values(x, std::vector<double>(12, 1)));
}

TEST(Shapes, Normalisations) {
  Tensor x = ones({2, 6, 4});
  EXPECT_ERROR(layer_norm(x, {5}), "layer_norm", "[2, 6, 4]", "[5]");
  EXPECT_ERROR(layer_norm(x, {4}, ones({5})), "layer_norm", "[5]", "[4]");
  EXPECT_ERROR(layer_norm(x, {4}, ones({4}), ones({3})), "layer_norm", "[3]", "[4]");
  EXPECT_ERROR(layer_norm(x, {}), "layer_norm", "[2, 6, 4]");
  EXPECT_ERROR(rms_norm(x, {5}), "rms_norm", "[2, 6, 4]", "[5]");
  EXPECT_ERROR(rms_norm(x, {4}, ones({5})), "rms_norm", "[5]", "[4]");
  EXPECT_ERROR(group_norm(x, 4), "group_norm", "[2, 6, 4]", "4");
  EXPECT_ERROR(group_norm(x, 0), "group_norm", "0");
  EXPECT_ERROR(group_norm(x, 2, ones({5})), "group_norm", "[5]", "6");
  EXPECT_ERROR(batch_norm(x, ones({5}), ones({6})), "batch_norm", "[5]", "6");
  EXPECT_ERROR(batch_norm(x, {}, {}), "batch_norm", "running");
  EXPECT_ERROR(batch_norm(ones({4}), ones({4}), ones({4})), "batch_norm", "[4]");
  EXPECT_ERROR(batch_norm(ones({1, 6}), {}, {}, {}, {}, true), "batch_norm", "[1, 6]");
  EXPECT_ERROR(instance_norm(ones({2, 6, 1})), "instance_norm", "[2, 6, 1]");
}

TEST(Shapes, Losses) {
  Tensor x = ones({3, 5});
  EXPECT_ERROR(cross_entropy(x, tensor({0, 1})), "cross_entropy", "[3, 5]", "[2]");
  EXPECT_ERROR(cross_entropy(x, ones({3, 4})), "cross_entropy", "[3, 5]", "[3, 4]");
  EXPECT_ERROR(cross_entropy(x, tensor({0, 1, 2}), ones({4})), "cross_entropy", "[4]", "5");
  EXPECT_ERROR(nll_loss(x, tensor({0, 1})), "nll_loss", "[3, 5]", "[2]");
  EXPECT_ERROR(mse_loss(x, ones({4})), "mse_loss", "[3, 5]", "[4]");
  EXPECT_ERROR(l1_loss(x, ones({4})), "l1_loss", "[3, 5]", "[4]");
  EXPECT_ERROR(smooth_l1_loss(x, ones({4})), "smooth_l1_loss", "[3, 5]", "[4]");
  EXPECT_ERROR(binary_cross_entropy(x, ones({4})), "binary_cross_entropy", "[3, 5]", "[4]");
  EXPECT_ERROR(binary_cross_entropy_with_logits(x, ones({4})), "binary_cross_entropy_with_logits", "[3, 5]", "[4]");
  EXPECT_ERROR(kl_div(x, ones({4})), "kl_div", "[3, 5]", "[4]");
}

TEST(Shapes, Attention) {
  Tensor q = ones({2, 4, 8, 16}), k = ones({2, 4, 6, 16}), v = ones({2, 4, 6, 32});
  EXPECT_ERROR(scaled_dot_product_attention(q, ones({2, 4, 6, 8}), v), "scaled_dot_product_attention", "[2, 4, 8, 16]", "[2, 4, 6, 8]");
  EXPECT_ERROR(scaled_dot_product_attention(q, k, ones({2, 4, 5, 32})), "scaled_dot_product_attention", "[2, 4, 6, 16]", "[2, 4, 5, 32]");
  EXPECT_ERROR(scaled_dot_product_attention(q, k, v, ones({7, 6})), "scaled_dot_product_attention", "[7, 6]");
  EXPECT_ERROR(scaled_dot_product_attention(q, ones({2, 2, 6, 16}), ones({2, 2, 6, 32})), "scaled_dot_product_attention", "[2, 4, 8, 16]", "[2, 2, 6, 16]");
  EXPECT_ERROR(scaled_dot_product_attention(q, ones({2, 3, 6, 16}), ones({2, 3, 6, 32}), {}, 0, false, {}, true), "scaled_dot_product_attention", "4", "3");
  EXPECT_ERROR(scaled_dot_product_attention(q, k, v, ones({8, 6}), 0, true), "scaled_dot_product_attention", "causal");
  EXPECT_ERROR(scaled_dot_product_attention(ones({4}), ones({4}), ones({4})), "scaled_dot_product_attention", "[4]");
  Tensor leaf = ones({4}).requires_grad_(), point = ones({}).requires_grad_();
  EXPECT_ERROR(scaled_dot_product_attention(leaf, leaf, leaf), "scaled_dot_product_attention", "[4]");
  EXPECT_ERROR(scaled_dot_product_attention(q, k, point), "scaled_dot_product_attention", "[]");
}

TEST(Shapes, Others) {
  Tensor x = ones({2, 3});
  EXPECT_ERROR(glu(x), "glu", "[2, 3]");
  EXPECT_ERROR(tril(ones({3})), "tril", "[3]");
  EXPECT_ERROR(interpolate(x, {.scale_factor = {2}}), "interpolate", "[2, 3]");
  EXPECT_ERROR(interpolate(ones({1, 1, 4, 4}), {.size = {2}}), "interpolate", "[2]");
  EXPECT_ERROR(interpolate(ones({1, 1, 4, 4}), {}), "interpolate", "size");
  EXPECT_ERROR(pixel_shuffle(ones({1, 3, 2, 2}), 2), "pixel_shuffle", "[1, 3, 2, 2]");
  EXPECT_ERROR(topk(x, 4), "topk", "4", "[2, 3]");
  EXPECT_ERROR(topk(x, -1), "topk", "-1");
  EXPECT_ERROR(kthvalue(x, 0), "kthvalue", "0");
  EXPECT_ERROR(searchsorted(x, ones({3, 3})), "searchsorted", "[2, 3]", "[3, 3]");
  EXPECT_ERROR(meshgrid({x}), "meshgrid", "[2, 3]");
  EXPECT_ERROR(multinomial(ones({2, 3}), 4), "multinomial", "4", "3");
  EXPECT_ERROR(dropout(x, 1.5), "dropout", "1.5");
  EXPECT_ERROR(arange(0, 5, -1), "arange", "0", "5");
  EXPECT_ERROR(arange(0, 5, 0), "arange", "step");
  EXPECT_ERROR(linspace(0, 1, -3), "linspace", "-3");
  EXPECT_ERROR(randint(5, 5, {2}), "randint", "5");
  EXPECT_ERROR(eye(-1), "eye", "-1");
  EXPECT_ERROR_TEXT(tensor({{1, 2}, {3}}), "tensor", "2", "1");
  EXPECT_ERROR(gelu(x, "erf"), "gelu", "erf");
  EXPECT_ERROR(div(x, x, "up"), "div", "up");
}

TEST(Shapes, DimensionsOutOfRange) {
  Tensor x = ones({2, 3});
  EXPECT_ERROR(x.sum(2), "sum", "2");
  EXPECT_ERROR(x.sum({0, 0}), "sum", "0");
  EXPECT_ERROR(x.sum({0, -2}), "sum", "0");
  EXPECT_ERROR(x.mean(-3), "mean", "-3");
  EXPECT_ERROR(x.amax(5), "amax", "5");
  EXPECT_ERROR(x.argmax(5), "argmax", "5");
  EXPECT_ERROR(x.max(5), "max", "5");
  EXPECT_ERROR(x.softmax(2), "softmax", "2");
  EXPECT_ERROR(x.log_softmax(2), "log_softmax", "2");
  EXPECT_ERROR(x.cumsum(2), "cumsum", "2");
  EXPECT_ERROR(x.var(2), "var", "2");
  EXPECT_ERROR(x.std(2), "std", "2");
  EXPECT_ERROR(norm(x, 2, 2), "norm", "2");
  EXPECT_ERROR(x.logsumexp(2), "logsumexp", "2");
  EXPECT_ERROR(x.sort(2), "sort", "2");
  EXPECT_ERROR(x.topk(1, 2), "topk", "2");
  EXPECT_ERROR(x.flip(2), "flip", "2");
  EXPECT_ERROR(x.transpose(0, 2), "transpose", "2");
  EXPECT_ERROR(x.select(2, 0), "select", "2");
  EXPECT_ERROR(x.slice(2), "slice", "2");
  EXPECT_ERROR(x.unsqueeze(4), "unsqueeze", "4");
  EXPECT_ERROR(x.squeeze(4), "squeeze", "4");
  EXPECT_ERROR(x.size(2), "size", "2");
  EXPECT_ERROR(x.stride(2), "stride", "2");
  EXPECT_ERROR(x.unbind(2), "unbind", "2");
  EXPECT_ERROR(x.gather(2, zeros({2, 3}, kInt64)), "gather", "2");
  EXPECT_ERROR(x.index_select(2, tensor({0})), "index_select", "2");
  EXPECT_ERROR(x.movedim(0, 2), "movedim", "2");
  EXPECT_ERROR(glu(x, 2), "glu", "2");
  EXPECT_ERROR(x.select(INT64_MAX, 0), "select");
  EXPECT_ERROR(x.sum(INT64_MIN), "sum");
}

}  // namespace
}  // namespace sinter
