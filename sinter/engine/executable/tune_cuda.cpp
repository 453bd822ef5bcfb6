// Choices on a GPU: tunings of our products, algorithms of the libraries. Equal steps share one choice.
#include <algorithm>
#include <map>
#include <utility>

#include "sinter/base/progress.h"
#include "sinter/engine/autotune.h"
#include "sinter/engine/executable/tune.h"
#include "sinter/engine/executable/tune_operands.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/stream.h"

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
  // A choice that is remembered needs no code but the winner's; else all is compiled in one go.
  auto load = [&others, is_loaded, device = plan.device] {
    std::vector<CudaStep*> all;
    for (auto& other : others)
      if (!is_loaded(*other)) all.push_back(other.get());
    load_kernels(all, device);
  };
  std::vector<Candidate> candidates{{step.fused->cuda->way(), [many, way = step.fused->cuda] { many(*way); }}};
  for (auto& other : others)
    candidates.push_back({other->way(), [many, load, is_loaded, operands, seconds, other, fresh = true]() mutable {
                            if (!is_loaded(*other)) load();
                            if (std::exchange(fresh, false)) other->tune_libraries(operands->next().cuda_slots, seconds);
                            many(*other);
                          }});
  std::string point = "product on " + runtime::cuda_device_info(device).name;
  size_t chosen = autotuner().choose(point, key_of(plan, step), candidates, seconds);
  if (chosen == 0) return step.fused;
  auto kernel = std::make_shared<FusedKernel>(*step.fused);
  CudaStep* winner = others[chosen - 1].get();
  if (!is_loaded(*winner)) load_kernels({&winner, 1}, plan.device);
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
