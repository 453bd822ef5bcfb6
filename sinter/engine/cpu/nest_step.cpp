#include "sinter/engine/cpu/nest_step.h"

#include <algorithm>

#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/kernel_text.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

CpuNestStep::CpuNestStep(const FusedAttrs& concrete, std::span<const TensorImpl* const> inputs,
                         std::span<const TensorImpl* const> outputs) {
  KernelParameters parameters;
  NamedFused named = name_sizes(concrete, inputs, outputs, parameters);
  auto& attrs = named.attrs.as<FusedAttrs>();
  if (auto sink = lower_sink(attrs, named.layouts)) {
    add_sink(std::move(*sink), parameters);
  } else {
    FusedNest nest = lower_fused(attrs, named.layouts, memory_order(concrete, outputs));
    let_plant(nest);
    add_nest(nest, parameters);
  }
}

void CpuNestStep::add_sink(SinkNest sink, const KernelParameters& parameters) {
  name_ = sink.nest.name;
  indexing_ = sink.indexing;
  for (auto& name : sink.nest.params()) params_.push_back(parameters.value(name));
  int64_t all = 1, work = 1;
  for (auto& axis : sink.nest.parallel) all *= parameters.evaluate(axis.extent);
  for (auto& axis : sink.nest.sequential) work *= parameters.evaluate(axis.extent);
  if (all == 0) return;
  // The kernel says whether it splits the last axis.
  int64_t last = sink.nest.parallel.empty() ? 1 : parameters.evaluate(sink.nest.parallel.back().extent);
  range_ = all;
  work_ = work;
  granule_ = last;
  sink_ = std::move(sink.nest);
}

void CpuNestStep::add_nest(const FusedNest& nest, const KernelParameters& parameters) {
  name_ = nest.name;
  indexing_ = nest.indexing;
  names_ = nest.params();
  for (auto& name : names_) params_.push_back(parameters.value(name));
  int64_t rows = 1, inner = 1;
  for (auto& axis : nest.rows) rows *= parameters.evaluate(axis.extent);
  for (auto& axis : nest.inner) inner *= parameters.evaluate(axis.extent);
  bool over_inner = nest.rows.empty() && nest.sweeps.size() == 1 && nest.sweeps[0].reductions.empty() &&
                    !nest.sweeps[0].once && nest.inner.size() == 1;
  bool reduces = std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& s) { return !s.reductions.empty(); });
  int64_t range = over_inner ? inner : rows;
  if (range == 0 || rows == 0 || (inner == 0 && !reduces)) return;
  range_ = range;
  work_ = over_inner ? 1 : std::max<int64_t>(inner, 1) * int64_t(nest.sweeps.size());
  kernel_name_ = kernel_name(nest.name);
  emitted_ = codegen::emit_cpu(nest, kernel_name_);
  let_plant(emitted_);
  granule_ = over_inner || emitted_.rows_in_lanes ? runtime::host_target().vector_bytes / 4 : 1;
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", emitted_.text);
  if (auto* texts = KernelTexts::current()) texts->add({kernel_name_, nest.text(), {}, emitted_.text});
}

void CpuNestStep::load() {
  if (is_loaded()) return;
  if (sink_) {
    kernel_ = compile_kernel(*sink_);
    int64_t all = range_;
    if (kernel_->split_last) range_ /= granule_;
    work_ = std::max<int64_t>(1, all / range_ * work_);
    return;
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->name = kernel_name_;
  kernel->params = names_;
  kernel->granule = granule_;
  auto code = runtime::compile_cpu(emitted_.text, kernel_name_, codegen::cpu_prelude(runtime::host_target().vector_bytes / 4));
  kernel->function = code->function<Kernel::Function>(kernel_name_);
  kernel->code = code;
  kernel_ = std::move(kernel);
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
