// Layers against values recorded from PyTorch with the parameters of fill_parameters().
#include "tests/nn/common.h"

namespace sinter {
namespace {

TEST(Layers, LinearAndItsInitialisation) {
  nn::Linear fc(100, 50);
  EXPECT_LE(fc->weight.abs().amax().item<double>(), 0.1);
  EXPECT_GT(fc->weight.abs().amax().item<double>(), 0.095);
  EXPECT_NEAR(fc->weight.std().item<double>(), 0.1 / std::sqrt(3.0), 0.003);
  Tensor x = randn({2, 3, 100});
  expect_values(fc(x), (matmul(x, fc->weight.t()) + fc->bias).to_vector<double>(), 1e-5);
}

TEST(Layers, Bilinear) {
  nn::Bilinear layer(2, 3, 4);
  Tensor a = randn({5, 2}), b = randn({5, 3});
  Tensor expected = ((a.view({5, 1, 2, 1}) * layer->weight) * b.view({5, 1, 1, 3})).sum({2, 3}) + layer->bias;
  expect_values(layer(a, b), expected.to_vector<double>(), 1e-5);
}

TEST(Layers, EmbeddingLeavesPaddingAlone) {
  nn::Embedding table(nn::EmbeddingOptions(4, 3).padding_idx(-1));
  EXPECT_EQ(*table->options.padding_idx(), 3);
  Tensor y = table(tensor({{0, 3}, {3, 2}}));
  EXPECT_EQ(to_string(y.sizes()), "[2, 2, 3]");
  expect_values(y[1][0], {0, 0, 0});
  y.sum().backward();
  expect_values(table->weight.grad(), {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0});
  EXPECT_THROW(nn::Embedding(nn::EmbeddingOptions(4, 3).padding_idx(4)), Error);
}

TEST(Layers, BatchNormTrainsAndEvaluates) {
  nn::BatchNorm1d norm(3);
  fill_parameters(*norm);
  Tensor x = ramp({4, 3}, -2, 3);
  expect_values(norm(x), {0.169109, -0.149908, 0.111655, -0.273628, 0.242558, -0.180663, -0.716365, 0.635024, -0.472981,
                          -1.159102, 1.02749, -0.765298});
  expect_values(norm->running_mean, {0.004545, 0.05, 0.095455});
  expect_values(norm->running_var, {1.209917, 1.209917, 1.209917});
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  norm->eval();
  expect_values(norm(x), {0.407069, -0.197656, 0.02567, -0.206581, 0.346316, -0.379493, -0.820231, 0.890288, -0.784656,
                          -1.433881, 1.434261, -1.189819});
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_NE(error_of([&] { norm(ones({1, 3, 2, 2})); }).find("2 or 3 dimensions, got [1, 3, 2, 2]"), std::string::npos);
}

TEST(Layers, BatchNormWithoutMomentumAverages) {
  nn::BatchNorm1d norm(nn::BatchNorm1dOptions(3).momentum(std::nullopt));
  norm(ramp({4, 3}, -2, 3));
  norm(ramp({4, 3}, 0, 9));
  expect_values(norm->running_mean, {1.863636, 2.5, 3.136364});
  expect_values(norm->running_var, {6.570248, 6.570248, 6.570248}, 5e-6);
}

TEST(Layers, NormsStartAsPlainNormalisation) {
  Tensor x = randn({2, 6, 4, 4});
  auto expect_unit = [](const Tensor& y) {
    EXPECT_NEAR(y.mean().item<double>(), 0, 1e-5);
    EXPECT_NEAR(y.std({}, 0).item<double>(), 1, 1e-3);
  };
  expect_unit(nn::LayerNorm(nn::LayerNormOptions({6, 4, 4}))(x)[0]);
  expect_unit(nn::GroupNorm(2, 6)(x)[1].slice(0, 0, 3));
  expect_unit(nn::BatchNorm2d(6)(x).select(1, 2));
  EXPECT_NEAR(nn::RMSNorm(4, 1e-6)(x)[0][0][0].square().mean().item<double>(), 1, 1e-4);
  EXPECT_EQ(nn::LayerNorm(nn::LayerNormOptions(4).elementwise_affine(false))->parameters().size(), 0u);
  EXPECT_EQ(nn::LayerNorm(nn::LayerNormOptions(4).bias(false))->parameters().size(), 1u);
  EXPECT_THROW(nn::GroupNorm(4, 6), Error);
}

TEST(Layers, ConvolutionOptions) {
  nn::Conv1d conv(nn::Conv1dOptions(2, 4, 3).padding(Padding::kSame).dilation(2).groups(2));
  fill_parameters(*conv);
  expect_values(
      conv(ramp({1, 2, 5}, -1, 1)),
      {-0.095533, -0.191998, 0.206533,  0.008726, -0.180423, -0.329486, -0.120377, -0.142108, 0.063658,  0.214785,
       -0.179467, -0.221799, -0.226157, 0.11117,  0.200008,  -0.562581, -0.743591, -0.975457, -0.858728, -1.068822});
  nn::ConvTranspose2d up(nn::ConvTranspose2dOptions(2, 3, 3).stride(2).padding(1).output_padding(1));
  fill_parameters(*up);
  Tensor y = up(ramp({1, 2, 2, 2}, -1, 1));
  EXPECT_EQ(to_string(y.sizes()), "[1, 3, 4, 4]");
  EXPECT_NEAR(y.sum().item<double>(), -20.116402, 1e-4);
  expect_values(y.index({0, Slice(), 1, 2}), {0.146663, -0.126326, -1.389929});
  EXPECT_EQ(to_string(nn::Conv3d(2, 4, 2)(randn({1, 2, 3, 3, 3})).sizes()), "[1, 4, 2, 2, 2]");
  EXPECT_EQ(to_string(nn::Conv2d(nn::Conv2dOptions(1, 1, {1, 3}).padding({0, 1}))(randn({1, 1, 4, 4})).sizes()),
            "[1, 1, 4, 4]");
  EXPECT_THROW(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).groups(2)), Error);
  EXPECT_THROW(nn::Conv2d(nn::Conv2dOptions(3, 4, {3, 3, 3})), Error);
}

TEST(Layers, Pools) {
  Tensor x = ramp({1, 1, 4, 4}, 0, 15);
  expect_values(nn::MaxPool2d(2)(x), {5, 7, 13, 15});
  expect_values(nn::AvgPool2d(nn::AvgPool2dOptions(2).stride(2))(x), {2.5, 4.5, 10.5, 12.5});
  expect_values(nn::AdaptiveAvgPool2d(1)(x), {7.5});
  expect_equal(adaptive_avg_pool2d(x, 2), adaptive_avg_pool2d(x, {2, 2}));
  expect_equal(std::get<0>(adaptive_max_pool2d(x, 2)), std::get<0>(adaptive_max_pool2d(x, {2, 2})));
  Tensor line = ramp({1, 1, 6}, 0, 5);
  expect_values(nn::MaxPool1d(nn::MaxPool1dOptions(3).stride(2))(line), {2, 4});
  expect_values(nn::AvgPool1d(3)(line), {1, 4});
  expect_values(nn::AdaptiveAvgPool1d(2)(line), {1, 4});
}

TEST(Layers, ShapesAndActivations) {
  Tensor x = ramp({2, 4}, -2, 5);
  expect_equal(nn::Identity()(x), x);
  EXPECT_EQ(to_string(nn::Unflatten(1, Shape{2, -1})(x).sizes()), "[2, 2, 2]");
  EXPECT_EQ(to_string(nn::Flatten(0)(x).sizes()), "[8]");
  expect_equal(nn::ReLU()(x), relu(x));
  expect_equal(nn::GELU("tanh")(x), gelu(x, "tanh"));
  expect_equal(nn::SiLU()(x), silu(x));
  expect_equal(nn::LeakyReLU(0.2)(x), leaky_relu(x, 0.2));
  expect_equal(nn::ELU(0.5)(x), elu(x, 0.5));
  expect_equal(nn::Softplus(2)(x), softplus(x, 2));
  expect_equal(nn::Softmax(-1)(x), softmax(x, -1));
  expect_equal(nn::LogSoftmax(0)(x), log_softmax(x, 0));
  expect_equal(nn::GLU()(x), glu(x));
  expect_equal(nn::ReLU6()(x), relu6(x));
  expect_equal(nn::Hardswish()(x), hardswish(x));
  expect_equal(nn::Mish()(x), mish(x));
  expect_equal(nn::Tanh()(x), tanh(x));
  expect_equal(nn::Sigmoid()(x), sigmoid(x));
}

TEST(Layers, DropoutKeepsTheMean) {
  nn::Dropout layer(0.25);
  Tensor x = ones({100, 100}), y = layer(x);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.03);
  EXPECT_NEAR(y.eq(0).to(kFloat32).mean().item<double>(), 0.25, 0.03);
  layer->eval();
  expect_equal(layer(x), x);
  EXPECT_THROW(nn::Dropout(1.5), Error);
}

TEST(Layers, Losses) {
  Tensor x = tensor({{2.0, 0.0}, {0.0, 1.0}}), y = tensor({0, 0});
  expect_equal(nn::CrossEntropyLoss()(x, y), cross_entropy(x, y));
  expect_values(nn::MSELoss()(x, zeros({2, 2})), {1.25});
  expect_values(nn::L1Loss(Reduction::kSum)(x, zeros({2, 2})), {3});
  Tensor weight = tensor({1.0, 3.0});
  expect_equal(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(weight))(x, tensor({0, 1})),
               cross_entropy(x, tensor({0, 1}), weight));
}

}  // namespace
}  // namespace sinter
