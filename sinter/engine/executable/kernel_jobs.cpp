#include "sinter/engine/executable/kernel_jobs.h"

#include <algorithm>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/base/function_ref.h"
#include "sinter/base/hash.h"
#include "sinter/base/progress.h"
#include "sinter/base/stage_times.h"
#include "sinter/base/thread_pool.h"

namespace sinter {

namespace {

const FusedAttrs& attrs_of(const KernelJob& job) { return job.node->attrs.as<FusedAttrs>(); }

uint64_t hash_of(const KernelJob& job) {
  uint64_t hash = attrs_of(job).body->hash();
  for (auto* list : {&job.operands, &job.outputs})
    for (auto* t : *list)
      if (t) hash = hash_bytes(t->sizes.data(), t->sizes.size() * sizeof(int64_t), hash);
  return hash;
}

bool same_kernel(const KernelJob& a, const KernelJob& b) {
  auto alike = [](const TensorImpl* x, const TensorImpl* y) {
    return x && y ? x->dtype == y->dtype && x->sizes == y->sizes && x->strides == y->strides : x == y;
  };
  auto all_alike = [&](auto& x, auto& y) { return std::equal(x.begin(), x.end(), y.begin(), y.end(), alike); };
  return all_alike(a.operands, b.operands) && all_alike(a.outputs, b.outputs) && a.node->attrs == b.node->attrs;
}

// `make` for [0, count), on all threads; the time that each takes is its own thread's.
void on_all_threads(size_t count, FunctionRef<void(size_t i)> make) {
  StageTimer waiting(CompileStage::kNone);
  parallel_for(0, int64_t(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) make(size_t(i));
  });
}

void prepare(const std::vector<std::shared_ptr<CompiledStep>>& steps) {
  try {
    for (auto& step : steps) step->prepare();
  } catch (const Error&) {
    // The launch will say so.
  }
}

std::vector<KernelOutcome> make_steps(const std::vector<KernelJob>& jobs, const std::vector<size_t>& fresh,
                                      const std::string& name, Device device,
                                      std::span<const std::function<void()>> ahead) {
  std::vector<std::shared_ptr<CompiledStep>> steps(fresh.size());
  on_all_threads(fresh.size(), [&](size_t i) {
    StageTimer timer(CompileStage::kSchedule);
    auto& job = jobs[fresh[i]];
    steps[i] = make_step(attrs_of(job), job.operands, job.outputs, device);
  });
  // What takes longest begins first, so that threads end together.
  std::vector<size_t> by_length(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) by_length[i] = i;
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](size_t a, size_t b) { return steps[a]->code_length() > steps[b]->code_length(); });
  Progress progress("compiling " + name, int64_t(steps.size()), " kernels");
  std::vector<KernelOutcome> out(steps.size());
  // The first task is for libraries, which start once.
  const size_t first_step = 1 + ahead.size();
  on_all_threads(first_step + steps.size(), [&](size_t i) {
    if (i == 0) return prepare(steps);
    if (i < first_step) return ahead[i - 1]();
    size_t at = by_length[i - first_step];
    try {
      steps[at]->load();
      out[at].step = steps[at];
    } catch (const runtime::Refused& refusal) {
      out[at].refusal = std::make_shared<const runtime::Refused>(refusal);
    }
    progress.advance();
  });
  return out;
}

}  // namespace

std::vector<KernelOutcome> compile_kernels(const std::vector<KernelJob>& jobs, const std::string& name, Device device,
                                           std::span<const std::function<void()>> ahead) {
  // The layers of a network differ in addresses only: the first one of each kind stands for all.
  std::unordered_multimap<uint64_t, size_t> seen;
  std::vector<size_t> same_as(jobs.size()), fresh;
  for (size_t i = 0; i < jobs.size(); ++i) {
    uint64_t hash = hash_of(jobs[i]);
    same_as[i] = i;
    for (auto [it, end] = seen.equal_range(hash); it != end && same_as[i] == i; ++it)
      if (same_kernel(jobs[i], jobs[it->second])) same_as[i] = it->second;
    if (same_as[i] != i) continue;
    seen.emplace(hash, i);
    fresh.push_back(i);
  }
  std::vector<KernelOutcome> out(jobs.size());
  auto made = make_steps(jobs, fresh, name, device, ahead);
  for (size_t i = 0; i < fresh.size(); ++i) out[fresh[i]] = made[i];
  for (size_t i = 0; i < jobs.size(); ++i) out[i] = out[same_as[i]];
  return out;
}

}  // namespace sinter
