#include "sinter/engine/bisect/slow.h"

#include <algorithm>
#include <chrono>

#include "sinter/autograd/autograd.h"
#include "sinter/engine/bisect/print.h"
#include "sinter/engine/bisect/shrink.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/executable/step_observer.h"
#include "sinter/engine/referee/one_op.h"
#include "sinter/engine/report.h"
#include "sinter/passes/split_kernels.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/tracer.h"

namespace sinter::bisection {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 1;
constexpr int kLeastRuns = 5, kMostRuns = 1000;
// Less than this is noise.
constexpr double kMargin = 1.1;

double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + int64_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// A kernel of several ops, with what it was given.
struct SlowPart {
  KernelReport report;
  Graph graph;
  std::vector<TensorArg> operands;
};

class TakeParts final : public StepObserver {
 public:
  void before(const ObservedStep& step) override {
    if (!step.plan || step.step->kind != Step::Kind::kFused) return;
    std::vector<TensorArg> operands;
    for (auto& arg : step.inputs) operands.push_back(arg.is_scalar() ? arg : TensorArg(arg.tensor().clone()));
    auto types = eager::operand_types(step.inputs);
    parts.push_back({report_of(*step.plan, *step.step), referee::graph_of(step.op, types, step.attrs, step.where), std::move(operands)});
  }
  void after(const ObservedStep&) override {}

  std::vector<SlowPart> parts;
};

// The kernel as it is planned, and its ops as the eager backend runs them.
Speed measure(const SlowPart& part, const Trial& trial) {
  auto kernel = compile_program({.graph = Graph::parse(part.graph.text()), .symbols = {}, .writes = {}, .name = "part", .grouped = true});
  auto ops = compile_program({.graph = Graph::parse(trial.graph->text()), .symbols = {}, .writes = {}, .name = "part"}, "eager");
  return take_turns([&] { run(*kernel, trial); }, [&] { run(*ops, trial); });
}

std::string times_text(const Speed& speed) {
  return format("{} compiled, {} op by op", seconds_text(speed.compiled), seconds_text(speed.eager));
}

}  // namespace

Speed take_turns(const std::function<void()>& compiled, const std::function<void()>& eager) {
  auto time = [](const std::function<void()>& f) {
    auto began = Clock::now();
    f();
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  compiled();
  eager();
  std::vector<double> a, b;
  auto began = Clock::now();
  while (int(a.size()) < kLeastRuns ||
         (int(a.size()) < kMostRuns && std::chrono::duration<double>(Clock::now() - began).count() < kSeconds)) {
    a.push_back(time(compiled));
    b.push_back(time(eager));
  }
  return {median(a), median(b)};
}

Bisection find_slow(const WitnessedCall& call, const BisectOptions& options) {
  NoGradGuard no_history;
  TracerScope none(nullptr);
  auto say = [&](const std::string& text) {
    if (options.on_progress) options.on_progress(text);
  };
  Bisection out;
  out.program = call.program.name;
  Trial trial = with_numbers(trial_of(call));
  bool gpu = trial.on_gpu();
  auto finished = [gpu](Executable& executable, const Trial& on) {
    bisection::run(executable, on);
    if (gpu) runtime::cuda_synchronize(0);
  };
  say("timing " + out.program);
  auto compiled = compile_trial(trial);
  auto eager = compile_program({.graph = Graph::parse(trial.graph->text()), .symbols = trial.symbols, .writes = trial.writes,
                                .name = out.program}, "eager");
  Speed whole = take_turns([&] { finished(*compiled, trial); }, [&] { finished(*eager, trial); });
  if (whole.compiled <= kMargin * whole.eager) return out;
  out.fault = Bisection::Fault::kSlow;
  out.how = "slow";
  out.culprit = "the program as a whole";
  out.evidence = times_text(whole);
  TakeParts taken;
  {
    ObserverScope scope(&taken);
    bisection::run(*compiled, trial);
  }
  double loss = 0;
  for (auto& part : taken.parts) {
    say("timing " + part.report.name);
    Trial ops{std::make_shared<const Graph>(without_kernels(part.graph)), {}};
    for (auto& operand : part.operands) ops.inputs.push_back({operand});
    Speed speed = measure(part, ops);
    if (speed.compiled <= kMargin * speed.eager || speed.compiled - speed.eager <= loss) continue;
    loss = speed.compiled - speed.eager;
    out.culprit = part.report.name;
    out.ops.clear();
    for (auto& op : part.report.ops) out.ops += (out.ops.empty() ? "" : ", ") + op;
    out.where = part.report.where;
    out.evidence = times_text(speed) + "; the whole program " + times_text(whole);
    out.ops_left = op_count(*ops.graph);
    std::string about = format("The kernel '{}': {}", out.culprit, times_text(speed));
    out.graph = graph_file(ops, about);
    out.source = program_text(ops, about, true);
  }
  return out;
}

}  // namespace sinter::bisection
