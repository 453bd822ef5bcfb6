#include "sinter/engine/executable/tune.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/base/progress.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/autotune.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/executable/tune_operands.h"
#include "sinter/runtime/cpu/onednn.h"
#include "sinter/runtime/refusal.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// Where launches are queued, one run of a candidate is many: a single one is over before the host has looked at its clock.
constexpr int kLaunches = 24;

// Everything that the time depends on, apart from the machine.
std::string key_of(const Plan& plan, const Step& step) {
  std::string key = step.code->name();
  if (std::string more = step.code->tuning_key(); !more.empty()) key += " " + more;
  auto add = [&](int slot) {
    if (slot < 0) return;
    auto& t = plan.slots[size_t(slot)].geometry.impl();
    key += format(" {}{}", t.dtype, t.sizes);
    if (!t.contiguous) key += format("*{}", t.strides);
  };
  for (auto& o : step.inputs) add(o.slot);
  key += " ->";
  for (int slot : step.results) add(slot);
  return key;
}

// The candidates of one step. A choice that is remembered needs no code but the winner's; else all is compiled in one go.
// What is refused is no choice.
class Choice {
 public:
  Choice(const Plan& plan, const Step& step, double seconds)
      : plan_(plan), step_(step), engine_(engine_of(plan.device)), seconds_(seconds), operands_(plan, step), others_(step.code->other_candidates()),
        refusals_(others_.size()), tuned_(others_.size(), false) {}

  std::shared_ptr<const CompiledStep> make() {
    if (engine_.queues()) step_.code->tune_libraries(operands_.next().arguments, seconds_);
    if (others_.empty()) return step_.code;
    std::vector<Candidate> candidates{{default_name(), [this] { run(*step_.code); }}};
    for (size_t i = 0; i < others_.size(); ++i)
      candidates.push_back({others_[i]->candidate(), [this, i] { run_other(i); }});
    size_t chosen = autotuner().choose(point(), key_of(plan_, step_), candidates, seconds_);
    if (chosen > 0) load(chosen - 1);
    for (auto& refusal : refusals_) {
      if (!refusal) continue;
      if (plan_.strict) throw Error(refusal->message());
      runtime::warn_refused(*refusal, "another candidate for the same step runs");
    }
    return chosen == 0 || refusals_[chosen - 1] ? step_.code : others_[chosen - 1];
  }

 private:
  std::string default_name() const { return step_.code->candidate().empty() ? "sinter" : step_.code->candidate(); }
  std::string point() const {
    std::string kind = step_.code->made_by() == "convolution" ? "convolution" : "product";
    std::string machine = engine_.machine();
    return machine.empty() ? kind : kind + " on " + machine;
  }

  void run(const CompiledStep& candidate) {
    const int launches = engine_.queues() ? kLaunches : 1;
    for (int i = 0; i < launches; ++i) candidate.launch(operands_.next().arguments);
    engine_.synchronize();
  }

  void run_other(size_t i) {
    if (!others_[i]->is_loaded()) load_all();
    if (refusals_[i]) throw *refusals_[i];
    if (!tuned_[i]) others_[i]->tune_libraries(operands_.next().arguments, seconds_);
    tuned_[i] = true;
    run(*others_[i]);
  }

  void load(size_t i) {
    if (refusals_[i]) return;
    try {
      others_[i]->load();
    } catch (const runtime::Refused& refusal) {
      refusals_[i] = std::make_shared<const runtime::Refused>(refusal);
    }
  }
  void load_all() {
    parallel_for(0, int64_t(others_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) load(size_t(i));
    });
  }

  const Plan& plan_;
  const Step& step_;
  const DeviceEngine& engine_;
  double seconds_;
  TuneOperands operands_;
  std::vector<std::shared_ptr<CompiledStep>> others_;
  std::vector<std::shared_ptr<const runtime::Refused>> refusals_;
  std::vector<bool> tuned_;
};

}  // namespace

void tune(Plan& plan, double seconds) {
  NoGradGuard no_history;
  TracerScope no_tracer(nullptr);
  std::string problem;
  if (!engine_of(plan.device).queues() && log_enabled(LogTopic::kAutotune) && runtime::onednn_version(&problem).empty())
    log(LogTopic::kAutotune, "oneDNN is no candidate: {}", problem);
  // Equal steps share one choice.
  std::map<std::shared_ptr<const CompiledStep>, std::shared_ptr<const CompiledStep>> known;
  Progress progress("autotune", int64_t(plan.steps.size()), " steps");
  for (auto& step : plan.steps) {
    progress.advance();
    if (!step.code) continue;
    auto [it, fresh] = known.try_emplace(step.code, step.code);
    if (fresh) it->second = Choice(plan, step, seconds).make();
    if (it->second != step.code) step.candidate = it->second->candidate();
    step.code = it->second;
  }
}

}  // namespace sinter
