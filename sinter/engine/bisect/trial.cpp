#include "sinter/engine/bisect/trial.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/executable/function.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/executable/specialize.h"
#include "sinter/engine/executable/step_observer.h"
#include "sinter/engine/referee/spoil.h"
#include "sinter/engine/report.h"
#include "sinter/graph/rewrite.h"
#include "sinter/graph/subgraph.h"
#include "sinter/loops/schedule.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/tensor/tracer.h"

namespace sinter::bisection {

namespace {

using Notes = std::function<void(std::string_view pass, const std::string& text)>;

Program program_of(const Trial& trial) {
  return {.graph = drop_dead_nodes(*trial.graph), .symbols = trial.symbols, .writes = trial.writes, .name = "bisect"};
}

// Nothing of it goes into the store, and nothing is taken from there but kernels.
void make_ready(Program& program, const Notes& on_stage) {
  TracerScope none(nullptr);
  PipelineOptions pipeline = planning_pipeline(target_of(program.graph), program.symbols);
  pipeline.on_stage = [&](std::string_view pass, const std::string& text) {
    if (on_stage) on_stage(pass, text);
  };
  make_ready_graph(program, pipeline, runtime::CodeStore(""));
}

// Says which step is about to run: the last one said is the one that crashed.
class NoteSteps final : public StepObserver {
 public:
  explicit NoteSteps(const Note& note) : note_(note) {}
  void before(const ObservedStep& step) override {
    referee::spoil_results(step);
    note_(format("step {}", step.plan ? report_of(*step.plan, *step.step).name : std::string(step.op.name)));
  }
  void after(const ObservedStep&) override {}

 private:
  const Note& note_;
};

std::string mismatch_of(const TensorList& got, const Trial& trial, const referee::Whole& want) {
  for (size_t r = 0; r < got.size(); ++r) {
    bool number = trial.graph->outputs()[r].type().weak;
    if (auto mismatch = referee::compare(int(r), got[r], want.results[r], want.allowed[r], number)) return mismatch->text();
  }
  return {};
}

}  // namespace

std::vector<referee::Known> Trial::known_inputs() const {
  std::vector<referee::Known> out;
  for (auto& input : inputs) {
    if (input.value.is_scalar())
      out.emplace_back(to_array(input.value.scalar()));
    else
      out.emplace_back(input.value.tensor());
  }
  return out;
}

std::map<std::string, int64_t> Trial::known_sizes() const {
  std::map<std::string, int64_t> out;
  for (size_t s = 0; s < sizes.size(); ++s) out[symbols[s]] = sizes[s];
  return out;
}

Trial trial_of(const WitnessedCall& call) {
  Trial trial{std::make_shared<const Graph>(Graph::parse(call.program.graph)), {}, call.program.symbols, call.sizes,
              call.program.writes};
  for (auto& input : call.inputs) trial.inputs.push_back({input});
  return trial;
}

Trial with_numbers(const Trial& trial) {
  if (trial.symbols.empty()) return trial;
  auto sizes = trial.known_sizes();
  SubGraph graph(drop_dead_nodes(*trial.graph));
  auto number = [&](const std::string& name) {
    auto it = sizes.find(name);
    return it == sizes.end() ? Dim::symbol(name) : Dim(it->second);
  };
  map_field([&](const Dim& d) { return d.substitute(number); }, graph);
  return {std::shared_ptr<const Graph>(std::make_shared<SubGraph>(graph), &*graph), trial.inputs, {}, {}, trial.writes};
}

bool Trial::on_gpu() const { return engine_of(device_of(*graph)).target().gpu; }

referee::Whole expected(const Trial& trial) {
  NoGradGuard no_history;
  TracerScope none(nullptr);
  return referee::evaluate_whole(*trial.graph, trial.known_inputs(), trial.known_sizes());
}

std::shared_ptr<Executable> compile_trial(const Trial& trial, const std::function<void(std::string_view pass)>& on_pass) {
  Program program = program_of(trial);
  make_ready(program, [&](std::string_view pass, const std::string&) {
    if (on_pass) on_pass(pass);
  });
  return compile_program(std::move(program));
}

TensorList run(Executable& executable, const Trial& trial) {
  std::vector<TensorArg> inputs;
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    bool changed = std::find(trial.writes.begin(), trial.writes.end(), int(i)) != trial.writes.end();
    auto& value = trial.inputs[i].value;
    inputs.push_back(changed ? TensorArg(value.tensor().clone()) : value);
  }
  TensorList outputs(trial.graph->outputs().size());
  executable.run(inputs, trial.sizes, outputs);
  return outputs;
}

Verdict judge(const Trial& trial, const referee::Whole& want, const Variant& variant, double seconds) {
  Work work = [&](const Note& note) {
    Progress::Silence silence;
    std::optional<runtime::ToolchainScope> toolchain;
    if (variant.gxx) toolchain.emplace(runtime::CpuCompiler::kGxx);
    std::optional<NoLanes> no_lanes;
    if (variant.unvectorised) no_lanes.emplace();
    std::shared_ptr<Executable> executable;
    if (variant.op_by_op) {
      executable = make_eager(program_of(trial));
    } else {
      executable = compile_trial(trial, [&](std::string_view pass) { note(format("pass {}", pass)); });
    }
    NoteSteps steps(note);
    ObserverScope scope(&steps);
    note("plan");
    return mismatch_of(run(*executable, trial), trial, want);
  };
  Outcome outcome = trial.on_gpu() ? run_unguarded(work) : run_guarded(work, seconds);
  Verdict verdict{.text = std::move(outcome.text), .notes = std::move(outcome.notes)};
  switch (outcome.kind) {
    case Outcome::Kind::kDone:
      verdict.kind = verdict.text.empty() ? Verdict::Kind::kRight : Verdict::Kind::kWrong;
      break;
    case Outcome::Kind::kError:
      verdict.kind = Verdict::Kind::kError;
      break;
    case Outcome::Kind::kCrashed:
      verdict.kind = Verdict::Kind::kCrashed;
      break;
    case Outcome::Kind::kTimedOut:
      verdict.kind = Verdict::Kind::kTimedOut;
      break;
  }
  return verdict;
}

std::vector<Stage> stages_of(const Trial& trial) {
  std::vector<Stage> stages;
  Program program = program_of(trial);
  make_ready(program, [&](std::string_view pass, const std::string& text) { stages.push_back({std::string(pass), text}); });
  return stages;
}

Graph planned_graph(const Trial& trial) {
  Program program = program_of(trial);
  make_ready(program, {});
  return std::move(program.graph);
}

std::optional<referee::Mismatch> difference(const std::string& stage, const Trial& trial, const referee::Whole& want) {
  NoGradGuard no_history;
  TracerScope none(nullptr);
  Graph graph = Graph::parse(stage);
  auto results = referee::evaluate_graph(graph, trial.known_inputs(), trial.known_sizes());
  for (size_t r = 0; r < results.size(); ++r) {
    bool number = graph.outputs()[r].type().weak;
    Tensor got = to_tensor(results[r], number && results[r].floating() ? kFloat32 : results[r].dtype);
    if (auto mismatch = referee::compare(int(r), got, want.results[r], want.allowed[r], number)) return mismatch;
  }
  return {};
}

}  // namespace sinter::bisection
