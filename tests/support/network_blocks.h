#pragma once
// Blocks of networks as functions of their operands.
#include <functional>

#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::testing {

struct NetworkBlock {
  std::function<TensorList(const TensorList&)> run;
  TensorList inputs;
};

// A decode step of a Llama block, with two heads a key and a cache that it writes to.
inline NetworkBlock llama_block(DType dtype) {
  const int64_t heads = 4, kv_heads = 2, size = 16, width = heads * size, length = 24;
  auto norm = [](const Tensor& x, const Tensor& w) { return x * (x.square().mean({-1}, true) + 1e-5).rsqrt() * w; };
  auto rotate = [](const Tensor& x, const Tensor& cos, const Tensor& sin) {
    TensorList h = x.chunk(2, -1);
    return cat({h[0] * cos - h[1] * sin, h[1] * cos + h[0] * sin}, -1);
  };
  auto run = [=](const TensorList& x) {
    Tensor h = x[0], y = norm(h, x[1]);
    auto split = [&](const Tensor& t, int64_t n) { return t.view({1, 1, n, size}).transpose(1, 2); };
    Tensor q = rotate(split(matmul(y, x[2]), heads), x[9], x[10]),
           k = rotate(split(matmul(y, x[3]), kv_heads), x[9], x[10]);
    Tensor keys = index_copy(x[11], 2, x[13], k),
           values = index_copy(x[12], 2, x[13], split(matmul(y, x[4]), kv_heads));
    Tensor a = scaled_dot_product_attention(q, keys, values, x[14], 0, false, {}, true);
    h = h + matmul(a.transpose(1, 2).reshape({1, 1, width}), x[5]);
    y = norm(h, x[1]);
    h = h + matmul(silu(matmul(y, x[6])) * matmul(y, x[7]), x[8]);
    return TensorList{h, keys, values};
  };
  auto some = [&](const Shape& shape) { return (randn(shape) * 0.3).to(dtype); };
  Tensor at = tensor(std::vector<int64_t>{9});
  return {run,
          {some({1, 1, width}), some({width}), some({width, width}), some({width, kv_heads * size}),
           some({width, kv_heads * size}), some({width, width}), some({width, 96}), some({width, 96}),
           some({96, width}), some({size / 2}), some({size / 2}), some({1, kv_heads, length, size}),
           some({1, kv_heads, length, size}), at, (arange(length) <= at).view({1, 1, 1, length})}};
}

// A basic block of a ResNet that keeps its size: two convolutions with batch norms, and the shortcut.
inline NetworkBlock resnet_block(DType dtype) {
  const int64_t channels = 8;
  auto run = [](const TensorList& x) {
    Tensor y = relu(batch_norm(conv2d(x[0], x[1], {}, 1, 1), x[2], x[3], x[4], x[5]));
    y = batch_norm(conv2d(y, x[6], {}, 1, 1), x[7], x[8], x[9], x[10]);
    return TensorList{relu(y + x[0])};
  };
  NetworkBlock out{run, {(randn({2, channels, 10, 10}) * 0.5).to(dtype)}};
  for (int convolution = 0; convolution < 2; ++convolution) {
    out.inputs.push_back((randn({channels, channels, 3, 3}) * 0.2).to(dtype));
    out.inputs.push_back((randn({channels}) * 0.1).to(dtype));
    out.inputs.push_back((randn({channels}).square() + 0.5).to(dtype));
    for (int affine = 0; affine < 2; ++affine) out.inputs.push_back((randn({channels}) * 0.3 + 1).to(dtype));
  }
  return out;
}

}  // namespace sinter::testing
