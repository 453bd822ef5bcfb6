#include "tests/nn/common.h"

namespace sinter {
namespace {

double std_of(const Tensor& x) { return x.std().item<double>(); }
double largest(const Tensor& x) { return x.abs().amax().item<double>(); }

TEST(Init, Constants) {
  Tensor x = empty({2, 3});
  expect_values(nn::init::constant_(x, 2.5), std::vector<double>(6, 2.5));
  expect_values(nn::init::ones_(x), std::vector<double>(6, 1));
  expect_values(nn::init::zeros_(x), std::vector<double>(6, 0));
  expect_values(nn::init::eye_(x), {1, 0, 0, 0, 1, 0});
}

TEST(Init, WritesLeavesWithoutRecording) {
  Tensor x = empty({4}).requires_grad_();
  nn::init::uniform_(x, 3, 4);
  EXPECT_TRUE(x.is_leaf());
  EXPECT_GE(x.amin().item<double>(), 3);
  EXPECT_LT(x.amax().item<double>(), 4);
}

TEST(Init, FansAndGains) {
  EXPECT_EQ(nn::init::calculate_fan_in_and_fan_out(empty({8, 4, 3, 3})), (std::pair<int64_t, int64_t>{36, 72}));
  EXPECT_THROW(nn::init::calculate_fan_in_and_fan_out(empty({8})), Error);
  using nn::init::Nonlinearity;
  EXPECT_DOUBLE_EQ(nn::init::calculate_gain(Nonlinearity::kReLU), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(nn::init::calculate_gain(Nonlinearity::kTanh), 5.0 / 3);
  EXPECT_DOUBLE_EQ(nn::init::calculate_gain(Nonlinearity::kLeakyReLU, 0.2), std::sqrt(2 / 1.04));
}

TEST(Init, DeviationsFollowTheFans) {
  manual_seed(3);
  Tensor w = empty({200, 100});
  using nn::init::FanMode;
  using nn::init::Nonlinearity;
  EXPECT_NEAR(std_of(nn::init::normal_(w, 1, 2)), 2, 0.05);
  EXPECT_NEAR(std_of(nn::init::xavier_normal_(w, 3)), 3 * std::sqrt(2.0 / 300), 0.005);
  nn::init::xavier_uniform_(w);
  EXPECT_NEAR(std_of(w), std::sqrt(2.0 / 300), 0.002);
  EXPECT_LE(largest(w), std::sqrt(6.0 / 300));
  EXPECT_NEAR(std_of(nn::init::kaiming_normal_(w)), std::sqrt(2.0 / 100), 0.003);
  EXPECT_NEAR(std_of(nn::init::kaiming_normal_(w, 0, FanMode::kFanOut, Nonlinearity::kReLU)), std::sqrt(2.0 / 200),
              0.003);
  nn::init::kaiming_uniform_(w, std::sqrt(5.0));
  EXPECT_LE(largest(w), 0.1);
  EXPECT_GT(largest(w), 0.099);
}

TEST(Init, TruncatedNormal) {
  manual_seed(4);
  Tensor w = empty({100, 100});
  nn::init::trunc_normal_(w, 0, 1, -1, 2);
  EXPECT_GE(w.amin().item<double>(), -1);
  EXPECT_LE(w.amax().item<double>(), 2);
  // Mean (phi(-1) - phi(2)) / (Phi(2) - Phi(-1)) and its deviation.
  EXPECT_NEAR(w.mean().item<double>(), 0.229637, 0.02);
  EXPECT_NEAR(std_of(w), 0.720946, 0.02);
  nn::init::trunc_normal_(w, 0, 0.02);
  EXPECT_NEAR(std_of(w), 0.02, 0.001);
  EXPECT_THROW(nn::init::trunc_normal_(w, 0, 1, 50, 51), Error);
}

TEST(Init, Orthogonal) {
  for (Shape shape : {Shape{3, 8}, Shape{8, 3}, Shape{5, 5}, Shape{4, 2, 3}}) {
    Tensor w = nn::init::orthogonal_(empty(shape), 2).flatten(1);
    if (w.size(0) > w.size(1)) w = w.t();
    expect_values(matmul(w, w.t()), (eye(w.size(0)) * 4).to_vector<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace sinter
