// The rates of every schedule over a hundred steps against PyTorch's (tools/record_training.py): as they are, taken up again
// from a checkpoint, and inside a compiled function.
#include "sinter/capture/compile.h"
#include "sinter/capture/entry.h"
#include "tests/optim/recorded.h"

namespace sinter {
namespace {

using namespace optim;
using SchedulePtr = std::shared_ptr<LRScheduler>;

struct ScheduleCase {
  const char* name;
  std::function<SchedulePtr(Optimizer&)> make;
};
void PrintTo(const ScheduleCase& c, std::ostream* out) { *out << c.name; }

template <class S, class... Args>
ScheduleCase of(const char* name, const Args&... args) {
  return {name, [=](Optimizer& o) -> SchedulePtr { return std::make_shared<S>(o, args...); }};
}

const std::vector<ScheduleCase>& cases() {
  using Factors = std::vector<LambdaLR::Factor>;
  auto falling = [](int64_t n) { return 1 / double(n + 1); };
  static const std::vector<ScheduleCase> all = {
      of<StepLR>("step", 7, 0.5),
      of<MultiStepLR>("multi_step", std::vector<int64_t>{60, 20, 20, 3}, 0.3),
      of<ConstantLR>("constant", 0.25, 8),
      of<LinearLR>("linear", 0.1, 0.9, 30),
      of<LinearLR>("linear_default"),
      of<ExponentialLR>("exponential", 0.97),
      of<PolynomialLR>("polynomial", 40, 2.0),
      of<CosineAnnealingLR>("cosine", 25, 0.01),
      of<CosineAnnealingWarmRestarts>("warm_restarts", 10),
      of<CosineAnnealingWarmRestarts>("warm_restarts_growing", 5, 2, 0.01),
      of<LambdaLR>("lambda", falling),
      of<LambdaLR>("lambdas", Factors{falling, [](int64_t n) { return std::pow(0.9, double(n)); }}),
      of<OneCycleLR>("one_cycle", OneCycleLROptions(0.8, kRecordedSteps + 1)),
      of<OneCycleLR>("one_cycle_linear", OneCycleLROptions({0.8, 0.4}, 110)
                                             .pct_start(0.2)
                                             .anneal_strategy(AnnealStrategy::kLinear)
                                             .base_momentum(0.7)
                                             .max_momentum(0.99)
                                             .div_factor(10)
                                             .final_div_factor(100)),
      of<OneCycleLR>("one_cycle_three_phases",
                     OneCycleLROptions(0.8, kRecordedSteps + 1).three_phase(true).cycle_momentum(false)),
      {"sequential",
       [](Optimizer& o) -> SchedulePtr {
         auto warm_up = std::make_shared<LinearLR>(o, 0.1, 1.0, 10);
         auto cosine = std::make_shared<CosineAnnealingLR>(o, 50);
         auto rest = std::make_shared<ExponentialLR>(o, 0.9);
         return std::make_shared<SequentialLR>(o, std::vector<SchedulePtr>{warm_up, cosine, rest},
                                               std::vector<int64_t>{10, 60});
       }},
      {"warm_up_lambda",
       [](Optimizer& o) -> SchedulePtr {
         auto low = std::make_shared<ConstantLR>(o, 0.1, 100);
         auto falls = std::make_shared<LambdaLR>(o, [](int64_t n) { return std::pow(0.95, double(n)); });
         return std::make_shared<SequentialLR>(o, std::vector<SchedulePtr>{low, falls}, std::vector<int64_t>{5});
       }},
  };
  return all;
}

// What the rates were recorded with.
struct TwoGroups {
  Tensor one = zeros({1}).requires_grad_(), other = zeros({1}).requires_grad_();
  SGD sgd{{{{one}, SGDOptions(0.5).momentum(0.9)}, {{other}, SGDOptions(0.2).momentum(0.9)}}};

  void expect_rates(const Tensor& rates, int step) const {
    for (int64_t g = 0; g < 2; ++g)
      EXPECT_NEAR(sgd.lr(size_t(g)), rates[step][g].item<double>(), 1e-12) << "group " << g << ", step " << step;
  }
};

class Schedules : public ::testing::TestWithParam<ScheduleCase> {};

TEST_P(Schedules, RatesArePyTorchs) {
  std::string name = GetParam().name;
  Tensor rates = recorded("schedule/" + name);
  TwoGroups groups;
  auto schedule = GetParam().make(groups.sgd);
  for (int step = 0; step <= kRecordedSteps; ++step) {
    groups.expect_rates(rates, step);
    if (name.starts_with("one_cycle")) {
      Tensor momenta = recorded("schedule/" + name + "/momentum");
      EXPECT_NEAR(*groups.sgd.momentum(1), momenta[step][1].item<double>(), 1e-12) << step;
    }
    if (step < kRecordedSteps) schedule->step();
  }
}

TEST_P(Schedules, GoOnFromACheckpoint) {
  Tensor rates = recorded(std::string("schedule/") + GetParam().name);
  TwoGroups before, after;
  auto first = GetParam().make(before.sgd);
  for (int step = 0; step < 37; ++step) first->step();
  // One that is made when the rates are others already.
  after.sgd.set_lr(0.0625);
  auto second = GetParam().make(after.sgd);
  second->load_state_dict(first->state_dict());
  for (int step = 37; step <= kRecordedSteps; ++step) {
    after.expect_rates(rates, step);
    if (step < kRecordedSteps) second->step();
  }
  EXPECT_THROW(second->load_state_dict({}), Error);
}

TEST_P(Schedules, StepInsideACompiledFunction) {
  Tensor rates = recorded(std::string("schedule/") + GetParam().name);
  TwoGroups groups;
  auto schedule = GetParam().make(groups.sgd);
  auto step = compile([&](const Tensor& x) {
    schedule->step();
    return x * 2;
  });
  for (int i = 1; i <= 12; ++i) {
    step(ones({4}));
    groups.expect_rates(rates, i);
  }
  EXPECT_EQ(step.function().entries().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Schedules, ::testing::ValuesIn(cases()),
                         [](auto& info) { return std::string(info.param.name); });

// --- ReduceLROnPlateau

double metric(int step) { return 1 / (1 + double(std::min(step, 30))) + 0.05 * std::sin(1.7 * step); }

std::vector<std::pair<const char*, ReduceLROnPlateauOptions>> plateaus() {
  using Options = ReduceLROnPlateauOptions;
  return {
      {"plateau", Options().factor(0.5).patience(3)},
      {"plateau_abs", Options()
                          .factor(0.3)
                          .patience(2)
                          .threshold(0.01)
                          .threshold_mode(ThresholdMode::kAbs)
                          .cooldown(4)
                          .min_lr({0.01, 0.05})},
      {"plateau_max", Options().mode(PlateauMode::kMax).factor(0.8).patience(0).threshold(0.02).eps(0.03)},
      {"plateau_max_abs",
       Options().mode(PlateauMode::kMax).factor(0.5).patience(5).threshold(0.02).threshold_mode(ThresholdMode::kAbs)}};
}

TEST(ReduceLROnPlateau, RatesArePyTorchsAlsoFromACheckpoint) {
  for (auto& [name, options] : plateaus()) {
    SCOPED_TRACE(name);
    Tensor rates = recorded(std::string("schedule/") + name);
    TwoGroups before, after;
    ReduceLROnPlateau first(before.sgd, options), second(after.sgd, options);
    for (int step = 0; step < 50; ++step) {
      first.step(metric(step));
      before.expect_rates(rates, step);
    }
    second.load_state_dict(first.state_dict());
    for (int step = 50; step < kRecordedSteps; ++step) {
      second.step(metric(step));
      after.expect_rates(rates, step);
    }
    EXPECT_EQ(second.last_epoch(), kRecordedSteps);
  }
}

TEST(ReduceLROnPlateau, StepsInsideACompiledFunction) {
  TwoGroups groups;
  auto [name, options] = plateaus()[0];
  Tensor rates = recorded(std::string("schedule/") + name);
  ReduceLROnPlateau schedule(groups.sgd, options);
  auto step = compile([&](const Tensor& loss) {
    schedule.step(loss.item<double>());
    return loss * 2;
  });
  for (int i = 0; i < 20; ++i) {
    step(tensor(metric(i), kFloat64));
    groups.expect_rates(rates, i);
  }
}

// --- momentum

TEST(OneCycleLR, MovesTheFirstOfTheBetas) {
  Tensor w = ones({2}).requires_grad_();
  Adam adam({w}, 0.1);
  OneCycleLR schedule(adam, {0.1, 10});
  EXPECT_EQ(*adam.momentum(), 0.95);
  schedule.step();
  schedule.step();
  EXPECT_NEAR(*adam.momentum(), 0.85, 1e-12);
  EXPECT_EQ(adam.param_groups()[0].options().betas().second, 0.999);
  for (int i = 0; i < 8; ++i) schedule.step();
  EXPECT_NE(error_of([&] { schedule.step(); }).find("step 11 of 10"), std::string::npos);
  EXPECT_EQ(schedule.last_epoch(), 10);
}

TEST(OneCycleLR, NeedsAMomentumToMove) {
  Tensor w = ones({2}).requires_grad_();
  Adagrad adagrad({w});
  EXPECT_FALSE(adagrad.momentum());
  EXPECT_THROW(adagrad.set_momentum(0, 0.5), Error);
  EXPECT_NE(error_of([&] { OneCycleLR(adagrad, {0.1, 10}); }).find("cycle_momentum(false)"), std::string::npos);
  OneCycleLR schedule(adagrad, OneCycleLROptions(0.1, 10).cycle_momentum(false));
  EXPECT_NEAR(adagrad.lr(), 0.004, 1e-12);
}

TEST(OneCycleLR, AMomentumThatMovesIsSeenByACompiledStep) {
  Tensor w = ones({4}).requires_grad_(), v = ones({4}).requires_grad_();
  SGD one({w}, SGDOptions(0.1).momentum(0.9)), other({v}, SGDOptions(0.1).momentum(0.9));
  OneCycleLR of_one(one, {0.1, 12}), of_other(other, {0.1, 12});
  auto train = [](const Tensor& p, SGD& sgd, LRScheduler& schedule) {
    sgd.zero_grad();
    (p * p).sum().backward();
    sgd.step();
    schedule.step();
  };
  auto step = compile([&](const Tensor& x) {
    train(w, one, of_one);
    return x + 1;
  });
  for (int i = 0; i < 12; ++i) {
    step(ones({1}));
    train(v, other, of_other);
    EXPECT_TRUE(w.allclose(v)) << i;
  }
  // The first call has no momentum to begin with.
  EXPECT_LE(step.function().entries().size(), 2u);
}

// Of the momentum a program keeps whether there is any, which decides what a step computes.
TEST(OneCycleLR, AMomentumThatBeginsIsAnotherProgram) {
  Tensor w = ones({4}).requires_grad_(), v = ones({4}).requires_grad_();
  SGD one({w}, SGDOptions(0.1)), other({v}, SGDOptions(0.1));
  auto train = [](const Tensor& p, SGD& sgd) {
    sgd.zero_grad();
    (p * p).sum().backward();
    sgd.step();
  };
  auto step = compile([&](const Tensor& x) {
    train(w, one);
    return x + 1;
  });
  for (int i = 0; i < 8; ++i) {
    if (i == 3 || i == 6) {
      one.set_momentum(0, i == 3 ? 0.9 : 0);
      other.set_momentum(0, i == 3 ? 0.9 : 0);
    }
    step(ones({1}));
    train(v, other);
    EXPECT_TRUE(w.allclose(v)) << i;
  }
}

TEST(OneCycleLR, AMomentumThatIsReadInsideIsGuarded) {
  Tensor w = ones({4}).requires_grad_();
  Adam adam({w}, AdamOptions(0.1));
  auto scaled = compile([&](const Tensor& x) { return x * *adam.momentum(); });
  expect_values(scaled(ones({1})), {0.9});
  adam.set_momentum(0, 0.5);
  expect_values(scaled(ones({1})), {0.5});
}

TEST(SequentialLR, MistakesAreNamed) {
  TwoGroups groups, others;
  auto step = std::make_shared<StepLR>(groups.sgd, 2), foreign = std::make_shared<StepLR>(others.sgd, 2);
  EXPECT_THROW(SequentialLR(groups.sgd, {step, step}, {}), Error);
  EXPECT_THROW(SequentialLR(groups.sgd, {step, foreign}, {3}), Error);
  EXPECT_THROW(SequentialLR(groups.sgd, {step, step, step}, {7, 3}), Error);
}

}  // namespace
}  // namespace sinter
