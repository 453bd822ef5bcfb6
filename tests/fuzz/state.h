#pragma once
// What a program keeps from call to call: layers with their parameters and buffers, an optimiser over the parameters, a
// schedule of its rate.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/sinter.h"

namespace sinter::fuzz {

// A layer by the expression that makes it, and what it takes: sizes as Fit codes them (-1: those of the operand), and
// whether they are indices below a number.
struct LayerForm {
  const char* text;
  nn::AnyModule (*make)();
  std::vector<int64_t> sizes;
  int64_t below = 0;
};
const std::vector<LayerForm>& layer_forms();

// An optimiser by its type and options, a schedule by its type and what follows the optimiser.
struct OptimizerForm {
  const char *type, *options;
  std::shared_ptr<optim::Optimizer> (*make)(const TensorList& parameters);
};
const std::vector<OptimizerForm>& optimizer_forms();
struct ScheduleForm {
  const char *type, *options;
  std::shared_ptr<optim::LRScheduler> (*make)(optim::Optimizer& optimizer);
};
const std::vector<ScheduleForm>& schedule_forms();

struct StateSpec {
  std::vector<int> layers;            // of layer_forms()
  int optimizer = -1, schedule = -1;  // -1: none
  // Whether the caller steps after the backward of what the program gave; a program may also do so itself.
  bool steps_around = false, clips = false;
  enum class Before { kSetToNone, kZero, kNothing } before = Before::kSetToNone;  // what a call does to gradients first
};

struct State {
  std::vector<nn::AnyModule> layers;
  TensorList parameters;
  std::shared_ptr<optim::Optimizer> optimizer;
  std::shared_ptr<optim::LRScheduler> schedule;

  void train(bool on) const;
  TensorList buffers() const;
};
// Every element changed by between a fifth and the whole of this part of it, some up and some down.
Tensor disturbed(const Tensor& t, double disturbance);

// The same in every run. The disturbance is a relative change of every parameter. Where the spec has no layer, optimiser
// or schedule there is one that nothing uses.
inline constexpr uint32_t kStateSeed = 77;
State make_state(const StateSpec& spec, double disturbance);

}  // namespace sinter::fuzz
