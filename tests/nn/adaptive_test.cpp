// The adaptive softmax and fractional max pools: beside PyTorch's values (tools/record_layers.py), and what they
// refuse.
#include "sinter/nn/adaptive.h"
#include "sinter/capture/compile.h"
#include "tests/nn/recorded_layers.h"

namespace sinter {
namespace {

nn::AdaptiveLogSoftmaxWithLoss adaptive() {
  nn::AdaptiveLogSoftmaxWithLoss layer(
      nn::AdaptiveLogSoftmaxWithLossOptions(8, 12, {3, 7}).div_value(2).head_bias(true));
  layer->to(kFloat64);
  NoGradGuard no_grad;
  for (auto& p : layer->parameters()) p.copy_(cos(ramp64(p.sizes(), -3, 4)) * 0.5);
  return layer;
}

Tensor rows_of_features() { return sin(ramp64({5, 8}, -2, 3)).detach().requires_grad_(); }

TEST(AdaptiveLogSoftmax, AgreesWithPyTorch) {
  for (bool compiled : {false, true}) {
    auto layer = adaptive();
    Tensor x = rows_of_features(), target = tensor({0, 5, 11, 2, 8});
    auto f = [&](const Tensor& x, const Tensor& target) -> TensorList {
      auto [output, loss] = layer->forward(x, target);
      return {output, loss, layer->log_prob(x)};
    };
    // Which rows a cluster sees is read: a compiled function becomes several.
    TensorList results = compiled ? compile(f)(x, target) : f(x, target);
    expect_differentiated("adaptive_log_softmax", results, {x}, layer.get());
  }
}

TEST(AdaptiveLogSoftmax, KnowsAllClasses) {
  auto layer = adaptive();
  Tensor x = rows_of_features(), all = layer->log_prob(x);
  EXPECT_TRUE(allclose(exp(all).sum({1}), ones({5}, kFloat64), 1e-12, 1e-12));
  expect_equal(layer->predict(x), argmax(all, 1));
  for (int64_t target : {0, 4, 11}) {
    auto [output, loss] = layer->forward(x[1], tensor(target));
    EXPECT_EQ(output.dim(), 0);
    EXPECT_NEAR(output.item<double>(), all[1][target].item<double>(), 1e-12);
    EXPECT_NEAR(loss.item<double>(), -output.item<double>(), 1e-12);
  }
  EXPECT_EQ(layer->named_parameters().keys(),
            (std::vector<std::string>{"head.weight", "head.bias", "tail.0.0.weight", "tail.0.1.weight",
                                      "tail.1.0.weight", "tail.1.1.weight"}));
  EXPECT_EQ(layer->named_parameters()["tail.1.0.weight"].sizes().numbers(), (IntList{2, 8}));
  // A copy has layers of its own.
  auto copy = std::dynamic_pointer_cast<nn::AdaptiveLogSoftmaxWithLossImpl>(layer->clone());
  {
    NoGradGuard no_grad;
    layer->head->weight.zero_();
  }
  EXPECT_TRUE(allclose(copy->log_prob(x), all));
}

TEST(AdaptiveLogSoftmax, RefusesWhatDoesNotFit) {
  auto layer = adaptive();
  Tensor x = rows_of_features();
  EXPECT_NE(error_of([&] {
              layer->forward(x, tensor({0, 1, 2, 3, 12}));
            }).find("not among the 12 classes"),
            std::string::npos);
  EXPECT_NE(error_of([&] { layer->forward(x, tensor({0, 1})); }).find("expected rows [n, 8]"), std::string::npos);
  EXPECT_NE(error_of([] {
              nn::AdaptiveLogSoftmaxWithLoss(8, 12, std::vector<int64_t>{3, 3});
            }).find("cutoff 3"),
            std::string::npos);
  EXPECT_NE(error_of([] { nn::AdaptiveLogSoftmaxWithLoss(8, 12, std::vector<int64_t>{12}); }).find("cutoff 12"),
            std::string::npos);
}

// --- fractional max pools

TEST(FractionalMaxPool, AgreesWithPyTorch) {
  Tensor samples2 = (sin(ramp64({2, 3, 2}, 0, 9)) + 1) * 0.49, samples3 = (sin(ramp64({1, 2, 3}, 0, 9)) + 1) * 0.49;
  for (bool compiled : {false, true}) {
    auto run = [&](const char* name, const auto& layer, const Shape& sizes) {
      Tensor x = sin(ramp64(sizes, -20, 30)).detach().requires_grad_();
      auto f = [&](const Tensor& x) { return layer->forward(x); };
      expect_differentiated(name, {compiled ? compile(f, {.fullgraph = true})(x) : f(x)}, {x}, layer.get());
      auto [y, indices] = layer->forward_with_indices(x);
      expect_layer(std::string(name) + "/indices", indices.to(kFloat64));
    };
    run("fractional_max_pool2d",
        nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions({2, 3}).output_size({4, 3})._random_samples(samples2)),
        {2, 3, 9, 8});
    run("fractional_max_pool2d_ratio",
        nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_ratio({0.5, 0.7})._random_samples(samples2)),
        {2, 3, 9, 8});
    run("fractional_max_pool3d",
        nn::FractionalMaxPool3d(nn::FractionalMaxPool3dOptions(2).output_size(3)._random_samples(samples3)),
        {1, 2, 6, 7, 5});
  }
}

TEST(FractionalMaxPool, DrawsItsWindows) {
  namespace F = nn::functional;
  manual_seed(3);
  Tensor x = arange(2 * 3 * 20 * 20).to(kFloat32).view({2, 3, 20, 20});
  auto options = F::FractionalMaxPool2dFuncOptions(2).output_ratio({0.6});
  auto [first, indices] = F::fractional_max_pool2d_with_indices(x, options);
  EXPECT_EQ(first.sizes().numbers(), (IntList{2, 3, 12, 12}));
  expect_equal(gather(x.flatten(-2), -1, indices.flatten(-2)).view(first.sizes()), first);
  // The last window touches the end, so that the greatest element is always seen.
  EXPECT_EQ(first.amax().item<double>(), x.amax().item<double>());
  Tensor second = F::fractional_max_pool2d(x, options);
  EXPECT_FALSE(equal(second, first));
  EXPECT_EQ(F::fractional_max_pool2d(x[0], options).sizes().numbers(), (IntList{3, 12, 12}));
  // NaN is the greatest.
  Tensor holes = x.clone();
  {
    NoGradGuard no_grad;
    holes[0][0][0][0] = NAN;
  }
  EXPECT_TRUE(F::fractional_max_pool2d(holes, options)[0][0][0][0].isnan().item<bool>());
}

TEST(FractionalMaxPool, RefusesWhatDoesNotFit) {
  Tensor x = ones({1, 1, 4, 4});
  EXPECT_NE(
      error_of([] { nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2)); }).find("either an output_size or"),
      std::string::npos);
  EXPECT_NE(error_of([] {
              nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_ratio({1.5}));
            }).find("between 0 and 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              fractional_max_pool2d(x, 2, 4, rand({1, 1, 2}));
            }).find("do not fit a dimension of 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              fractional_max_pool2d(x, 2, 2, rand({1, 2, 2}));
            }).find("expected random samples [1, 1, 2]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              fractional_max_pool2d(x, 2, 2, rand({1, 1, 2}, kFloat64));
            }).find("random samples of"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
