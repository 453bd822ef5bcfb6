// Three steps of each optimiser on a small function, against values recorded from PyTorch.
#include "sinter/capture/compile.h"
#include "tests/nn/common.h"

namespace sinter {
namespace {

struct Problem {
  Tensor p = tensor({1.0, -2.0, 3.0}).requires_grad_();
  Tensor q = tensor({{0.5, -0.25}}).requires_grad_();

  TensorList params() const { return {p, q}; }
  void gradients(int step) const { (pow(p, 2).sum() * (step + 1) + (p.sum() * q).sum() + pow(q, 3).sum()).backward(); }
  void run(optim::Optimizer& optimizer, int from = 0, int to = 3) const {
    for (int i = from; i < to; ++i) {
      optimizer.zero_grad();
      gradients(i);
      optimizer.step();
    }
  }
};

template <class O, class Options>
void expect_steps(const Options& options, const std::vector<double>& p, const std::vector<double>& q) {
  Problem problem;
  O optimizer(problem.params(), options);
  problem.run(optimizer);
  expect_values(problem.p, p, 1e-6);
  expect_values(problem.q, q, 1e-6);
}

TEST(Optim, SGD) {
  using optim::SGD, optim::SGDOptions;
  expect_steps<SGD>(SGDOptions(0.1), {0.258735538, -0.317264408, 0.642735541}, {-0.0424854122, -0.927640438});
  expect_steps<SGD>(SGDOptions(0.05).momentum(0.9).dampening(0.1).weight_decay(0.01),
                    {0.238925174, -0.49408704, 0.727599919}, {-0.115918279, -0.825958729});
  expect_steps<SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true), {0.0538472049, 0.12285912, 0.00783916004},
                    {-0.285135508, -1.16178644});
  expect_steps<SGD>(SGDOptions(0.01).maximize(true), {1.13387966, -2.23946428, 3.38277578}, {0.58699131, -0.183430776});
}

TEST(Optim, Adam) {
  using optim::Adam, optim::AdamOptions;
  expect_steps<Adam>(AdamOptions(0.1), {0.70293504, -1.707479, 2.70599794}, {0.202267408, -0.550334513});
  expect_steps<Adam>(AdamOptions(0.1).weight_decay(0.1).betas({0.8, 0.95}).eps(1e-6),
                     {0.700421095, -1.70376301, 2.70265508}, {0.203179568, -0.550564826});
  expect_steps<Adam>(AdamOptions(0.1).maximize(true), {1.29016757, -2.29074168, 3.29152584},
                     {0.800426364, 0.049999781});
}

TEST(Optim, AdamW) {
  using optim::AdamW, optim::AdamWOptions;
  expect_steps<AdamW>(AdamWOptions(0.1).weight_decay(0.1), {0.675963223, -1.6507448, 2.61958003},
                      {0.190702707, -0.539850593});
  expect_steps<AdamW>(AdamWOptions(0.1).amsgrad(true), {0.700211585, -1.70175266, 2.69727612},
                      {0.201097712, -0.549279034});
}

TEST(Optim, GroupsHaveTheirOwnOptions) {
  Problem problem;
  optim::SGD optimizer({{{problem.p}, 0.1}, {{problem.q}, 0.0}});
  problem.run(optimizer, 0, 1);
  expect_values(problem.q, {0.5, -0.25});
  expect_values(problem.p, {0.775, -1.625, 2.375});
  EXPECT_EQ(optimizer.num_groups(), 2u);
  optimizer.set_lr(0.5);
  EXPECT_EQ(optimizer.lr(1), 0.5);
}

TEST(Optim, WithoutGradientNothingHappens) {
  Problem problem;
  optim::AdamW optimizer(problem.params());
  optimizer.step();
  expect_values(problem.p, {1, -2, 3});
  EXPECT_TRUE(optimizer.state_dict().empty());
}

TEST(Optim, StepsLeaveLeavesAndConvertedParametersInPlace) {
  nn::Linear fc(2, 1);
  optim::SGD optimizer(fc->parameters(), 0.1);
  fc->to(kFloat64);
  auto before = fc->bias.item<double>();
  fc(ones({1, 2}, kFloat64)).sum().backward();
  optimizer.step();
  EXPECT_TRUE(fc->bias.is_leaf());
  EXPECT_DOUBLE_EQ(fc->bias.item<double>(), before - 0.1);
}

TEST(Optim, StateGoesOnFromACheckpoint) {
  Problem whole, first, second;
  optim::AdamW through(whole.params(), 0.1), a(first.params(), 0.1);
  whole.run(through);
  first.run(a, 0, 2);
  NoGradGuard no_grad;
  second.p.copy_(first.p);
  second.q.copy_(first.q);
  optim::AdamW b(second.params(), 0.1);
  b.load_state_dict(a.state_dict());
  EnableGradGuard grad;
  second.run(b, 2, 3);
  expect_equal(second.p, whole.p);
  expect_equal(second.q, whole.q);
  auto state = a.state_dict();
  EXPECT_EQ(state.size(), 6u);
  state[1].second = ones({7});
  EXPECT_THROW(b.load_state_dict(state), Error);
  EXPECT_THROW(b.load_state_dict({{"9.exp_avg", ones({1})}}), Error);
  EXPECT_THROW(b.load_state_dict({{"0.momentum_buffer", ones({3})}}), Error);
}

// A channels-last weight has its moments beside it, those of a checkpoint too.
TEST(Optim, StateLiesAsItsParameter) {
  Tensor weight = randn({4, 3, 2, 2}).contiguous(MemoryFormat::kChannelsLast).requires_grad_();
  optim::Adam adam(TensorList{weight}, 0.1), other(TensorList{weight}, 0.1);
  auto step = compile([&] {
    adam.zero_grad();
    weight.square().sum().backward();
    adam.step();
  });
  step();
  NamedTensors rows;
  for (auto& [name, tensor] : adam.state_dict()) rows.emplace_back(name, tensor.contiguous());
  other.load_state_dict(rows);
  for (auto* optimizer : {&adam, &other})
    for (auto& [name, tensor] : optimizer->state_dict())
      if (name != "0.step") EXPECT_EQ(tensor.strides(), weight.strides()) << name;
}

TEST(Optim, MistakesAreNamed) {
  Problem problem;
  EXPECT_NE(error_of([&] { optim::SGD({problem.p, problem.p}, 0.1); }).find("given twice"), std::string::npos);
  EXPECT_NE(error_of([&] { optim::SGD({problem.p * 2}, 0.1); }).find("recorded ops"), std::string::npos);
  EXPECT_NE(error_of([&] { optim::SGD({ones({2}, dtype(kComplexFloat).requires_grad(true))}, 0.1); }).find("view_as_complex(leaf)"),
            std::string::npos);
  EXPECT_NE(error_of([&] { optim::SGD({problem.p}, optim::SGDOptions(0.1).nesterov(true)); }).find("nesterov"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              optim::Adam({problem.p}, optim::AdamOptions(0.1).betas({1, 0.9}));
            }).find("betas"),
            std::string::npos);
}

TEST(Optimizer, PlainSgdStepsInsideACompiledFunction) {
  manual_seed(3);
  Tensor w = randn({4}).requires_grad_(), v = w.detach().clone().requires_grad_();
  auto step_with = [](const Tensor& weight, optim::SGD& sgd) {
    return [&weight, &sgd](const Tensor& x) {
      sgd.zero_grad();
      Tensor loss = (weight * x).square().sum();
      loss.backward();
      sgd.step();
      return loss.detach();
    };
  };
  optim::SGD compiled_sgd({w}, 0.1), eager_sgd({v}, 0.1);
  auto compiled = compile(step_with(w, compiled_sgd));
  auto eager = step_with(v, eager_sgd);
  for (int i = 0; i < 6; ++i) {
    // A rate that changes is read in every call.
    compiled_sgd.set_lr(0.1 / (1 + i / 2));
    eager_sgd.set_lr(0.1 / (1 + i / 2));
    Tensor x = randn({4});
    EXPECT_TRUE(compiled(x).allclose(eager(x), 1e-5, 1e-6)) << i;
    EXPECT_TRUE(w.detach().allclose(v.detach(), 1e-5, 1e-6)) << i;
  }
}

TEST(LRScheduler, Schedules) {
  Problem problem;
  optim::SGD optimizer(problem.params(), 0.5);
  auto rates = [&](optim::LRScheduler&& scheduler, int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) {
      scheduler.step();
      all.push_back(optimizer.lr());
    }
    optimizer.set_lr(0.5);
    return all;
  };
  auto expect_rates = [](const std::vector<double>& actual, const std::vector<double>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-9);
  };
  expect_rates(rates(optim::StepLR(optimizer, 2), 4), {0.5, 0.05, 0.05, 0.005});
  expect_rates(rates(optim::CosineAnnealingLR(optimizer, 4, 0.1), 6),
               {0.441421356, 0.3, 0.158578644, 0.1, 0.158578644, 0.3});
  expect_rates(rates(optim::LambdaLR(optimizer, [](int64_t step) { return 1.0 / double(step + 1); }), 2),
               {0.25, 0.5 / 3});
  optim::StepLR scheduler(optimizer, 1);
  scheduler.set_last_epoch(2);
  EXPECT_NEAR(optimizer.lr(), 0.005, 1e-12);
  EXPECT_EQ(scheduler.last_epoch(), 2);
}

}  // namespace
}  // namespace sinter
