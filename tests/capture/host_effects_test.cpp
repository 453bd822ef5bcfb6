// State of the host that library functions change inside a compiled function: it changes in every call, as in eager.
#include "common.h"

namespace sinter {
namespace {

// Twice the same thing: one is compiled, one runs as it is.
template <class Step>
void expect_as_eager(Step compiled, Step eager, int calls = 5) {
  for (int i = 0; i < calls; ++i) {
    Tensor x = wave({4}, double(i));
    manual_seed(uint64_t(100 + i));
    Tensor got = compiled(x);
    auto after = default_generator().position();
    manual_seed(uint64_t(100 + i));
    EXPECT_TRUE(close(got, eager(x))) << "call " << i;
    auto wanted = default_generator().position();
    EXPECT_EQ(after.seed, wanted.seed) << "call " << i;
    EXPECT_EQ(after.offset, wanted.offset) << "call " << i;
  }
}

using Function = std::function<Tensor(const Tensor&)>;

TEST(HostEffects, SeedsAreSetInEveryCall) {
  for (auto& f : std::vector<Function>{[](const Tensor& x) {
                                         manual_seed(7);
                                         return x + rand({4});
                                       },
                                       [](const Tensor& x) {
                                         Tensor before = rand({4});
                                         manual_seed(7);
                                         return x + before * 10 + rand({4});
                                       },
                                       [](const Tensor& x) {
                                         manual_seed(7);
                                         Tensor one = rand({4});
                                         manual_seed(8);
                                         return x + one * 10 + rand({4}) + randn({4});
                                       },
                                       [](const Tensor& x) {
                                         Tensor y = x + rand({4});
                                         manual_seed(9);
                                         return y;  // the stream is left at a new place
                                       },
                                       [](const Tensor& x) {
                                         manual_seed(7);
                                         Tensor y = x + rand({4});
                                         if (y.sum().item() > 2.0) manual_seed(8);
                                         return y + rand({4});
                                       },
                                       [](const Tensor& x) {
                                         auto here = default_generator().position();
                                         Tensor y = x + rand({4});
                                         default_generator().set_position(here);
                                         return y - rand({4});
                                       }})
    expect_as_eager<Function>(compile(f), f);
}

TEST(HostEffects, AFunctionThatSeedsIsOneProgramAndNotCalledAgain) {
  int runs = 0;
  auto f = compile([&](const Tensor& x) {
    ++runs;
    manual_seed(7);
    return x + rand({4});
  });
  Tensor first = f(zeros({4}));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(same(f(zeros({4})), first));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(compiler::explain(f, zeros({4})).break_count(), 0);
}

TEST(HostEffects, TheSystemsSeedIsAnotherInEveryCall) {
  auto f = compile([](const Tensor& x) {
    default_generator().seed();
    return x + rand({4});
  });
  Tensor one = f(zeros({4})), other = f(zeros({4}));
  EXPECT_FALSE(same(one, other));
  EXPECT_TRUE(has(compiler::explain(f, zeros({4})).text(), "Generator::seed()"));
}

TEST(HostEffects, AWarmupChangesNothing) {
  nn::Linear layer(4, 4);
  Tensor w = ones({4}).requires_grad_();
  optim::SGD sgd({w}, 0.5);
  optim::StepLR schedule(sgd, 1, 0.1);
  auto f = compile([&](const Tensor& x) {
    manual_seed(7);
    layer->eval();
    sgd.set_lr(0.25);
    schedule.step();
    return x + rand({4});
  });
  manual_seed(3);
  auto before = default_generator().position();
  warmup(f, std::tuple{zeros({4})});
  EXPECT_EQ(default_generator().position().seed, before.seed);
  EXPECT_TRUE(layer->is_training());
  EXPECT_EQ(sgd.lr(), 0.5);
  EXPECT_EQ(schedule.last_epoch(), 0);
  f(zeros({4}));
  EXPECT_FALSE(layer->is_training());
  EXPECT_EQ(schedule.last_epoch(), 1);
  EXPECT_NEAR(sgd.lr(), 0.05, 1e-12);
}

// --- modules

TEST(HostEffects, TrainAndEvalAreLeftAsInEager) {
  nn::Sequential net(nn::Linear(4, 4), nn::Dropout(0.5));
  auto f = [&](const Tensor& x) {
    net->eval();
    Tensor y = net(x);
    net->train();
    Tensor z = net(x);
    return y + z;
  };
  auto fast = compile(f);
  expect_as_eager<Function>(fast, f);
  EXPECT_TRUE(net->is_training());
  EXPECT_EQ(programs_of(fast), 1);

  auto leaves = compile([&](const Tensor& x) {
    Tensor y = net(x);
    net->eval();
    return y;
  });
  for (int i = 0; i < 3; ++i) {
    net->train();
    leaves(zeros({4}));
    EXPECT_FALSE(net->is_training());
    EXPECT_FALSE(net->children()[1]->is_training());
    Tensor y = leaves(ones({4}));
    EXPECT_TRUE(close(y, net(ones({4}))));
  }
}

TEST(HostEffects, RequiresGradIsSetInEveryCall) {
  nn::Linear layer(4, 4);
  auto f = compile([&](const Tensor& x) {
    Tensor y = layer(x);
    layer->requires_grad_(false);
    return y;
  });
  Tensor x = wave({2, 4});
  for (int i = 0; i < 3; ++i) {
    layer->requires_grad_(true);
    Tensor y = f(x);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_FALSE(layer->weight.requires_grad());
    EXPECT_FALSE(f(x).requires_grad());
  }
  EXPECT_TRUE(has(compiler::explain(f, x).text(), "requires_grad_()"));
  layer->requires_grad_(true);
  auto whole = compile(
      [&](const Tensor& x) {
        layer->requires_grad_(false);
        return layer(x);
      },
      {.fullgraph = true});
  EXPECT_TRUE(has(error_of([&] { whole(x); }), "requires_grad_() has to happen in every call"));
}

TEST(HostEffects, RequiresGradOnAnArgumentIsDoneEagerly) {
  auto f = compile([](const Tensor& x) { return x.requires_grad_() * 2; });
  std::string log = logged("", [&] {
    for (int i = 0; i < 2; ++i) {
      Tensor x = ones({4});
      EXPECT_TRUE(f(x).requires_grad());
      EXPECT_TRUE(x.requires_grad());
    }
  });
  EXPECT_TRUE(has(log, "requires_grad_() on an argument"));
}

TEST(HostEffects, WhatIsRegisteredAtTheFirstCallIsThere) {
  struct LazyImpl : nn::Module {
    Tensor scale;
    Tensor forward(const Tensor& x) {
      if (!scale.defined()) scale = register_buffer("scale", full({4}, 3.0));
      return x * scale;
    }
  };
  auto module = std::make_shared<LazyImpl>();
  auto f = compile(module);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same(f(ones({4})), full({4}, 3.0)));
  ASSERT_EQ(module->buffers().size(), 1u);
  module->buffers()[0].fill_(5);
  EXPECT_TRUE(same(f(ones({4})), full({4}, 5.0)));
}

TEST(HostEffects, AHookRegisteredInsideIsThereInEveryCall) {
  nn::Identity identity;
  auto f = compile(
      [&](const Tensor& x) {
        identity->register_forward_hook([](nn::Module&, const TensorList&, TensorList& out) { out[0] = out[0] * 2; });
        return identity(x);
      },
      {.options = {{"recompile_limit", 2}}});
  logged("", [&] {
    for (double want : {2.0, 4.0, 8.0, 16.0}) EXPECT_TRUE(same(f(ones({4})), full({4}, want)));
  });
}

TEST(HostEffects, AConversionOfAModuleRunsEagerly) {
  nn::Linear layer(4, 4);
  auto f = compile([&](const Tensor& x) {
    layer->to(kFloat64);
    return layer(x.to(kFloat64));
  });
  logged("", [&] {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(f(wave({2, 4})).dtype(), kFloat64);
  });
  EXPECT_EQ(layer->weight.dtype(), kFloat64);
}

// --- modes

TEST(HostEffects, AModeThatIsLeftChanged) {
  auto f = compile([](const Tensor& x) {
    autograd::set_grad_enabled(false);
    return x * 2;
  });
  for (int i = 0; i < 3; ++i) {
    autograd::set_grad_enabled(true);
    f(ones({4}));
    EXPECT_FALSE(autograd::grad_enabled());
    f(ones({4}));
    EXPECT_FALSE(autograd::grad_enabled());
  }
  autograd::set_grad_enabled(true);

  int before = num_threads();
  auto threads = compile([](const Tensor& x) {
    set_num_threads(1);
    return x * 2;
  });
  for (int i = 0; i < 2; ++i) {
    set_num_threads(2);
    threads(ones({4}));
    EXPECT_EQ(num_threads(), 1);
  }
  set_num_threads(before);
}

// --- optimisers

struct Training {
  Tensor w = wave({4}).clone().requires_grad_();
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> schedule;
  bool sets_rate = false;
  Tensor step(const Tensor& x) {
    optimizer->zero_grad();
    Tensor loss = (w * x).square().sum();
    loss.backward();
    optimizer->step();
    if (schedule) schedule->step();
    if (sets_rate) optimizer->set_lr(0.05);
    return loss.detach();
  }
};

template <class Setup>
int programs_of_training(Setup setup, int calls = 6) {
  Training one, other;
  setup(one);
  setup(other);
  auto fast = compile([&](const Tensor& x) { return one.step(x); }, {.fullgraph = true});
  for (int i = 0; i < calls; ++i) {
    Tensor x = wave({4}, double(i));
    EXPECT_TRUE(close(fast(x), other.step(x))) << "call " << i;
    EXPECT_TRUE(close(one.w, other.w)) << "call " << i;
    EXPECT_EQ(one.optimizer->lr(), other.optimizer->lr()) << "call " << i;
    if (one.schedule) {
      EXPECT_EQ(one.schedule->last_epoch(), i + 1);
    }
  }
  auto got = one.optimizer->state_dict(), want = other.optimizer->state_dict();
  EXPECT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size() && i < want.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_TRUE(close(got[i].second, want[i].second)) << got[i].first;
  }
  return programs_of(fast);
}

TEST(HostEffects, EveryOptimiserStepsInEveryCall) {
  auto sgd = [](optim::SGDOptions options) {
    return [=](Training& t) { t.optimizer = std::make_unique<optim::SGD>(TensorList{t.w}, options); };
  };
  EXPECT_EQ(programs_of_training(sgd(0.1)), 1);
  EXPECT_EQ(programs_of_training(sgd(optim::SGDOptions(0.1).momentum(0.9))), 1);
  EXPECT_EQ(programs_of_training(sgd(optim::SGDOptions(0.1).momentum(0.9).dampening(0.5))), 1);
  EXPECT_EQ(programs_of_training(sgd(optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.1))), 1);
  auto each = [&]<class Optimizer, class Options>(std::type_identity<Optimizer>, Options options) {
    return programs_of_training(
        [&](Training& t) { t.optimizer = std::make_unique<Optimizer>(TensorList{t.w}, options); }, 10);
  };
  EXPECT_EQ(each(std::type_identity<optim::Adam>(), optim::AdamOptions(0.1).weight_decay(0.1)), 1);
  EXPECT_EQ(each(std::type_identity<optim::AdamW>(), optim::AdamWOptions(0.1).amsgrad(true)), 1);
  EXPECT_EQ(each(std::type_identity<optim::NAdam>(), optim::NAdamOptions(0.1)), 1);
  EXPECT_EQ(each(std::type_identity<optim::RAdam>(), optim::RAdamOptions(0.1)), 1);
  EXPECT_EQ(each(std::type_identity<optim::RMSprop>(), optim::RMSpropOptions(0.1).momentum(0.5).centered(true)), 1);
  EXPECT_EQ(each(std::type_identity<optim::Adagrad>(), optim::AdagradOptions(0.1).initial_accumulator_value(0.5)), 1);
  EXPECT_EQ(each(std::type_identity<optim::Adadelta>(), optim::AdadeltaOptions()), 1);
  EXPECT_EQ(each(std::type_identity<optim::Adafactor>(), optim::AdafactorOptions(0.1)), 1);
  EXPECT_EQ(each(std::type_identity<optim::Lion>(), optim::LionOptions(0.01)), 1);
}

// A momentum that begins in a later step takes the first gradient whole, too.
TEST(HostEffects, AMomentumThatBeginsLater) {
  Training one, other;
  for (auto* t : {&one, &other})
    t->optimizer = std::make_unique<optim::SGD>(TensorList{t->w}, optim::SGDOptions(0.05).dampening(0.5));
  auto fast = compile([&](const Tensor& x) { return one.step(x); });
  for (int i = 0; i < 8; ++i) {
    if (i == 3) {
      for (auto* t : {&one, &other}) t->optimizer->set_momentum(0, 0.9);
    }
    Tensor before = other.w.detach().clone(), x = wave({4}, double(i));
    fast(x);
    other.step(x);
    EXPECT_TRUE(close(one.w, other.w)) << "call " << i;
    if (i == 3) { EXPECT_TRUE(close(other.w.detach(), before - 0.05 * other.w.grad())); }
  }
}

// One that gives up its gradients does not ask whether there are any: with some that somebody else has left it is the same.
TEST(HostEffects, ForgettingGradientsAsksForNone) {
  Training one;
  one.optimizer = std::make_unique<optim::SGD>(TensorList{one.w}, 0.1);
  auto fast = compile([&](const Tensor& x) { return one.step(x); });
  Tensor x = wave({4});
  for (int i = 0; i < 3; ++i) {
    Tensor before = one.w.detach().clone();
    one.w.set_grad(i == 1 ? full({4}, 100.0) : Tensor());
    fast(x);
    EXPECT_TRUE(close(one.w.grad(), 2 * before * x.square())) << i;
    EXPECT_TRUE(close(one.w.detach(), before - 0.1 * one.w.grad())) << i;
  }
  EXPECT_EQ(programs_of(fast), 1);
}

TEST(HostEffects, SchedulesAndRatesNeedNoNewProgram) {
  auto adam = [](Training& t) {
    t.optimizer = std::make_unique<optim::AdamW>(TensorList{t.w}, optim::AdamWOptions(0.1));
  };
  EXPECT_EQ(programs_of_training([&](Training& t) {
              adam(t);
              t.schedule = std::make_unique<optim::CosineAnnealingLR>(*t.optimizer, 10);
            }),
            1);
  EXPECT_EQ(programs_of_training([&](Training& t) {
              t.optimizer = std::make_unique<optim::SGD>(TensorList{t.w}, 0.1);
              t.schedule =
                  std::make_unique<optim::LambdaLR>(*t.optimizer, [](int64_t n) { return 1.0 / double(n + 1); });
            }),
            1);
  EXPECT_EQ(programs_of_training([&](Training& t) {
              adam(t);
              t.sets_rate = true;
            }),
            1);
}

TEST(HostEffects, ARateSetOutsideAndOptionsAreNoticed) {
  Training one, other;
  auto setup = [](Training& t) { t.optimizer = std::make_unique<optim::SGD>(TensorList{t.w}, 0.1); };
  setup(one);
  setup(other);
  auto fast = compile([&](const Tensor& x) { return one.step(x); });
  int programs = 0;
  for (int i = 0; i < 8; ++i) {
    for (auto* t : {&one, &other}) {
      t->optimizer->set_lr(0.1 / (1 + i));
      if (i == 6) static_cast<optim::SGD&>(*t->optimizer).param_groups()[0].options().weight_decay(0.5);
    }
    if (i == 6) programs = programs_of(fast);
    Tensor x = wave({4}, double(i));
    fast(x);
    other.step(x);
    EXPECT_TRUE(close(one.w, other.w)) << "call " << i;
  }
  EXPECT_EQ(programs, 1);
  EXPECT_EQ(programs_of(fast), 2);
}

TEST(HostEffects, ARateThatHostCodeReadsIsGuarded) {
  Tensor w = ones({4});
  optim::SGD sgd({w}, 0.5);
  optim::StepLR schedule(sgd, 1, 0.5);
  auto f = compile([&](const Tensor& x) {
    Tensor y = x * sgd.lr();
    schedule.step();
    return y;
  });
  for (double want : {0.5, 0.25, 0.125}) EXPECT_TRUE(same(f(ones({4})), full({4}, want)));
  auto g = compile([&](const Tensor& x) {
    sgd.param_groups()[0].options().lr(sgd.lr() + 1);
    return x * 2;
  });
  sgd.set_lr(1);
  for (double want : {2.0, 3.0, 4.0}) {
    g(ones({4}));
    EXPECT_EQ(sgd.lr(), want);
  }
}

TEST(HostEffects, BesideABreakTheFunctionIsCalledEveryTime) {
  Training one, other;
  auto setup = [](Training& t) {
    t.optimizer = std::make_unique<optim::Adam>(TensorList{t.w}, 0.1);
    t.schedule = std::make_unique<optim::StepLR>(*t.optimizer, 2, 0.5);
  };
  setup(one);
  setup(other);
  auto step = [](Training& t, const Tensor& x) {
    Tensor loss = t.step(x);
    if (loss.item() > 1.0) t.schedule->step();
    return loss;
  };
  auto fast = compile([&](const Tensor& x) { return step(one, x); });
  for (int i = 0; i < 6; ++i) {
    Tensor x = wave({4}, double(i)) * (i % 2 ? 1 : 3);
    EXPECT_TRUE(close(fast(x), step(other, x))) << i;
    EXPECT_TRUE(close(one.w, other.w)) << i;
    EXPECT_EQ(one.schedule->last_epoch(), other.schedule->last_epoch());
  }
  EXPECT_TRUE(has(compiler::explain(fast, wave({4})).text(), "called every time, because of a change of host state"));
}

TEST(HostEffects, StateThatIsLoadedIsTheOneThatSteps) {
  Training one;
  one.optimizer = std::make_unique<optim::Adam>(TensorList{one.w}, 0.1);
  auto fast = compile([&](const Tensor& x) { return one.step(x); });
  for (int i = 0; i < 3; ++i) fast(wave({4}));
  auto state = one.optimizer->state_dict();
  for (auto& [name, value] : state) value = value.clone();
  Tensor w = one.w.detach().clone();
  fast(wave({4}));
  Tensor want = one.w.detach().clone();
  one.w.detach().copy_(w);
  one.optimizer->load_state_dict(state);
  fast(wave({4}));
  EXPECT_TRUE(close(one.w, want));
}

TEST(HostEffects, AnOptimiserThatIsGoneIsNotTouched) {
  Tensor w = ones({4}).requires_grad_();
  auto adam = std::make_unique<optim::Adam>(TensorList{w}, 0.1);
  auto f = compile([&](const Tensor& x) {
    if (adam) adam->set_lr(0.5);
    return x * 2;
  });
  f(ones({4}));
  adam.reset();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same(f(ones({4})), full({4}, 2.0)));
}

TEST(HostEffects, RecheckedCallsActOnce) {
  Training one, other;
  for (auto* t : {&one, &other}) t->optimizer = std::make_unique<optim::Adam>(TensorList{t->w}, 0.1);
  auto fast = compile([&](const Tensor& x) { return one.step(x); }, {.options = {{"recheck", 1}}});
  for (int i = 0; i < 5; ++i) {
    fast(wave({4}, double(i)));
    other.step(wave({4}, double(i)));
    EXPECT_TRUE(close(one.w, other.w)) << i;
  }
}

}  // namespace
}  // namespace sinter
