// Choices on a GPU: tunings of our products, algorithms of the libraries. Equal steps share one choice.
#include <algorithm>
#include <map>
#include <utility>

#include "sinter/base/progress.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/autotune.h"
#include "sinter/engine/executable/tune.h"
#include "sinter/engine/executable/tune_operands.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/runtime/refusal.h"

namespace sinter {

namespace {

// One run of a candidate is many launches: a single one is over before the host has looked at its clock.
constexpr int kLaunches = 24;

std::string key_of(const Plan& plan, const Step& step) {
  std::string key = step.fused->name;
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

std::shared_ptr<const FusedKernel> choose(const Plan& plan, const Step& step, double seconds) {
  auto operands = std::make_shared<TuneOperands>(plan, step);
  auto others = step.fused->cuda->others();
  step.fused->cuda->tune_libraries(operands->next().cuda_slots, seconds);
  if (others.empty()) return step.fused;
  int device = plan.device.index;
  auto many = [operands, device](const CudaStep& way) {
    for (int i = 0; i < kLaunches; ++i) way.launch(operands->next().cuda_slots);
    runtime::cuda_synchronize(device);
  };
  auto is_loaded = [](const CudaStep& way) {
    return std::all_of(way.kernels().begin(), way.kernels().end(), [](auto& kernel) { return bool(kernel->function); });
  };
  // A choice that is remembered needs no code but the winner's; else all is compiled in one go. What is refused is no choice.
  auto refusals = std::make_shared<std::vector<std::shared_ptr<const runtime::Refused>>>(others.size());
  auto load_one = [&others, refusals, device = plan.device](size_t i) {
    CudaStep* way = others[i].get();
    try {
      load_kernels({&way, 1}, device);
    } catch (const runtime::Refused& refusal) {
      (*refusals)[i] = std::make_shared<const runtime::Refused>(refusal);
    }
  };
  auto load = [&others, refusals, is_loaded, load_one] {
    parallel_for(0, int64_t(others.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = size_t(begin); i < size_t(end); ++i)
        if (!is_loaded(*others[i]) && !(*refusals)[i]) load_one(i);
    });
  };
  std::vector<Candidate> candidates{{step.fused->cuda->way(), [many, way = step.fused->cuda] { many(*way); }}};
  for (size_t i = 0; i < others.size(); ++i)
    candidates.push_back({others[i]->way(), [many, load, is_loaded, operands, seconds, refusals, i, other = others[i],
                                             fresh = true]() mutable {
                            if (!is_loaded(*other)) load();
                            if ((*refusals)[i]) throw *(*refusals)[i];
                            if (std::exchange(fresh, false))
                              other->tune_libraries(operands->next().cuda_slots, seconds);
                            many(*other);
                          }});
  std::string point = "product on " + runtime::cuda_device_info(device).name;
  size_t chosen = autotuner().choose(point, key_of(plan, step), candidates, seconds);
  if (chosen > 0 && !is_loaded(*others[chosen - 1])) load_one(chosen - 1);
  for (auto& refusal : *refusals) {
    if (!refusal) continue;
    if (plan.strict) throw Error(refusal->message());
    runtime::warn_refused(*refusal, "another way of the same step runs");
  }
  if (chosen == 0 || (*refusals)[chosen - 1]) return step.fused;
  auto kernel = std::make_shared<FusedKernel>(*step.fused);
  kernel->cuda = others[chosen - 1];
  return kernel;
}

}  // namespace

void tune_on_cuda(Plan& plan, double seconds) {
  std::map<std::shared_ptr<const FusedKernel>, std::shared_ptr<const FusedKernel>> known;
  Progress progress("autotune", int64_t(plan.steps.size()), " steps");
  for (auto& step : plan.steps) {
    progress.advance();
    if (!step.fused || !step.fused->cuda) continue;
    auto [it, fresh] = known.try_emplace(step.fused, step.fused);
    if (fresh) it->second = choose(plan, step, seconds);
    if (it->second != step.fused) step.way_name = it->second->cuda->way();
    step.fused = it->second;
  }
}

}  // namespace sinter
