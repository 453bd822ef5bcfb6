#include "sinter/nn/quantize.h"

#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compiler.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/nn.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// Of a matrix, by its own size.
double error_of_quantizing(const Tensor& weight, const nn::QuantizeOptions& options) {
  const Tensor again = nn::quantize(weight, options).dequantize(kFloat32);
  return ((again - weight).square().sum() / weight.square().sum()).sqrt().item<float>();
}

double difference(const Tensor& a, const Tensor& b) {
  return ((a.to(kFloat32) - b.to(kFloat32)).abs().max() / b.to(kFloat32).abs().max()).item<float>();
}

TEST(Quantize, ErrorsAreThoseOfTheBits) {
  manual_seed(1);
  const Tensor weight = randn({40, 300});
  EXPECT_LT(error_of_quantizing(weight, {.encoding = Encoding::kInt8}), 0.01);
  const double groups_of_32 = error_of_quantizing(weight, {.encoding = Encoding::kUInt4, .group_size = 32});
  EXPECT_LT(groups_of_32, 0.085);
  EXPECT_LT(groups_of_32, error_of_quantizing(weight, {.encoding = Encoding::kUInt4, .group_size = 128}));
  // Ranges alone leave more: the search is worth its time.
  const Tensor rows = weight.narrow(1, 0, 288).reshape({-1, 32});
  const Tensor low = rows.amin({1}, true), step = (rows.amax({1}, true) - low) / 15;
  const Tensor plain = ((rows - low) / step).round() * step + low;
  const double by_ranges = ((plain - rows).square().sum() / rows.square().sum()).sqrt().item<float>();
  EXPECT_LT(groups_of_32, by_ranges);
}

TEST(Quantize, WhatCodesCanSayStaysAsItIs) {
  manual_seed(2);
  const Tensor whole = randint(-127, 128, {6, 33}, kFloat32);
  whole.select(1, 0).fill_(127);
  EXPECT_EQ(error_of_quantizing(whole * 0.25, {.encoding = Encoding::kInt8}), 0);
  for (Encoding encoding : {Encoding::kInt8, Encoding::kUInt4})
    EXPECT_EQ(nn::quantize(zeros({3, 17}), {.encoding = encoding}).dequantize(kFloat32).to_vector<float>(),
              std::vector<float>(51));
}

TEST(Quantize, RefusesWhatHasNoCodes) {
  Tensor weight = ones({3, 8});
  weight.select(0, 1).select(0, 2).fill_(INFINITY);
  for (Encoding encoding : {Encoding::kInt8, Encoding::kUInt4})
    EXPECT_THROW(nn::quantize(weight, {.encoding = encoding}), Error);
  EXPECT_THROW(nn::quantize(ones({3, 8}), {.encoding = Encoding::kTable4}), Error);
  EXPECT_THROW(nn::quantize(ones({3, 8}), {.encoding = Encoding::kUInt4, .group_size = 12}), Error);
  EXPECT_THROW(nn::quantize(ones({8}), {}), Error);
}

TEST(Quantize, ALayerComputesWithWhatItsCodesStandFor) {
  manual_seed(3);
  for (DType dtype : {kFloat32, kBFloat16})
    for (Encoding encoding : {Encoding::kInt8, Encoding::kUInt4}) {
      nn::Linear layer(77, 45);
      layer->to(dtype);
      nn::set_quantized(*layer, nn::quantize(layer->weight, {.encoding = encoding, .group_size = 32}));
      NoGradGuard no_grad;
      auto compiled = compile([&](const Tensor& x) { return layer(x); });
      for (int64_t rows = 1; rows <= 130; rows += rows < 20 ? 1 : 11) {
        const Tensor x = randn({rows, 77}).to(dtype);
        const Tensor want = linear(x.to(kFloat32), layer->quantized->dequantize(kFloat32), layer->bias.to(kFloat32));
        // Results are rounded to bf16, whose half step is 2^-9.
        EXPECT_LT(difference(compiled(x), want), dtype == kFloat32 ? 1e-5 : 4e-3) << rows;
        EXPECT_LT(difference(layer(x), want), dtype == kFloat32 ? 1e-5 : 1e-2) << rows;
      }
    }
}

TEST(Quantize, AFilterChoosesLayersByName) {
  nn::Sequential net(nn::Linear(16, 8), nn::Tanh(), nn::Linear(8, 4));
  EXPECT_EQ(nn::quantize_(*net, {.filter = [](auto& name) { return name == "2"; }}), 1);
  NamedTensors state = net->state_dict();
  std::string names;
  for (auto& [name, tensor] : state) names += name + " ";
  EXPECT_EQ(names, "0.weight 0.bias 2.bias 2.codes 2.scale ");
  EXPECT_EQ(nn::quantize_(*net, {.encoding = Encoding::kUInt4}), 1);
  EXPECT_EQ(nn::quantize_(*net), 0);
  EXPECT_NE(nn::to_string(*net).find("weight=uint4"), std::string::npos) << nn::to_string(*net);
  // Back into another one that was quantised alike.
  nn::Sequential other(nn::Linear(16, 8), nn::Tanh(), nn::Linear(8, 4));
  nn::quantize_(*other, {.filter = [](auto& name) { return name == "2"; }});
  nn::quantize_(*other, {.encoding = Encoding::kUInt4});
  other->load_state_dict(net->state_dict());
  const Tensor x = randn({3, 16});
  EXPECT_EQ(difference(other(x), net(x)), 0);
  auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
  EXPECT_EQ(difference(copy->forward(x), net(x)), 0);
}

TEST(Quantize, GradientsFlowThroughToTheInput) {
  nn::Linear layer(24, 10);
  nn::set_quantized(*layer, nn::quantize(layer->weight, {.encoding = Encoding::kUInt4}));
  const Tensor weight = layer->quantized->dequantize(kFloat32);
  for (bool compiled : {false, true}) {
    Tensor x = randn({3, 24}).requires_grad_(true);
    auto f = compile([&](const Tensor& x) { return layer(x).square().sum(); });
    (compiled ? f(x) : layer(x).square().sum()).backward();
    const Tensor want = mm(layer(x).detach() * 2, weight);
    EXPECT_LT(difference(x.grad(), want), 1e-5);
    EXPECT_EQ(layer->parameters().size(), 1u);
  }
}

// What the layer is made of may be put elsewhere or changed: what was packed of it follows.
TEST(Quantize, ACompiledFunctionSeesNewCodes) {
  NoGradGuard no_grad;
  nn::Linear layer(32, 8);
  nn::set_quantized(*layer, nn::quantize(layer->weight));
  auto f = compile([&](const Tensor& x) { return layer(x); });
  const Tensor x = randn({2, 32});
  const Tensor before = f(x);
  layer->quantized->scale.mul_(2);
  EXPECT_LT(difference(f(x) - layer->bias, (before - layer->bias) * 2), 1e-5);
}

}  // namespace
}  // namespace sinter
