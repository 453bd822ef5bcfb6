#include "sinter/engine/fused_kernel.h"

#include <algorithm>

#include "sinter/base/log.h"
#include "sinter/base/error.h"
#include "sinter/base/planted.h"
#include "sinter/base/thread_pool.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/kernel_parameters.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

namespace {

FusedKernel compile_sink(const SinkNest& sink, const KernelParameters& parameters) {
  FusedKernel out;
  out.name = sink.nest.name;
  out.indexing = sink.indexing;
  for (auto& name : sink.nest.params()) out.params.push_back(parameters.value(name));
  int64_t all = 1, work = 1;
  for (auto& axis : sink.nest.parallel) all *= parameters.evaluate(axis.extent);
  for (auto& axis : sink.nest.sequential) work *= parameters.evaluate(axis.extent);
  if (all == 0) return out;
  out.kernel = compile_kernel(sink.nest);
  out.range = all;
  if (out.kernel->split_last) out.range /= parameters.evaluate(sink.nest.parallel.back().extent);
  out.work = std::max<int64_t>(1, all / out.range * work);
  return out;
}

// The kernels of the body, each by itself.
FusedKernel compile_siblings(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                             std::span<const TensorImpl* const> outputs) {
  const Graph& body = *attrs.body;
  FusedKernel out;
  for (auto& node : body.nodes()) {
    if (node.op != &fused_op()) continue;
    FusedKernel::Sibling sibling;
    std::vector<const TensorImpl*> own_inputs, own_outputs;
    for (auto& v : node.inputs) {
      auto at = std::find(body.inputs().begin(), body.inputs().end(), v) - body.inputs().begin();
      // A number has no place among the operands.
      SINTER_INTERNAL_ASSERT(at < int64_t(inputs.size()), "a sibling reads what is not an operand");
      sibling.operands.push_back(int(at));
      own_inputs.push_back(inputs[size_t(at)]);
    }
    for (size_t j = 0; j < body.outputs().size(); ++j)
      if (body.outputs()[j].node == &node) {
        sibling.operands.push_back(int(inputs.size() + j));
        own_outputs.push_back(outputs[j]);
      }
    sibling.kernel = std::make_shared<const FusedKernel>(compile_fused(node.attrs.as<FusedAttrs>(), own_inputs, own_outputs));
    out.name += (out.name.empty() ? "" : " | ") + sibling.kernel->name;
    if (out.indexing.empty()) out.indexing = sibling.kernel->indexing;
    out.siblings.push_back(std::move(sibling));
  }
  return out;
}

// One loop over the pieces of all.
void launch_siblings(const FusedKernel& fused, std::span<const int64_t> slots) {
  struct Ready {
    const FusedKernel* kernel;
    size_t args;
    int64_t grain, first;  // counted in pieces
  };
  SmallVector<Ready, 8> all;
  SmallVector<int64_t, 128> args;
  IndexError error(fused.indexing);
  int64_t pieces = 0;
  for (auto& sibling : fused.siblings) {
    auto& kernel = *sibling.kernel;
    if (!kernel.kernel) continue;
    Ready ready{&kernel, args.size(), grain_of(*kernel.kernel, kernel.work), pieces};
    for (int at : sibling.operands) args.push_back(slots[size_t(at)]);
    args.append({kernel.params.data(), kernel.params.size()});
    args.push_back(error.cell());
    pieces += (kernel.range + ready.grain - 1) / ready.grain;
    all.push_back(ready);
  }
  // A piece each, and all of them small: not worth waking anybody.
  parallel_for(0, pieces, pieces == int64_t(all.size()) ? pieces : 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      size_t i = all.size() - 1;
      while (all[i].first > piece) --i;
      int64_t from = (piece - all[i].first) * all[i].grain;
      all[i].kernel->kernel->function(args.data() + all[i].args, from, std::min(from + all[i].grain, all[i].kernel->range));
    }
  });
  error.check();
}

}  // namespace

bool holds_siblings(const FusedAttrs& attrs) {
  auto& nodes = attrs.body->nodes();
  return attrs.domain.empty() && std::any_of(nodes.begin(), nodes.end(), [](auto& n) { return n.op == &fused_op(); });
}

bool takes_epilogue(const Node& node) {
  static const Op *mm = find_op("mm"), *bmm = find_op("bmm");
  if (is_fusable_convolution(node)) return node.types[0].device.is_cpu() || is_fusable_on_cuda(node);
  return (node.op == mm || node.op == bmm) && eager::gemm_type(node.types[0].dtype).has_value();
}

FusedKernel compile_fused(const FusedAttrs& concrete, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs) {
  if (auto contractions = contractions_of(*concrete.body); !contractions.empty()) {
    FusedKernel out;
    if (contractions[0]->op == &convolution_op()) {
      out.convolution = compile_convolution(concrete, *contractions[0], inputs, outputs);
      out.name = out.convolution->name;
      return out;
    }
    out.product = compile_product(concrete, inputs, outputs);
    out.name = out.product->name;
    return out;
  }
  if (holds_siblings(concrete)) return compile_siblings(concrete, inputs, outputs);
  KernelParameters parameters;
  NamedFused named = name_sizes(concrete, inputs, outputs, parameters);
  auto& attrs = named.attrs.as<FusedAttrs>();
  if (auto sink = lower_sink(attrs, named.layouts)) return compile_sink(*sink, parameters);
  FusedNest nest = lower_fused(attrs, named.layouts, memory_order(concrete, outputs));
  let_plant(nest);

  FusedKernel out;
  out.name = nest.name;
  out.indexing = nest.indexing;
  for (auto& name : nest.params()) out.params.push_back(parameters.value(name));
  int64_t rows = 1, inner = 1;
  for (auto& axis : nest.rows) rows *= parameters.evaluate(axis.extent);
  for (auto& axis : nest.inner) inner *= parameters.evaluate(axis.extent);
  bool over_inner = nest.rows.empty() && nest.sweeps.size() == 1 && nest.sweeps[0].reductions.empty() &&
                    !nest.sweeps[0].once && nest.inner.size() == 1;
  out.range = over_inner ? inner : rows;
  out.work = over_inner ? 1 : std::max<int64_t>(inner, 1) * int64_t(nest.sweeps.size());
  bool reduces = std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& s) { return !s.reductions.empty(); });
  if (out.range == 0 || rows == 0 || (inner == 0 && !reduces)) return out;

  auto kernel = std::make_shared<Kernel>();
  kernel->name = kernel_name(nest.name);
  auto emitted = codegen::emit_cpu(nest, kernel->name);
  let_plant(emitted);
  kernel->params = nest.params();
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", emitted.text);
  int lanes = runtime::host_target().vector_bytes / 4;
  kernel->granule = over_inner || emitted.rows_in_lanes ? lanes : 1;
  auto code = runtime::compile_cpu(emitted.text, kernel->name, codegen::cpu_prelude(lanes));
  kernel->function = code->function<Kernel::Function>(kernel->name);
  kernel->code = code;
  out.kernel = std::move(kernel);
  return out;
}

void launch(const FusedKernel& fused, std::span<const int64_t> slots, PackedWeights packed) {
  if (fused.product) return launch(*fused.product, slots, packed);
  if (fused.convolution) return launch(*fused.convolution, slots);
  if (!fused.siblings.empty()) return launch_siblings(fused, slots);
  if (!fused.kernel) return;
  SmallVector<int64_t, 64> args;
  args.append(slots);
  args.append({fused.params.data(), fused.params.size()});
  IndexError error(fused.indexing);
  args.push_back(error.cell());
  launch(*fused.kernel, args.data(), fused.range, fused.work);
  error.check();
}

}  // namespace sinter
