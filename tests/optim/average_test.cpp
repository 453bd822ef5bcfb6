#include "sinter/capture/compile.h"
#include "sinter/capture/entry.h"
#include "tests/optim/recorded.h"

namespace sinter {
namespace {

using optim::ExponentialMovingAverage;

struct Averaged {
  RecordedProblem problem{kFloat64};
  optim::SGD sgd{problem.params(), 0.1};
  ExponentialMovingAverage average{problem.params(), 0.9};

  void step() {
    problem.step(sgd);
    average.update();
  }
};

TEST(ExponentialMovingAverage, IsPyTorchs) {
  Averaged one;
  for (int step = 1; step <= kRecordedSteps; ++step) {
    one.step();
    expect_recorded(one.average.averages(), "average", step, 1e-12);
  }
  EXPECT_EQ(one.average.num_averaged(), kRecordedSteps);
}

TEST(ExponentialMovingAverage, IsTheSameInsideACompiledFunction) {
  Averaged one;
  auto step = compile(
      [&](const Tensor& x) {
        one.step();
        return x + 1;
      },
      {.fullgraph = true});
  for (int i = 1; i <= kRecordedSteps; ++i) {
    step(ones({1}));
    expect_recorded(one.average.averages(), "average", i, 1e-12);
  }
  EXPECT_EQ(one.average.num_averaged(), kRecordedSteps);
  EXPECT_EQ(step.function().entries().size(), 1u);
}

TEST(ExponentialMovingAverage, GoesOnFromACheckpoint) {
  Averaged one, other;
  for (int step = 1; step <= 30; ++step) one.step();
  std::string file = ::testing::TempDir() + "sinter_average.safetensors";
  save_safetensors(file, one.average.state_dict());
  other.average.load_state_dict(load_safetensors(file));
  {
    NoGradGuard no_grad;
    for (size_t i = 0; i < 3; ++i) other.problem.params()[i].copy_(one.problem.params()[i]);
  }
  for (int step = 31; step <= kRecordedSteps; ++step) other.step();
  expect_recorded(other.average.averages(), "average", kRecordedSteps, 1e-12);
  EXPECT_THROW(other.average.load_state_dict({}), Error);
}

TEST(ExponentialMovingAverage, TakesThePlaceOfTheParametersAndGivesItBack) {
  nn::Linear layer(2, 1);
  fill_parameters(*layer);
  ExponentialMovingAverage average(layer->parameters(), 0.5);
  Tensor first = layer->weight.detach().clone();
  {
    NoGradGuard no_grad;
    average.update();
    layer->weight.add_(1);
    average.update();  // half way
  }
  Tensor middle = first + 0.5, last = first + 1;
  average.swap();
  expect_equal(layer->weight, middle);
  expect_equal(average.averages()[0], last);
  average.swap();
  expect_equal(layer->weight, last);
  EXPECT_THROW(average.restore(), Error);
  average.store();
  average.copy_to();
  expect_equal(layer->weight, middle);
  average.restore();
  expect_equal(layer->weight, last);
  EXPECT_TRUE(layer->weight.is_leaf() && layer->weight.requires_grad());
  nn::Linear other(2, 1);
  average.copy_to(other->parameters());
  expect_equal(other->weight, middle);
  EXPECT_THROW(average.copy_to({other->weight}), Error);
}

TEST(ExponentialMovingAverage, WhatIsNoFloatIsTakenAsItIs) {
  nn::BatchNorm1d norm(2);
  ExponentialMovingAverage average(norm->buffers(), 0.5);
  for (int i = 0; i < 3; ++i) {
    norm(ramp({4, 2}, 0, 3));
    average.update();
  }
  expect_values(average.averages()[2], {3});
  EXPECT_EQ(average.averages()[2].dtype(), kInt64);
}

TEST(ExponentialMovingAverage, StoresInsideACompiledFunction) {
  Tensor w = ones({3});
  ExponentialMovingAverage average({w}, 0.5);
  auto evaluate = compile([&](const Tensor& x) {
    average.store();
    average.copy_to();
    Tensor y = x * w;
    average.restore();
    return y;
  });
  for (int i = 0; i < 3; ++i) {
    w.fill_(double(i + 5));
    expect_values(evaluate(ones({3})), {1, 1, 1});
    expect_values(w, {i + 5.0, i + 5.0, i + 5.0});
  }
}

}  // namespace
}  // namespace sinter
