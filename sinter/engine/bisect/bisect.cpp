#include "sinter/engine/bisect/bisect.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/engine/bisect/print.h"
#include "sinter/engine/bisect/shrink.h"
#include "sinter/engine/bisect/slow.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/referee/check_steps.h"
#include "sinter/graph/rewrite.h"
#include "sinter/graph/run.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/pipeline.h"
#include "sinter/passes/split_kernels.h"
#include "sinter/tensor/tracer.h"

namespace sinter::bisection {

namespace {

using Kind = Verdict::Kind;

std::string how_text(Kind kind) {
  switch (kind) {
    case Kind::kRight: return "right";
    case Kind::kWrong: return "wrong";
    case Kind::kError: return "fails";
    case Kind::kCrashed: return "crashes";
    case Kind::kTimedOut: return "hangs";
  }
  return "";
}

class Search {
 public:
  Search(const WitnessedCall& call, const BisectOptions& options) : options_(options), trial_(trial_of(call)) {
    out_.program = call.program.name;
  }

  Bisection run() {
    say("running " + out_.program);
    want_ = expected(trial_);
    verdict_ = judge(trial_, want_);
    if (verdict_.kind == Kind::kRight) {
      // Wrong values that no result shows, or that the margin of a long program hides.
      find_wrong_step();
      return std::move(out_);
    }
    out_.how = how_text(verdict_.kind);
    out_.evidence = verdict_.text;
    if (find_pass()) return std::move(out_);
    bool found = verdict_.kind == Kind::kWrong ? find_wrong_step() : find_failing_node();
    if (!found) blame_plan();
    return std::move(out_);
  }

 private:
  void say(const std::string& text) const {
    if (options_.on_progress) options_.on_progress(text);
  }

  // --- passes
  // The pass whose graph gives other values, or that did not come to an end.
  bool find_pass() {
    if (verdict_.kind != Kind::kWrong) {
      // Passes are noted when they are done, then the plan.
      auto& notes = verdict_.notes;
      if (std::find(notes.begin(), notes.end(), "plan") != notes.end()) return false;
      std::string after = notes.empty() ? "" : notes.back().substr(std::string("pass ").size());
      blame_pass(pass_after(after));
      shrink_with([&](const Trial& trial) {
        Verdict verdict = judge(trial);
        auto& told = verdict.notes;
        return verdict.kind == verdict_.kind && std::find(told.begin(), told.end(), "plan") == told.end();
      }, trial_);
      return true;
    }
    say("looking at each pass");
    for (auto& stage : stages_of(trial_)) {
      auto mismatch = difference(stage.text, trial_, want_);
      if (!mismatch) continue;
      out_.evidence = mismatch->text();
      blame_pass(stage.pass);
      shrink_with([&](const Trial& trial) { return changes_values(trial, stage.pass); }, trial_);
      return true;
    }
    return false;
  }

  static std::string pass_after(const std::string& name) {
    auto passes = all_passes();
    for (size_t i = 0; i + 1 < passes.size(); ++i)
      if (passes[i].name == name) return std::string(passes[i + 1].name);
    return std::string(passes.front().name);
  }

  void blame_pass(const std::string& pass) {
    out_.fault = Bisection::Fault::kPass;
    out_.culprit = pass;
  }

  static bool changes_values(const Trial& trial, const std::string& pass) {
    auto want = expected(trial);
    for (auto& stage : stages_of(trial))
      if (auto mismatch = difference(stage.text, trial, want)) return stage.pass == pass;
    return false;
  }

  // --- kernels
  // The call step by step beside the referee. It has come to its end before.
  bool find_wrong_step() {
    say("looking at each kernel");
    NoGradGuard no_history;
    TracerScope none(nullptr);
    Progress::Silence silence;
    referee::CheckSteps steps(out_.program, true);
    {
      auto executable = compile_trial(trial_);
      ObserverScope scope(&steps);
      bisection::run(*executable, trial_);
    }
    if (steps.wrong().empty()) return false;
    auto& wrong = steps.wrong().front();
    out_.how = "wrong";
    out_.evidence = wrong.mismatch.text();
    blame_kernel(wrong.name, wrong.ops, wrong.where);
    verdict_.kind = Kind::kWrong;
    narrow_kernel(*wrong.graph, wrong.operands, wrong.by);
    return true;
  }

  // Each node of the planned graph by itself, on operands that eager ops have made.
  bool find_failing_node() {
    say("looking at each kernel");
    NoGradGuard no_history;
    TracerScope none(nullptr);
    Trial whole = with_numbers(trial_);
    Graph graph = planned_graph(whole);
    std::vector<TensorArg> inputs;
    for (auto& input : whole.inputs) inputs.push_back(input.value);
    struct Part {
      const Node* node;
      std::vector<TensorArg> operands;
    };
    std::vector<Part> parts;
    run_graph(graph, inputs, {}, [&](const Node& node, std::span<const TensorArg> operands, const Attrs&, auto) {
      if (node.op->kind != OpKind::kView) parts.push_back({&node, {operands.begin(), operands.end()}});
    });
    // The layers of a network have the same kernels: one of each will do.
    std::set<std::string> judged;
    for (auto& part : parts) {
      auto types = eager::operand_types(part.operands);
      std::string like = format("{} {}", part.node->op->name, part.node->attrs.text());
      for (auto& type : types) like += " " + to_string(type);
      if (!judged.insert(like).second) continue;
      Graph one = referee::graph_of(*part.node->op, types, part.node->attrs, part.node->where);
      Trial trial = part_of(one, part.operands);
      if (judge(trial).kind != verdict_.kind) continue;
      blame_kernel(name_of(*part.node), ops_of(*part.node), part.node->where);
      narrow_kernel(one, part.operands, "");
      return true;
    }
    return false;
  }

  static std::string ops_of(const Node& node) {
    if (node.op != &fused_op()) return std::string(node.op->name);
    std::string out;
    for (auto* inner : ops_in(*node.attrs.as<FusedAttrs>().body))
      out += (out.empty() ? "" : ", ") + std::string(inner->op->name);
    return out;
  }
  static std::string name_of(const Node& node) {
    std::string out = ops_of(node);
    for (size_t at; (at = out.find(", ")) != std::string::npos;) out.replace(at, 2, "_");
    return out;
  }

  void blame_kernel(const std::string& name, const std::string& ops, const std::string& where) {
    out_.fault = Bisection::Fault::kKernel;
    out_.culprit = name;
    out_.ops = ops;
    out_.where = where;
  }

  static Trial part_of(const Graph& graph, const std::vector<TensorArg>& operands) {
    Trial trial{std::make_shared<const Graph>(without_kernels(graph)), {}};
    for (auto& operand : operands) trial.inputs.push_back({operand});
    return trial;
  }

  // The kernel by itself where it fails so, else in the whole program.
  void narrow_kernel(const Graph& graph, const std::vector<TensorArg>& operands, const std::string& by) {
    auto fails = [&](const Trial& trial) { return judge(trial).kind == verdict_.kind; };
    Trial part = part_of(graph, operands);
    if (fails(part))
      shrink_with(fails, part);
    else if (judge(trial_, want_).kind == verdict_.kind)
      shrink_with(fails, trial_);
    else
      write_down(part);
    find_stage(by);
  }

  void shrink_with(const std::function<bool(const Trial&)>& fails, const Trial& from) {
    Trial start = with_numbers(from);
    bool fixed = from.symbols.empty() || fails(start);
    ShrinkOptions shrinking{.seconds = options_.seconds, .on_progress = {}};
    shrinking.on_progress = [&](const Trial& trial) { say(format("shrinking: {} ops left", op_count(*trial.graph))); };
    small_ = shrink(fixed ? std::move(start) : from, fails, shrinking);
    write_down(*small_);
  }

  void write_down(const Trial& trial) {
    small_ = trial;
    out_.ops_left = op_count(*trial.graph);
    std::string about = headline();
    out_.graph = graph_file(trial, about);
    out_.source = program_text(trial, about);
  }

  // --- who of those that make a kernel is at fault
  void find_stage(const std::string& by) {
    if (!small_ || small_->on_gpu()) return;
    say("asking the compilers");
    auto want = expected(*small_);
    auto right = [&](const Variant& variant) { return judge(*small_, want, variant).kind == Kind::kRight; };
    if (!by.empty() && by != "loops" && !right({.unvectorised = true}) && !right({.gxx = true}))
      out_.stage = "template";
    else if (right({.gxx = true}))
      out_.stage = "compiler";
    else if (right({.unvectorised = true}))
      out_.stage = "schedule";
    else
      out_.stage = "lowering";
    write_down(*small_);
  }

  void blame_plan() {
    out_.fault = Bisection::Fault::kPlan;
    out_.culprit = "plan";
    shrink_with([&](const Trial& trial) { return judge(trial).kind == verdict_.kind; }, trial_);
  }

  std::string headline() const {
    std::string text = out_.text();
    return text.substr(0, text.find("\n  what is left"));
  }

  const BisectOptions& options_;
  const Trial trial_;
  referee::Whole want_;
  Verdict verdict_;
  std::optional<Trial> small_;
  Bisection out_;
};

}  // namespace

Bisection bisect(const std::vector<WitnessedCall>& calls, const BisectOptions& options) {
  for (auto& call : calls) {
    Bisection found = options.slower_than_eager ? find_slow(call, options) : Search(call, options).run();
    if (found.fault != Bisection::Fault::kNone) return found;
  }
  Bisection nothing;
  nothing.how = options.slower_than_eager ? "fast" : "right";
  return nothing;
}

Bisection bisect(FunctionRef<void()> call, const BisectOptions& options) {
  std::vector<WitnessedCall> calls;
  {
    Witness witness;
    call();
    calls = witness.calls();
  }
  return bisect(calls, options);
}

}  // namespace sinter::bisection

namespace sinter {

namespace {

const char* fault_name(Bisection::Fault fault) {
  switch (fault) {
    case Bisection::Fault::kNone: return "none";
    case Bisection::Fault::kPass: return "pass";
    case Bisection::Fault::kKernel: return "kernel";
    case Bisection::Fault::kPlan: return "plan";
    case Bisection::Fault::kSlow: return "slow";
  }
  return "";
}

const char* stage_text(const std::string& stage) {
  if (stage == "compiler") return ": the compiler is at fault (g++ makes a right kernel of the same text)";
  if (stage == "schedule") return ": its schedule is at fault (one element at a time it is right)";
  if (stage == "lowering") return ": its lowering is at fault (with every compiler, in lanes or not, it is the same)";
  if (stage == "template") return ": the code it runs on is not generated";
  return "";
}

}  // namespace

std::string Bisection::text() const {
  std::string out;
  switch (fault) {
    case Fault::kNone:
      return how == "fast" ? "no compiled program is slower than its ops one by one\n"
                           : "compiled and captured agree: nothing is wrong\n";
    case Fault::kPass:
      out = format("the pass '{}' {}", culprit, how == "wrong" ? "makes another program of the graph" : how);
      break;
    case Fault::kKernel:
      out = format("the kernel '{}' {}{}", culprit, how == "wrong" ? "is wrong" : how, stage_text(stage));
      break;
    case Fault::kPlan:
      out = format("every pass and every kernel by itself is right, but the program {}: its plan is at fault",
                   how == "wrong" ? "is wrong" : how);
      break;
    case Fault::kSlow:
      out = format("the kernel '{}' is slower than its ops one by one", culprit);
      break;
  }
  out += format("\n  in {}", program);
  if (!ops.empty()) out += format("\n  it computes {}", ops);
  if (!where.empty()) out += format("\n  at {}", where);
  if (!evidence.empty()) out += format("\n  {}", evidence);
  if (!graph.empty()) out += format("\n  what is left of the graph, {} ops:\n{}", ops_left, graph);
  return out + "\n";
}

std::string Bisection::json() const {
  return nlohmann::json{{"fault", fault_name(fault)}, {"program", program}, {"culprit", culprit}, {"how", how},
                        {"stage", stage},             {"ops", ops},         {"where", where},     {"evidence", evidence},
                        {"graph", graph},             {"source", source},   {"ops_left", ops_left}}
      .dump();
}

}  // namespace sinter
