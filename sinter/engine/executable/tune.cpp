#include "sinter/engine/executable/tune.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
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

// Where launches are queued, the device's clock tells the median of so many; no more are queued at a time than it takes.
constexpr size_t kLaunches = 12, kMostQueued = 800;
// A program is preferred to another that takes as long but for this: it is timed as a whole, and most of it is the same.
constexpr double kFaster = 0.998;
// Seconds beyond which a program on the host is not run whole only to be timed.
constexpr double kLongProgram = 0.25;

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

double median_of(std::vector<double> seconds) {
  std::nth_element(seconds.begin(), seconds.begin() + int64_t(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

// The candidates of one step; the first is the step as it is. What is refused is no choice.
class Choice {
 public:
  Choice(const Plan& plan, const Step& step)
      : plan_(plan), step_(step), engine_(engine_of(plan.device)), key_(key_of(plan, step)), operands_(plan, step) {
    ways_.push_back(step.code);
    for (auto& other : step.code->other_candidates()) ways_.push_back(std::move(other));
    refusals_.resize(ways_.size());
    tuned_.resize(ways_.size(), false);
    for (size_t i = 0; i < ways_.size(); ++i) candidates_.push_back(candidate(i));
  }

  const std::string& key() const { return key_; }
  bool is_open(std::string_view point) const { return !autotuner().knows(point, key_, candidates_); }
  size_t ways() const { return ways_.size(); }
  const std::shared_ptr<const CompiledStep>& way(size_t i) const { return ways_[i]; }
  const std::string& name(size_t i) const { return candidates_[i].name; }
  const std::vector<TriedCandidate>& tried() const { return tried_; }
  void tried_in_program(size_t i, double seconds) { tried_[i].program_seconds = seconds; }

  void load(size_t i) {
    if (refusals_[i] || i == 0) return;
    try {
      std::const_pointer_cast<CompiledStep>(ways_[i])->load();
    } catch (const runtime::Refused& refusal) {
      refusals_[i] = std::make_shared<const runtime::Refused>(refusal);
    }
  }

  // The fastest by itself.
  size_t choose(std::string_view point, double seconds) {
    if (engine_.queues()) ways_[0]->tune_libraries(operands_.next().arguments, seconds);
    if (ways_.size() == 1) return 0;
    seconds_ = seconds;
    const Chosen made = autotuner().choose(point, key_, candidates_, seconds);
    const size_t chosen = made.candidate;
    load(chosen);  // of one that is remembered no other is needed
    for (size_t i = 0; i < ways_.size(); ++i) tried_.push_back({name(i), i < made.seconds.size() ? made.seconds[i] : 0});
    for (auto& refusal : refusals_) {
      if (!refusal) continue;
      if (plan_.strict) throw Error(refusal->message());
      runtime::warn_refused(*refusal, "another candidate for the same step runs");
    }
    return refusals_[chosen] ? 0 : chosen;
  }

  void launch(size_t i) {
    if (!tuned_[i] && i > 0) ways_[i]->tune_libraries(operands_.next().arguments, seconds_);
    tuned_[i] = true;
    ways_[i]->launch(operands_.next().arguments);
  }

 private:
  Candidate candidate(size_t i) {
    std::string name = ways_[i]->candidate().empty() ? "sinter" : ways_[i]->candidate();
    auto run = [this, i] {
      load(i);
      if (refusals_[i]) throw *refusals_[i];
      launch(i);
    };
    if (!engine_.queues()) return {std::move(name), run};
    return {std::move(name), run, [this, i, run] {
              run();
              return median_of(engine_.time_each(kLaunches, [&](size_t) { launch(i); }));
            }};
  }

  const Plan& plan_;
  const Step& step_;
  const DeviceEngine& engine_;
  std::string key_;
  double seconds_ = 0;
  TuneOperands operands_;
  std::vector<std::shared_ptr<const CompiledStep>> ways_;
  std::vector<std::shared_ptr<const runtime::Refused>> refusals_;
  std::vector<bool> tuned_;
  std::vector<Candidate> candidates_;
  std::vector<TriedCandidate> tried_;
};

// A plan's steps with their candidates; equal steps are one choice.
class Tuning {
 public:
  Tuning(Plan& plan, double seconds) : plan_(plan), seconds_(seconds), engine_(engine_of(plan.device)) {
    std::map<std::shared_ptr<const CompiledStep>, size_t> known;
    for (auto& step : plan.steps) {
      if (!step.code) continue;
      auto [it, fresh] = known.try_emplace(step.code, choices_.size());
      if (fresh) choices_.push_back(std::make_unique<Choice>(plan, step));
      order_.push_back(it->second);
    }
    chosen_.assign(choices_.size(), 0);
  }

  void run() {
    load_all();
    Progress progress("autotune", int64_t(choices_.size()), " steps");
    for (size_t c = 0; c < choices_.size(); ++c) {
      progress.advance();
      chosen_[c] = choices_[c]->choose(point(), seconds_);
    }
    if (order_.size() > 1) compare_in_place();
    size_t at = 0;
    for (auto& step : plan_.steps) {
      if (!step.code) continue;
      const size_t c = order_[at++], way = chosen_[c];
      step.tried = choices_[c]->tried();
      if (way == 0) continue;
      step.candidate = choices_[c]->name(way);
      step.code = choices_[c]->way(way);
    }
  }

 private:
  std::string point(const char* what = "step") const {
    std::string machine = engine_.machine();
    return machine.empty() ? what : format("{} on {}", what, machine);
  }

  // The code of all ways of all steps that are to be timed, at once.
  void load_all() {
    std::vector<std::pair<size_t, size_t>> wanted;
    for (size_t c = 0; c < choices_.size(); ++c)
      if (choices_[c]->ways() > 1 && choices_[c]->is_open(point()))
        for (size_t i = 1; i < choices_[c]->ways(); ++i) wanted.push_back({c, i});
    parallel_for(0, int64_t(wanted.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) choices_[wanted[size_t(i)].first]->load(wanted[size_t(i)].second);
    });
  }

  // What was the fastest by itself has to be so in the program, where its neighbours run before and after it and the caches
  // hold what they left; then all that stays is compared with the program as it was. The steps that have code are timed: a
  // choice takes its part of the program's key.
  void compare_in_place() {
    const std::vector<size_t> was(choices_.size(), 0);
    if (chosen_ == was) return;
    std::string program;
    for (size_t c : order_) program += choices_[c]->key() + ";";
    program = hash_hex(program);
    std::vector<size_t> kept = was;
    for (size_t c = 0; c < choices_.size(); ++c) {
      if (chosen_[c] == 0) continue;
      std::vector<size_t> with = kept;
      with[c] = chosen_[c];
      const Chosen made = compare(format("{} in {}", choices_[c]->key(), program), choices_[c]->name(0), kept, choices_[c]->name(chosen_[c]), with);
      if (made.candidate == 1) kept = with;
      if (made.seconds.empty()) continue;
      choices_[c]->tried_in_program(0, made.seconds[0]);
      choices_[c]->tried_in_program(chosen_[c], made.seconds[1]);
    }
    chosen_ = kept;
    if (kept == was) return;
    const Chosen made = compare(program, "untuned", was, "tuned", kept);
    if (made.candidate == 0) chosen_ = was;
    if (made.seconds.empty()) return;
    plan_.untuned_seconds = made.seconds[0];
    plan_.tuned_seconds = made.seconds[1];
  }

  // Which of two ways to run the program is faster, 0 or 1. Without a clock it is what each step said by itself: where the
  // program takes too long, or does not run on the numbers that operands have here (it divides integers, say).
  Chosen compare(const std::string& key, const std::string& first, const std::vector<size_t>& was, const std::string& second,
                 const std::vector<size_t>& with) {
    const Candidate candidates[] = {program(first, was), program(second, with)};
    const std::string place = point("program");
    try {
      if (!engine_.queues() && !autotuner().knows(place, key, candidates) && seconds_of_program(was) > kLongProgram) return {1, {}};
      return autotuner().choose(place, key, candidates, seconds_, kFaster);
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const Error& error) {
      log(LogTopic::kAutotune, "{} is not timed whole: {}", plan_.name, error.message());
      return {1, {}};
    }
  }

  double seconds_of_program(const std::vector<size_t>& ways) {
    if (known_seconds_ == 0) {
      const auto begin = std::chrono::steady_clock::now();
      launch_all(ways);
      known_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return known_seconds_;
  }

  void launch_all(const std::vector<size_t>& ways) {
    for (size_t c : order_) choices_[c]->launch(ways[c]);
  }

  Candidate program(const std::string& name, const std::vector<size_t>& ways) {
    auto run = [this, ways] { launch_all(ways); };
    if (!engine_.queues()) return {name, run};
    return {name, run, [this, run] {
              const size_t count = std::clamp<size_t>(kMostQueued / order_.size(), 3, kLaunches);
              return median_of(engine_.time_each(count, [&](size_t) { run(); }, order_.size()));
            }};
  }

  Plan& plan_;
  double seconds_, known_seconds_ = 0;
  const DeviceEngine& engine_;
  std::vector<std::unique_ptr<Choice>> choices_;
  std::vector<size_t> order_, chosen_;  // choices as the steps come; ways by choice
};

}  // namespace

void tune(Plan& plan, double seconds) {
  NoGradGuard no_history;
  TracerScope no_tracer(nullptr);
  std::string problem;
  if (!engine_of(plan.device).queues() && log_enabled(LogTopic::kAutotune) && runtime::onednn_version(&problem).empty())
    log(LogTopic::kAutotune, "oneDNN is no candidate: {}", problem);
  // Operands of all choices are there at once, since whole programs are timed.
  try {
    Tuning(plan, seconds).run();
  } catch (const OutOfMemoryError& error) {
    warn("{}: the memory left does not do for tuning ({}); the defaults run", plan.name, error.message());
  }
}

}  // namespace sinter
