#include "sinter/engine/executable/kernel_jobs.h"

#include <algorithm>
#include <unordered_map>

#include "sinter/base/error.h"
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

template <class F>
void or_refusal(KernelOutcome& outcome, F&& make) {
  try {
    outcome.kernel = make();
  } catch (const runtime::Refused& refusal) {
    outcome.refusal = std::make_shared<const runtime::Refused>(refusal);
  }
}

void prepare_libraries(const std::vector<std::shared_ptr<CudaStep>>& steps) {
  try {
    for (auto& step : steps) step->prepare_libraries();
  } catch (const Error&) {
    // The launch will say so.
  }
}

std::vector<KernelOutcome> make_cuda_kernels(const std::vector<KernelJob>& jobs, const std::vector<size_t>& fresh,
                                             const std::string& name, Device device,
                                             std::span<const std::function<void()>> ahead) {
  std::vector<std::shared_ptr<CudaStep>> steps;
  std::vector<std::pair<size_t, size_t>> by_length;  // steps and how long they are: what takes longest begins first
  for (size_t i : fresh) {
    StageTimer timer(CompileStage::kSchedule);
    steps.push_back(make_cuda_step(attrs_of(jobs[i]), jobs[i].operands, jobs[i].outputs, device));
    size_t length = 0;
    for (auto& kernel : steps.back()->kernels()) length += kernel->source.text.size();
    by_length.push_back({steps.size() - 1, length});
  }
  std::stable_sort(by_length.begin(), by_length.end(), [](auto& a, auto& b) { return a.second > b.second; });
  StageTimer waiting(CompileStage::kNone);  // each thread counts its own kernels
  Progress progress("compiling " + name, int64_t(steps.size()), " kernels");
  std::vector<KernelOutcome> out(steps.size());
  // The first task is for libraries, which start once.
  int64_t first_step = 1 + int64_t(ahead.size());
  parallel_for(0, first_step + int64_t(steps.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i == 0) {
        prepare_libraries(steps);
      } else if (i < first_step) {
        ahead[size_t(i - 1)]();
      } else {
        size_t at = by_length[size_t(i - first_step)].first;
        CudaStep* step = steps[at].get();
        or_refusal(out[at], [&] {
          load_kernels({&step, 1}, device);
          auto kernel = std::make_shared<FusedKernel>();
          kernel->name = step->name();
          kernel->cuda = steps[at];
          return kernel;
        });
        progress.advance();
      }
    }
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
  if (device.is_cuda()) {
    auto made = make_cuda_kernels(jobs, fresh, name, device, ahead);
    for (size_t i = 0; i < fresh.size(); ++i) out[fresh[i]] = made[i];
    fresh.clear();
  }
  // The longest first, so that threads end together.
  std::stable_sort(fresh.begin(), fresh.end(), [&](size_t a, size_t b) {
    return attrs_of(jobs[a]).body->nodes().size() > attrs_of(jobs[b]).body->nodes().size();
  });
  StageTimer waiting(CompileStage::kNone);  // each thread counts its own kernels
  Progress progress("compiling " + name, int64_t(fresh.size()), " kernels");
  parallel_for(0, int64_t(fresh.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      StageTimer timer(CompileStage::kSchedule);
      auto& job = jobs[fresh[size_t(i)]];
      or_refusal(out[fresh[size_t(i)]], [&] {
        return std::make_shared<const FusedKernel>(compile_fused(attrs_of(job), job.operands, job.outputs));
      });
      progress.advance();
    }
  });
  for (size_t i = 0; i < jobs.size(); ++i) out[i] = out[same_as[i]];
  return out;
}

}  // namespace sinter
