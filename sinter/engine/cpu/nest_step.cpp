#include "sinter/engine/cpu/nest_step.h"

#include <algorithm>

#include "sinter/base/log.h"
#include "sinter/base/planted.h"

namespace sinter {

CpuNestStep::CpuNestStep(const FusedAttrs& concrete, std::span<const TensorImpl* const> inputs,
                         std::span<const TensorImpl* const> outputs) {
  KernelParameters parameters;
  NamedFused named = name_sizes(concrete, inputs, outputs, parameters);
  LoopNest nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts, parameters.names(),
                              memory_order(concrete, inputs, outputs));
  let_plant(nest);
  name_ = nest.name;
  indexing_ = nest.indexing;
  params_ = parameters.values_for(nest);
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  // A reduction of nothing has a result.
  const bool stores_elements = !nest.reduces() || nest.sweeps[0].scans();
  if (parameters.product_of(nest.rows) == 0 || (stores_elements && parameters.product_of(nest.inner) == 0)) return;
  written_ = write_kernel(nest, kernel_name(nest.name));
  let_plant(written_.emitted);
  int64_t walks = std::count_if(nest.sweeps.begin(), nest.sweeps.end(), [](auto& sweep) { return !sweep.once; });
  range_ = parameters.product_of(written_.plan.range);
  work_ = std::max<int64_t>(1, parameters.evaluate(written_.plan.work)) * std::max<int64_t>(1, walks);
}

void CpuNestStep::load() {
  if (!is_loaded()) kernel_ = written_.compile();
}

void CpuNestStep::launch(std::span<const int64_t> slots) const {
  if (!kernel_) return;
  SmallVector<int64_t, 64> args;
  args.append(slots);
  args.append({params_.data(), params_.size()});
  IndexError error(indexing_);
  args.push_back(error.cell());
  sinter::launch(*kernel_, args.data(), range_, work_);
  error.check();
}

}  // namespace sinter
