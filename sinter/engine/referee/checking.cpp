#include "sinter/engine/referee/checking.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/profile.h"
#include "sinter/engine/referee/check_steps.h"
#include "sinter/engine/referee/whole.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

using Clock = std::chrono::steady_clock;

class Checking final : public Executable {
 public:
  Checking(std::shared_ptr<Executable> executable, CapturedProgram captured, const CheckOptions& options)
      : executable_(std::move(executable)), captured_(std::move(captured)), options_(options) {}

  void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) override {
    bool due = calls_.fetch_add(1, std::memory_order_relaxed) % options_.every == 0;
    if (!due || Profile::current() || StepObserver::current()) return executable_->run(inputs, sizes, outputs);
    NoGradGuard no_history;
    TracerScope no_tracer(nullptr);
    auto began = Clock::now();
    std::vector<referee::Known> before = as_they_are(inputs);
    referee::CheckSteps steps(captured_.name);
    {
      ObserverScope scope(&steps);
      executable_->run(inputs, sizes, outputs);
    }
    std::string fault;
    for (auto& wrong : steps.wrong()) report(fault, wrong.name + wrong.where, "check: " + wrong.text());
    if (steps.wrong().empty()) check_results(before, sizes, outputs, steps, fault);
    double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    log(LogTopic::kCheck, "{}: {} steps checked in {} s{}{}", captured_.name, steps.checked(), seconds,
        steps.left_out().empty() ? "" : ", but not\n", steps.left_out());
    check(fault.empty() || !options_.throws, "{}", fault);
  }

  std::function<void()> preparation(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) override {
    return executable_->preparation(inputs, sizes);
  }
  std::string text() const override { return executable_->text(); }
  int64_t arena_bytes() const override { return executable_->arena_bytes(); }
  std::shared_ptr<const PlanReport> report() const override { return executable_->report(); }

 private:
  // What the call overwrites is copied.
  std::vector<referee::Known> as_they_are(std::span<const TensorArg> inputs) const {
    auto overwritten = [&](const Tensor& tensor) {
      return std::any_of(captured_.writes.begin(), captured_.writes.end(), [&](int i) {
        return i >= 0 && eager::share_memory(inputs[size_t(i)].tensor().impl(), tensor.impl());
      });
    };
    std::vector<referee::Known> out;
    for (auto& input : inputs) {
      if (input.is_scalar())
        out.emplace_back(to_array(input.scalar()));
      else
        out.emplace_back(overwritten(input.tensor()) ? input.tensor().clone() : input.tensor());
    }
    return out;
  }

  // One warning for each place; the first fault of a call is the one that is thrown.
  void report(std::string& fault, const std::string& place, const std::string& text) {
    if (fault.empty()) fault = text;
    if (!options_.throws) warn_once("check " + captured_.name + place, "{}", text);
  }

  void check_results(const std::vector<referee::Known>& before, std::span<const int64_t> sizes, std::span<Tensor> outputs,
                     const referee::CheckSteps& steps, std::string& fault) {
    try {
      Graph graph = Graph::parse(captured_.graph);
      std::map<std::string, int64_t> symbols;
      for (size_t s = 0; s < sizes.size(); ++s) symbols[captured_.symbols[s]] = sizes[s];
      auto whole = referee::evaluate_whole(graph, before, symbols);
      for (size_t r = 0; r < outputs.size(); ++r) {
        auto& v = graph.outputs()[r];
        auto mismatch = referee::compare(int(r), outputs[r], whole.results[r], whole.allowed[r], v.type().weak);
        if (!mismatch) continue;
        std::string where = v.node->where.empty() ? "" : "\n  at " + v.node->where;
        std::string steps_text = steps.checked() == 0 ? "" : "every kernel computes what it should, but ";
        report(fault, "result", format("check: {}the results of {} are not those of the graph as captured\n  {}{}\n"
                                     "  A pass or the plan is at fault; compiler::bisect() or SINTER_SKIP_PASSES tell which",
                                     steps_text, captured_.name, mismatch->text(), where));
        return;
      }
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const Error& error) {
      log(LogTopic::kCheck, "{}: the results are not compared with the graph as captured: {}", captured_.name, error.message());
    }
  }

  const std::shared_ptr<Executable> executable_;
  const CapturedProgram captured_;
  const CheckOptions options_;
  std::atomic<int64_t> calls_{0};
};

}  // namespace

std::shared_ptr<Executable> make_checking(std::shared_ptr<Executable> executable, CapturedProgram captured,
                                          const CheckOptions& options) {
  return std::make_shared<Checking>(std::move(executable), std::move(captured), options);
}

}  // namespace sinter
