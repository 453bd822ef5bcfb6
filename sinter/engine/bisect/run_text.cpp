// Graphs given as text, run.
#include "sinter/autograd/autograd.h"
#include "sinter/engine/bisect/bisect.h"
#include "sinter/engine/bisect/slow.h"
#include "sinter/engine/bisect/trial.h"
#include "sinter/tensor/tracer.h"

namespace sinter::bisection {

namespace {

Trial trial_of(std::string_view text, const std::vector<TensorArg>& inputs) {
  Trial trial{std::make_shared<const Graph>(Graph::parse(text)), {}};
  for (auto& input : inputs) trial.inputs.push_back({input});
  return trial;
}

}  // namespace

TensorList run_text(std::string_view text, const std::vector<TensorArg>& inputs, const std::string& backend) {
  NoGradGuard no_history;
  TracerScope none(nullptr);
  Trial trial = trial_of(text, inputs);
  if (backend == "sinter") return run(*compile_trial(trial), trial);
  Program program{.graph = Graph::parse(text), .symbols = {}, .writes = {}, .name = "text"};
  auto executable = compile_program(std::move(program), backend);
  return run(*executable, trial);
}

Speed time_text(std::string_view text, const std::vector<TensorArg>& inputs) {
  NoGradGuard no_history;
  TracerScope none(nullptr);
  Trial trial = trial_of(text, inputs);
  auto compiled = compile_trial(trial);
  auto eager = compile_program({.graph = Graph::parse(text), .symbols = {}, .writes = {}, .name = "text"}, "eager");
  return take_turns([&] { run(*compiled, trial); }, [&] { run(*eager, trial); });
}

}  // namespace sinter::bisection
