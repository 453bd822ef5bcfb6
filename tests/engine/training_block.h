#pragma once
// A block of a ResNet as it is trained: half precision by autocast, weights and statistics in f32, channels last.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/conv.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/support/distance.h"

namespace sinter::testing {

struct TrainingBlock {
  TensorList weights;  // of two convolutions and a shortcut, then a weight and a bias each
  TensorList running;  // means and variances

  explicit TrainingBlock(Device device) {
    manual_seed(3);
    for (auto& shape : {Shape{32, 24, 3, 3}, Shape{32, 32, 3, 3}, Shape{32, 24, 1, 1}}) weights.push_back((randn(shape) * 0.1).to(device));
    for (int i = 0; i < 6; ++i) weights.push_back((randn({32}) * 0.2 + (i < 3 ? 1.0 : 0.0)).to(device));
    for (int i = 0; i < 6; ++i) running.push_back((i < 3 ? zeros({32}) : ones({32})).to(device));
    for (int i = 0; i < 3; ++i) weights[size_t(i)] = weights[size_t(i)].contiguous(MemoryFormat::kChannelsLast);
    for (auto& w : weights) w.requires_grad_(true);
  }
  Tensor normed(const Tensor& y, size_t i) const {
    return batch_norm(y, running[i], running[i + 3], weights[i + 3], weights[i + 6], true);
  }
  // The loss, and the gradients of the image and the weights.
  TensorList step(const Tensor& given, const Tensor& flow, bool half) const {
    Tensor x = given.detach().requires_grad_(true), loss;
    {
      AutocastGuard autocast(x.device().type(), kBFloat16, half);
      Tensor y = relu(normed(conv2d(x, weights[0], {}, 2, 1), 0));
      y = relu(normed(conv2d(y, weights[1], {}, 1, 1), 1) + normed(conv2d(x, weights[2], {}, 2), 2));
      loss = (max_pool2d(y, 3, 2, 1).to(kFloat32) * flow).sum() + adaptive_avg_pool2d(y, {1, 1}).to(kFloat32).sum();
    }
    TensorList leaves{x};
    leaves.insert(leaves.end(), weights.begin(), weights.end());
    TensorList out = autograd::grad({loss}, leaves);
    out.push_back(loss.detach());
    return out;
  }
};

// Compiled and op by op, against f32 on the CPU. In bf16 other elements of a window are the largest, and others are cut off.
inline void check_training_block(Device device, Mode mode, bool half) {
  TrainingBlock host(cpu()), eager(device), compiled(device);
  Tensor x = randn({16, 24, 56, 56}), flow = randn({16, 32, 14, 14});
  Tensor there = x.to(device).contiguous(MemoryFormat::kChannelsLast), flow_there = flow.to(device);
  auto fast = compile([&](const Tensor& x, const Tensor& flow) { return compiled.step(x, flow, half); }, {.mode = mode});
  const double from_host = half ? 0.2 : 2e-3, from_eager = half ? 0.1 : 2e-3;
  for (int call = 0; call < 3; ++call) {
    TensorList want = host.step(x, flow, false), by_op = eager.step(there, flow_there, half),
               got = fast(there.clone(), flow_there);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_LT(distance(by_op[i], want[i]), from_host) << "eager " << i;
      EXPECT_LT(distance(got[i], by_op[i]), from_eager) << "compiled " << i << " call " << call;
    }
    for (size_t i = 0; i < host.running.size(); ++i)
      EXPECT_LT(distance(compiled.running[i], host.running[i]), 1e-2) << "running " << i << " call " << call;
  }
}

}  // namespace sinter::testing
