// Weights with a length or a largest singular value of their own, against PyTorch's.
#include "sinter/nn/utils/parametrizations.h"

#include "sinter/capture/compile.h"
#include "sinter/capture/entry.h"
#include "tests/nn/recorded_layers.h"

namespace sinter {
namespace {

template <class M>
M filled(const M& module) {
  module->to(kFloat64);
  NoGradGuard no_grad;
  for (auto& p : module->parameters()) p.copy_(cos(ramp64(p.sizes(), -3, 4)) * 0.5);
  return module;
}

Tensor input(const Shape& size) { return sin(ramp64(size, -2, 3)).requires_grad_(); }

TEST(WeightNorm, IsPyTorchs) {
  auto expect = [](const char* name, const auto& module, const Shape& size, int64_t dim) {
    for (bool compiled : {false, true}) {
      auto layer = nn::utils::weight_norm(filled(module()), dim);
      Tensor x = input(size);
      auto f = [&](const Tensor& x) { return layer(x); };
      Tensor y = compiled ? compile(f, {.fullgraph = true})(x) : f(x);
      expect_differentiated(name, {y}, {x}, &*layer);
    }
  };
  expect(
      "weight_norm", [] { return nn::Linear(3, 4); }, {2, 3}, 0);
  expect(
      "weight_norm_dim1", [] { return nn::Linear(3, 4); }, {2, 3}, 1);
  expect(
      "weight_norm_conv", [] { return nn::Conv1d(2, 3, 2); }, {1, 2, 5}, 0);
}

TEST(WeightNorm, NamesArePyTorchsAndTheFirstWeightIsKept) {
  nn::Linear layer(3, 4);
  Tensor x = ones({2, 3}), before = layer(x);
  nn::utils::weight_norm(layer);
  std::string names;
  for (auto& [name, tensor] : layer->named_parameters()) names += name + to_string(tensor.sizes()) + " ";
  EXPECT_EQ(names, "bias[4] parametrizations.weight.original0[4, 1] parametrizations.weight.original1[4, 3] ");
  EXPECT_TRUE(layer(x).allclose(before, 1e-5, 1e-6));
  EXPECT_FALSE(layer->weight.defined());
  nn::utils::remove_parametrizations(layer);
  EXPECT_TRUE(layer(x).allclose(before, 1e-5, 1e-6));
  EXPECT_EQ(layer->named_parameters().size(), 2u);
  EXPECT_TRUE(layer->weight.requires_grad());
  EXPECT_THROW(nn::utils::remove_parametrizations(layer), Error);
  EXPECT_THROW(nn::utils::weight_norm(nn::Linear(3, 4), 2), Error);
}

TEST(WeightNorm, TrainsInsideACompiledFunction) {
  auto train = [](bool compiled) {
    auto layer = nn::utils::weight_norm(filled(nn::Linear(3, 4)));
    optim::SGD sgd(layer->parameters(), 0.1);
    Tensor x = input({2, 3}).detach();
    auto step = [&](const Tensor& x) {
      sgd.zero_grad();
      Tensor loss = layer(x).square().sum();
      loss.backward();
      sgd.step();
      return loss.detach();
    };
    auto fast = compile(step, {.fullgraph = true});
    Tensor loss;
    for (int i = 0; i < 5; ++i) loss = compiled ? fast(x) : step(x);
    if (compiled) {
      EXPECT_LE(fast.function().entries().size(), 2u);
    }
    return loss;
  };
  EXPECT_TRUE(train(true).allclose(train(false), 1e-9, 1e-9));
}

TEST(SpectralNorm, IsPyTorchs) {
  auto expect = [](const std::string& name, const auto& module, const Shape& size) {
    for (bool compiled : {false, true}) {
      auto layer = nn::utils::spectral_norm(filled(module()));
      TensorList vectors = layer->buffers();
      {
        NoGradGuard no_grad;
        for (size_t i = 0; i < 2; ++i)
          vectors[i].copy_(normalize(cos(ramp64(vectors[i].sizes(), 0, 2 + double(i))), 2, 0));
      }
      Tensor x = input(size);
      auto plain = [&](const Tensor& x) { return layer(x); };
      auto fast = compile(plain, {.fullgraph = true});
      auto f = [&] { return compiled ? fast(x) : plain(x); };
      f();
      f();
      expect_differentiated(name, {f()}, {x}, &*layer);
      layer->eval();
      expect_layer(name + "/eval", f());
      expect_layer(name + "/u", vectors[0]);
      expect_layer(name + "/v", vectors[1]);
    }
  };
  expect("spectral_norm", [] { return nn::Linear(3, 4); }, {2, 3});
  expect("spectral_norm_conv", [] { return nn::Conv1d(2, 3, 2); }, {1, 2, 5});
}

TEST(SpectralNorm, LeavesALargestSingularValueOfOne) {
  manual_seed(3);
  nn::Linear layer(3, 3);
  {
    NoGradGuard no_grad;
    layer->weight.copy_(eye(3) * tensor({5.0, 2.0, 1.0}));
    layer->bias.zero_();
  }
  nn::utils::spectral_norm(layer);
  EXPECT_EQ(layer->named_buffers()[0].first, "parametrizations.weight.0._u");
  Tensor y = layer(eye(3)).detach();
  expect_values(y, {1, 0, 0, 0, 0.4, 0, 0, 0, 0.2}, 1e-4);
}

}  // namespace
}  // namespace sinter
