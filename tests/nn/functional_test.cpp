// LibTorch's spellings: functions with options, words for modes, and what layers refuse.
#include "sinter/capture/compile.h"
#include "tests/nn/common.h"

namespace sinter {
namespace {

namespace F = nn::functional;

TEST(Functional, OptionsAreThoseOfTheLayers) {
  Tensor x = sin(ramp({2, 3, 6, 6}, -2, 9)), weight = cos(ramp({4, 3, 3, 3}, 0, 5));
  expect_equal(F::conv2d(x, weight, F::Conv2dFuncOptions().stride(2).padding(1)), conv2d(x, weight, {}, 2, 1));
  expect_equal(F::conv2d(x, weight, F::Conv2dFuncOptions().padding(kSame)), conv2d(x, weight, {}, 1, 1));
  expect_equal(F::max_pool2d(x, F::MaxPool2dFuncOptions(3).stride(2)), max_pool2d(x, 3, 2));
  auto [values, indices] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2));
  expect_equal(values, max_pool2d(x, 2));
  expect_equal(F::max_unpool2d(values, indices, F::MaxUnpool2dFuncOptions(2)), max_unpool2d(values, indices, 2));
  expect_equal(F::adaptive_max_pool2d(x, F::AdaptiveMaxPool2dFuncOptions(2)), std::get<0>(adaptive_max_pool2d(x, 2)));
  expect_equal(F::pad(x, F::PadFuncOptions({1, 2}).mode(kReplicate)), pad(x, {1, 2}, "replicate"));
  expect_equal(F::interpolate(x, F::InterpolateFuncOptions().size({3, 4}).mode(kBilinear)),
               interpolate(x, {.size = {3, 4}, .mode = InterpolateMode::kBilinear}));
  Tensor grid = ramp({2, 3, 3, 2}, -1.2, 1.2);
  expect_equal(F::grid_sample(x, grid, F::GridSampleFuncOptions().mode(kNearest).padding_mode(kBorder)),
               grid_sample(x, grid, GridSampleMode::kNearest, GridSamplePaddingMode::kBorder));
  Tensor columns = F::unfold(x, F::UnfoldFuncOptions({2, 2}).stride(2));
  expect_equal(F::fold(columns, F::FoldFuncOptions({6, 6}, {2, 2}).stride(2)), x);
  expect_equal(F::relu(x), relu(x));
}

TEST(Functional, LossesTakeWeightsAndReductions) {
  Tensor x = sin(ramp({4, 3}, -2, 9)), y = tensor({0, 2, 1, 1}), weight = tensor({0.5, 1.0, 2.0});
  expect_equal(F::cross_entropy(x, y, F::CrossEntropyFuncOptions().weight(weight).reduction(kSum)),
               cross_entropy(x, y, weight, Reduction::kSum));
  expect_equal(F::mse_loss(x, x * 2), mse_loss(x, x * 2));
  nn::CrossEntropyLoss loss(nn::CrossEntropyLossOptions().weight(weight).ignore_index(1));
  expect_equal(loss(x, y), cross_entropy(x, y, weight, Reduction::kMean, 1));
  // Weights are state, and converted with it.
  ASSERT_EQ(loss->state_dict().size(), 1u);
  loss->to(kFloat64);
  expect_values(loss(x.to(kFloat64), y), cross_entropy(x, y, weight, Reduction::kMean, 1).to_vector<double>(), 1e-6);
  expect_equal(nn::NLLLoss()(x.log_softmax(1), y), cross_entropy(x, y));
  expect_equal(nn::BCELoss()(sigmoid(x), ones({4, 3})), binary_cross_entropy(sigmoid(x), ones({4, 3})));
  expect_equal(nn::KLDivLoss(nn::KLDivLossOptions().reduction(kBatchMean))(x, ones({4, 3})),
               kl_div(x, ones({4, 3}), Reduction::kBatchMean));
  expect_equal(nn::MultiMarginLoss()(x, y), multi_margin_loss(x, y));
  EXPECT_NE(error_of([&] {
              nn::MultiMarginLoss()(x, tensor({0, 3, 1, 1}));
            }).find("multi_margin_loss: a target"),
            std::string::npos);
}

TEST(Functional, WhatIsRandomKeepsItsMeanAndVariance) {
  Tensor x = randn({200, 100});
  Tensor y = nn::AlphaDropout(0.3)(x);
  EXPECT_NEAR(y.mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(y.std().item<double>(), 1, 0.03);
  Tensor channels = nn::Dropout2d(0.5)(ones({20, 50, 3, 2}));
  expect_equal(channels.amax({2, 3}), channels.amin({2, 3}));
  EXPECT_NEAR(channels.mean().item<double>(), 1, 0.1);
  expect_equal(nn::FeatureAlphaDropout(1)(x), x * 0);
  Tensor slopes = rrelu(-ones({100, 100}), 0.25, 0.75, true);
  EXPECT_NEAR(slopes.mean().item<double>(), -0.5, 0.02);
  EXPECT_GE(slopes.amin().item<double>(), -0.75);
  Tensor logits = tensor({{0.0, std::log(3.0)}}).expand({4000, 2}).contiguous().requires_grad_();
  Tensor drawn = gumbel_softmax(logits, 0.5, true);
  EXPECT_NEAR(drawn.select(1, 1).mean().item<double>(), 0.75, 0.04);
  expect_values(drawn.sum({1}).amax(), {1}, 1e-6);
  drawn.select(1, 1).sum().backward();
  EXPECT_GT(logits.grad().abs().sum().item<double>(), 0);
}

TEST(Functional, EmbeddingBagLeavesPaddingOut) {
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(4, 2).mode(kSum).padding_idx(-1));
  expect_values(bag->weight[3], {0, 0});
  Tensor y = bag(tensor({0, 3, 1, 3}), tensor({0, 2, 4}));
  expect_equal(y[0], bag->weight[0]);
  expect_equal(y[1], bag->weight[1]);
  expect_values(y[2], {0, 0});
  EXPECT_NE(error_of([&] { bag(tensor({0, 1})); }).find("1-d ones need them"), std::string::npos);
  EXPECT_NE(error_of([&] { bag(tensor({0, 1}), tensor({1})); }).find("the first of the offsets"), std::string::npos);
}

TEST(Functional, GridSampleReadsNothingOutside) {
  Tensor x = full({1, 1, 2, 2}, std::numeric_limits<double>::infinity(), TensorOptions(kFloat32));
  Tensor away = full({1, 1, 1, 2}, 5.0, TensorOptions(kFloat32));
  expect_values(grid_sample(x, away), {0});
  Tensor unknown = full({1, 1, 1, 2}, std::nan(""), TensorOptions(kFloat32)), image = ramp({1, 1, 2, 2}, 1, 4);
  expect_values(grid_sample(image, unknown, GridSampleMode::kBilinear, GridSamplePaddingMode::kBorder), {1});
  auto f = compile([](const Tensor& a, const Tensor& g) { return grid_sample(a, g); }, {.fullgraph = true});
  for (int64_t size : {3, 4, 5}) {
    Tensor a = sin(ramp({2, 3, size, size + 1}, 0, 9)), g = ramp({2, size, 3, 2}, -1.1, 1.2);
    EXPECT_TRUE(f(a, g).allclose(grid_sample(a, g), 1e-5, 1e-6)) << size;
  }
}

TEST(Functional, TransformerNamesAreThoseOfPyTorch) {
  nn::Transformer net(nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(8));
  std::vector<std::string> names;
  for (auto& [name, tensor] : net->named_parameters()) names.push_back(name);
  ASSERT_EQ(names.size(), 34u);
  EXPECT_EQ(names[0], "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names[12], "encoder.norm.weight");
  EXPECT_EQ(names[18], "decoder.layers.0.multihead_attn.in_proj_weight");
  EXPECT_EQ(names[33], "decoder.norm.bias");
  Tensor mask = nn::TransformerImpl::generate_square_subsequent_mask(2);
  EXPECT_EQ(mask.to_vector<double>(), (std::vector<double>{0, -std::numeric_limits<double>::infinity(), 0, 0}));
  net->eval();
  Tensor src = sin(ramp({3, 1, 4}, 0, 5)), tgt = cos(ramp({2, 1, 4}, 0, 5));
  Tensor causal = net(src, tgt, Tensor(), mask);
  // What comes later changes nothing before it.
  Tensor changed = cat({tgt.slice(0, 0, 1), tgt.slice(0, 1) * 3});
  EXPECT_TRUE(net(src, changed, Tensor(), mask)[0].allclose(causal[0]));
  nn::TransformerEncoderLayer layer(4, 2);
  nn::TransformerEncoder stack(layer, 2);
  expect_equal(stack->layers[1]->linear1->weight, layer->linear1->weight);
}

TEST(Functional, ParametersByNumberAndName) {
  nn::ParameterList list(ones({2}), zeros({3}));
  list->append(ones({1}));
  EXPECT_EQ(list->named_parameters()[2].first, "2");
  EXPECT_TRUE(list[1].requires_grad());
  nn::ParameterDict dict;
  dict->insert("scale", ones({2}));
  EXPECT_EQ(dict->named_parameters()[0].first, "scale");
  expect_values(dict["scale"], {1, 1});
  EXPECT_THROW(dict["shift"], Error);
  EXPECT_EQ(nn::Sequential(nn::ReLU(), nn::Tanh())->modules(false).size(), 2u);
}

}  // namespace
}  // namespace sinter
