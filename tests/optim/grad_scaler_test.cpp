#include <gtest/gtest.h>

#include <limits>

#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

TEST(GradScaler, StepsAsWithoutIt) {
  Tensor plain = tensor({1.0, -2.0}).requires_grad_(), scaled = tensor({1.0, -2.0}).requires_grad_();
  optim::SGD a({plain}, 0.1), b({scaled}, 0.1);
  optim::GradScaler scaler(optim::GradScalerOptions().init_scale(1024));
  for (int i = 0; i < 3; ++i) {
    a.zero_grad();
    b.zero_grad();
    (plain * plain).sum().backward();
    a.step();
    scaler.scale((scaled * scaled).sum()).backward();
    EXPECT_TRUE(scaler.step(b));
    scaler.update();
  }
  EXPECT_TRUE(allclose(plain, scaled));
}

TEST(GradScaler, LeavesOutStepsThatAreNotFinite) {
  Tensor w = tensor({1.0}).requires_grad_();
  optim::SGD sgd({w}, 0.1);
  optim::GradScaler scaler(optim::GradScalerOptions().init_scale(8).growth_interval(2));
  auto step = [&](double factor) {
    sgd.zero_grad();
    scaler.scale(w.sum() * factor).backward();
    bool taken = scaler.step(sgd);
    scaler.update();
    return taken;
  };
  EXPECT_FALSE(step(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(w.item<double>(), 1.0);
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_TRUE(step(1));
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_TRUE(step(1));
  EXPECT_EQ(scaler.get_scale(), 8);  // grown
  optim::GradScaler resumed;
  resumed.load_state_dict(scaler.state_dict());
  EXPECT_EQ(resumed.get_scale(), 8);
}

TEST(GradScaler, InACompiledStep) {
  nn::Linear net(8, 3), other(8, 3);
  {
    NoGradGuard no_grad;
    for (size_t i = 0; i < 2; ++i) other->parameters()[i].copy_(net->parameters()[i]);
  }
  Tensor x = randn({16, 8}), y = arange(16) % 3;
  auto make = [&](nn::Linear& layer, optim::SGD& sgd, optim::GradScaler& scaler) {
    return [&](const Tensor& x, const Tensor& y) {
      sgd.zero_grad();
      Tensor loss;
      {
        AutocastGuard autocast(kCPU, kFloat16);
        loss = cross_entropy(layer(x), y);
      }
      scaler.scale(loss).backward();
      scaler.step(sgd);
      scaler.update();
      return loss.detach();
    };
  };
  optim::SGD a(net->parameters(), 0.1), b(other->parameters(), 0.1);
  auto options = optim::GradScalerOptions().init_scale(256).growth_interval(3);
  optim::GradScaler of_a(options), of_b(options);
  auto eager = make(net, a, of_a);
  auto compiled = compile(make(other, b, of_b));
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(eager(x, y).item<double>(), compiled(x, y).item<double>(), 2e-3) << i;
  EXPECT_EQ(of_a.get_scale(), of_b.get_scale());
}

TEST(GradScaler, Errors) {
  Tensor w = tensor({1.0}).requires_grad_();
  optim::SGD sgd({w}, 0.1);
  optim::GradScaler scaler;
  EXPECT_NE(error_of([&] { scaler.update(); }).find("comes after step()"), std::string::npos);
  EXPECT_NE(error_of([&] { scaler.step(sgd); }).find("has a gradient"), std::string::npos);
  scaler.scale(w.sum()).backward();
  scaler.unscale_(sgd);
  EXPECT_NE(error_of([&] { scaler.unscale_(sgd); }).find("since the last update()"), std::string::npos);
  EXPECT_NE(error_of([] { optim::GradScaler wrong(optim::GradScalerOptions().growth_factor(0.5)); }).find("growth_factor"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter
