// A hundred steps of every optimiser against PyTorch's (tools/record_training.py, where each case has its counterpart of the
// same name): as they are, compiled, and taken up again from a checkpoint.
#include "tests/optim/recorded.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/entry.h"
#include "sinter/runtime/cpu/memory.h"

namespace sinter {
namespace {

using namespace optim;
using OptimizerPtr = std::unique_ptr<Optimizer>;

struct OptimizerCase {
  const char* name;
  std::function<OptimizerPtr(const TensorList&)> make;
};
void PrintTo(const OptimizerCase& c, std::ostream* out) { *out << c.name; }

template <class O, class Options>
OptimizerCase of(const char* name, const Options& options) {
  return {name, [=](const TensorList& params) { return std::make_unique<O>(params, options); }};
}

// For matrices alone, in the dtype of the parameters.
OptimizerCase muon(const char* name, const MuonOptions& options) {
  return {name, [=](const TensorList& p) {
            return std::make_unique<Muon>(TensorList{p[0], p[1]}, MuonOptions(options).ns_dtype(p[0].dtype()));
          }};
}

OptimizerPtr two_groups(const TensorList& p) {
  return std::make_unique<RMSprop>(std::vector<ParamGroup<RMSpropOptions>>{
      {{p[0]}, 0.002}, {{p[1], p[2]}, RMSpropOptions(0.001).alpha(0.9).momentum(0.5)}});
}

const std::vector<OptimizerCase>& cases() {
  static const std::vector<OptimizerCase> all = {
      of<SGD>("sgd", SGDOptions(0.1)),
      of<SGD>("sgd_momentum", SGDOptions(0.05).momentum(0.9).dampening(0.1).weight_decay(0.01)),
      of<SGD>("sgd_nesterov", SGDOptions(0.05).momentum(0.9).nesterov(true)),
      of<Adam>("adam", AdamOptions(0.01).weight_decay(0.01)),
      of<Adam>("adam_amsgrad", AdamOptions(0.01).betas({0.8, 0.95}).amsgrad(true)),
      of<AdamW>("adamw", AdamWOptions(0.01).weight_decay(0.1)),
      of<NAdam>("nadam", NAdamOptions(0.01)),
      of<NAdam>("nadam_decoupled",
                NAdamOptions(0.01).weight_decay(0.1).decoupled_weight_decay(true).momentum_decay(0.1)),
      of<NAdam>("nadam_decay", NAdamOptions(0.01).weight_decay(0.1)),
      of<RAdam>("radam", RAdamOptions(0.01)),
      of<RAdam>("radam_decay", RAdamOptions(0.01).betas({0.8, 0.9}).weight_decay(0.1)),
      of<RAdam>("radam_decoupled", RAdamOptions(0.01).weight_decay(0.1).decoupled_weight_decay(true)),
      of<RMSprop>("rmsprop", RMSpropOptions(0.01)),
      of<RMSprop>("rmsprop_centered", RMSpropOptions(0.01).alpha(0.9).eps(1e-4).centered(true).weight_decay(0.01)),
      of<RMSprop>("rmsprop_momentum", RMSpropOptions(0.003).momentum(0.9)),
      of<RMSprop>("rmsprop_all", RMSpropOptions(0.001).momentum(0.5).centered(true).eps(1e-3).maximize(true)),
      of<Adagrad>("adagrad", AdagradOptions(0.1)),
      of<Adagrad>("adagrad_decay",
                  AdagradOptions(0.1).lr_decay(0.01).weight_decay(0.01).initial_accumulator_value(0.1).eps(1e-6)),
      of<Adadelta>("adadelta", AdadeltaOptions()),
      of<Adadelta>("adadelta_decay", AdadeltaOptions(0.5).rho(0.8).eps(1e-4).weight_decay(0.1)),
      of<Adafactor>("adafactor", AdafactorOptions()),
      of<Adafactor>("adafactor_decay",
                    AdafactorOptions(0.5).beta2_decay(-0.6).eps({1e-4, 1e-2}).d(1.5).weight_decay(0.01)),
      of<Lion>("lion", LionOptions(0.003)),
      of<Lion>("lion_decay", LionOptions(0.003).betas({0.8, 0.95}).weight_decay(0.1)),
      {"groups", two_groups},
      muon("muon", MuonOptions(0.002)),
      muon("muon_plain", MuonOptions(0.002).nesterov(false).momentum(0.8).ns_steps(3).weight_decay(0)),
      muon("muon_rms", MuonOptions(0.002).adjust_lr_fn(MuonRate::kMatchRmsAdamw)),
      muon("muon_spectral", MuonOptions(0.002).adjust_lr_fn(MuonRate::kSpectralUnclamped)),
  };
  return all;
}

class Recorded : public ::testing::TestWithParam<OptimizerCase> {
 protected:
  // Of a compiled step. Muon leaves the vector's gradient, which the first call does not find.
  static size_t programs() { return std::string_view(GetParam().name).starts_with("muon") ? 2 : 1; }
};

TEST_P(Recorded, StepsAsPyTorchDoes) {
  RecordedProblem problem(kFloat64);
  auto optimizer = GetParam().make(problem.params());
  for (int step = 1; step <= kRecordedSteps; ++step) {
    problem.step(*optimizer);
    expect_recorded(problem.params(), GetParam().name, step, 1e-9);
  }
}

TEST_P(Recorded, StepsAlikeInsideACompiledFunction) {
  RecordedProblem problem(kFloat64);
  auto optimizer = GetParam().make(problem.params());
  auto step = compile([&] { return problem.step(*optimizer); }, {.fullgraph = true});
  for (int i = 1; i <= kRecordedSteps; ++i) {
    step();
    expect_recorded(problem.params(), GetParam().name, i, 1e-9);
  }
  EXPECT_EQ(step.function().entries().size(), programs());
}

TEST_P(Recorded, AScheduleNeedsNoNewProgram) {
  RecordedProblem one(kFloat32), other(kFloat32);
  auto fast = GetParam().make(one.params()), plain = GetParam().make(other.params());
  StepLR of_fast(*fast, 1, 0.9), of_plain(*plain, 1, 0.9);
  auto step = compile([&] { return one.step(*fast); }, {.fullgraph = true});
  for (int i = 0; i < 12; ++i) {
    step();
    of_fast.step();
    other.step(*plain);
    of_plain.step();
    for (size_t p = 0; p < 3; ++p) EXPECT_TRUE(one.params()[p].allclose(other.params()[p], 1e-4, 1e-5)) << i;
  }
  EXPECT_EQ(step.function().entries().size(), programs());
}

TEST_P(Recorded, AScheduleOfTheMomentumNeedsNoNewProgram) {
  RecordedProblem one(kFloat64), other(kFloat64);
  auto fast = GetParam().make(one.params()), plain = GetParam().make(other.params());
  auto momentum = plain->momentum();
  if (!momentum || *momentum == 0) return;
  OneCycleLR of_fast(*fast, {fast->lr(), 20}), of_plain(*plain, {plain->lr(), 20});
  auto step = compile([&] { return one.step(*fast); }, {.fullgraph = true});
  for (int i = 0; i < 12; ++i) {
    step();
    of_fast.step();
    other.step(*plain);
    of_plain.step();
    for (size_t p = 0; p < 3; ++p) EXPECT_TRUE(one.params()[p].allclose(other.params()[p], 1e-9, 1e-10)) << i;
  }
  EXPECT_EQ(step.function().entries().size(), programs());
}

TEST_P(Recorded, BeginsItsStateAheadOfTheFirstStep) {
  RecordedProblem one(kFloat64), other(kFloat64), third(kFloat64);
  auto early = GetParam().make(one.params()), late = GetParam().make(other.params());
  SGD plain(third.params(), 0.1);
  auto grows = [](const std::function<void()>& f) {
    int64_t before = cpu_memory_stats().allocated;
    f();
    return cpu_memory_stats().allocated - before;
  };
  early->init_state();
  EXPECT_TRUE(early->state_dict().empty()) << "no step is taken";
  EXPECT_EQ(grows([&] { one.step(*early); }), grows([&] { third.step(plain); })) << "gradients alone are new";
  other.step(*late);
  early->init_state();  // leaves what is there
  one.step(*early);
  other.step(*late);
  auto got = early->state_dict(), want = late->state_dict();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    expect_equal(got[i].second, want[i].second);
  }
  for (size_t p = 0; p < 3; ++p) expect_equal(one.params()[p], other.params()[p]);
}

TEST_P(Recorded, GoesOnFromACheckpoint) {
  RecordedProblem first(kFloat64), second(kFloat64);
  auto before = GetParam().make(first.params()), after = GetParam().make(second.params());
  for (int step = 1; step <= 40; ++step) first.step(*before);
  {
    NoGradGuard no_grad;
    for (size_t p = 0; p < 3; ++p) second.params()[p].copy_(first.params()[p]);
    after->load_state_dict(before->state_dict());
  }
  for (int step = 41; step <= kRecordedSteps; ++step) second.step(*after);
  expect_recorded(second.params(), GetParam().name, kRecordedSteps, 1e-9);
}

TEST_P(Recorded, HalfParametersStayHalf) {
  RecordedProblem one(kBFloat16), other(kBFloat16);
  auto fast = GetParam().make(one.params()), plain = GetParam().make(other.params());
  auto step = compile([&] { return one.step(*fast); });
  for (int i = 0; i < 4; ++i) {
    step();
    other.step(*plain);
  }
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_EQ(other.params()[p].dtype(), kBFloat16);
    EXPECT_TRUE(one.params()[p].allclose(other.params()[p], 0.1, 0.1)) << one.params()[p] << other.params()[p];
  }
  for (auto& [name, value] : plain->state_dict())
    EXPECT_EQ(value.dtype(), name.ends_with(".step") ? kInt64 : kBFloat16) << name;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Recorded, ::testing::ValuesIn(cases()),
                         [](auto& info) { return std::string(info.param.name); });

// In bf16 as PyTorch computes it, to what that leaves of a step of 0.5.
TEST(Muon, IterationsInHalfPrecision) {
  Tensor param = zeros({5, 3}).requires_grad_();
  param.set_grad(recorded("muon_bf16/grad"));
  Muon muon({param}, MuonOptions(0.5));
  muon.step();
  expect_values(param, recorded("muon_bf16/param").to_vector<double>(), 0.04);
}

TEST(Muon, TakesMatricesOnly) {
  Tensor w = ones({3}).requires_grad_();
  EXPECT_NE(error_of([&] { Muon({w}); }).find("is no matrix"), std::string::npos);
}

TEST(Adafactor, KeepsRowsAndColumns) {
  RecordedProblem problem(kFloat32);
  Adafactor optimizer(problem.params());
  problem.step(optimizer);
  std::string sizes;
  for (auto& [name, value] : optimizer.state_dict()) {
    EXPECT_NE(name, "0.variance");
    if (name == "0.row_var" || name == "0.col_var") sizes += to_string(value.sizes());
  }
  EXPECT_EQ(sizes, "[6, 1][1, 4]");
  EXPECT_THROW(optimizer.load_state_dict({{"0.row_var", ones({6, 4})}}), Error);
}

TEST(Optim, OptionsOutOfRangeAreErrors) {
  Tensor w = ones({2, 2}).requires_grad_();
  TensorList p{w};
  EXPECT_THROW(RMSprop(p, RMSpropOptions(-1)), Error);
  EXPECT_THROW(Adagrad(p, AdagradOptions().lr_decay(-1)), Error);
  EXPECT_THROW(Adadelta(p, AdadeltaOptions().rho(1.5)), Error);
  EXPECT_THROW(Adafactor(p, AdafactorOptions().d(0.5)), Error);
  EXPECT_THROW(Lion(p, LionOptions().betas({1, 0.9})), Error);
  EXPECT_THROW(Muon(p, MuonOptions().ns_steps(100)), Error);
  EXPECT_THROW(NAdam(p, NAdamOptions().momentum_decay(-1)), Error);
  EXPECT_THROW(RAdam(p, RAdamOptions().eps(-1)), Error);
}

}  // namespace
}  // namespace sinter
