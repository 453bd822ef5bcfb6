#include "sinter/engine/gpu/nest.h"

#include <algorithm>

#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/engine/eager/kernel_cache.h"
#include "sinter/engine/kernel_stages.h"
#include "sinter/engine/step/kernel_parameters.h"

namespace sinter {

namespace {

// Fewer elements than this are spread over more threads, one each.
constexpr int64_t kFewElements = 65536;

// So many rows a multiprocessor keep it busy although a thread takes several of them side by side.
constexpr int64_t kManyColumns = 96;

// Vectors of a row's last axis are shared by a warp's threads where it is this long.
constexpr int64_t kLongAxis = 128;

// Vectors of a row that a thread holds at most.
constexpr int64_t kMostHeld = 8;

bool is_wide(std::span<const TensorImpl* const> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](auto* t) { return t && eager::is_wide(*t); });
}

// As many as a thread has of a row, unless that is too long for its registers.
int vectors_to_hold(const LoopNest& nest, int64_t rows, int64_t length, const GpuMachine& machine) {
  const Schedule plan = schedule(nest, GpuFacts{.target = machine.target});
  if (plan.lanes == 1) return 0;
  auto geometry = codegen::gpu_geometry(codegen::GpuLaunch::of(plan), rows, length, machine.multiprocessors());
  int64_t step = int64_t(geometry.threads[0]) * plan.lanes, each = (length + step - 1) / step;
  return each <= kMostHeld ? int(each) : 0;
}

struct Lowered {
  KernelParameters parameters;
  LoopNest nest;
};
Lowered lower_named(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                    std::span<const TensorImpl* const> outputs) {
  Lowered out;
  NamedFused named = name_sizes(attrs, inputs, outputs, out.parameters);
  out.nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts, out.parameters.names(),
                         memory_order(attrs, inputs, outputs));
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", out.nest.text());
  return out;
}

// The nest as text, and the numbers that it is launched with. Without a name it gets one that no other text has.
GpuNest write(const Lowered& lowered, const GpuFacts& facts, std::string name = {}) {
  auto& [parameters, nest] = lowered;
  GpuNest out;
  out.name = nest.name;
  out.indexing = nest.indexing;
  if (name.empty())
    name = gpu_kernel_name(kernel_name(nest.name), (nest.tiles ? to_string(facts.memory) : "") + nest.text(), facts);
  Schedule plan = schedule(nest, facts);
  out.kernel = codegen::emit_gpu(nest, plan, name);
  out.params = parameters.values_for(nest);
  out.range = parameters.evaluate(out.kernel.range);
  out.work = parameters.evaluate(out.kernel.work);
  if (kernels_are_noted()) note_kernel({name, nest.text(), to_string(plan), out.kernel.text});
  return out;
}

}  // namespace

GpuNest emit_gpu_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, const GpuMachine& machine) {
  Lowered lowered = lower_named(attrs, inputs, outputs);
  auto& [parameters, nest] = lowered;
  GpuFacts facts{.target = machine.target, .wide = is_wide(inputs) || is_wide(outputs)};
  int64_t rows = parameters.product_of(nest.rows), inner = parameters.product_of(nest.inner);
  const bool reduces = nest.reduces();
  if (rows == 0 || (inner == 0 && !reduces)) {
    GpuNest out;
    out.name = nest.name;
    out.indexing = nest.indexing;
    return out;
  }
  facts.lanes = reduces || rows * inner >= kFewElements;
  if (reduces && nest.sweeps.size() > 1 && nest.inner.size() == 1 && !nest.reduces_own_axes())
    facts.held_vectors = vectors_to_hold(nest, rows, inner, machine);
  facts.short_rows = reduces && nest.inner.size() > 1 && parameters.evaluate(nest.inner.back().extent) < kLongAxis;
  facts.column_lanes = reduces && rows * inner >= kFewElements && rows >= kManyColumns * machine.multiprocessors();
  return write(lowered, facts);
}

std::vector<GpuSibling> emit_sibling_nests(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                           std::span<const TensorImpl* const> outputs, const GpuMachine& machine) {
  const Graph& body = *attrs.body;
  std::vector<GpuSibling> out;
  for (auto& node : body.nodes()) {
    if (node.op != &fused_op()) continue;
    std::vector<int> operands;
    for (auto& v : node.inputs)
      operands.push_back(int(std::find(body.inputs().begin(), body.inputs().end(), v) - body.inputs().begin()));
    for (size_t j = 0; j < body.outputs().size(); ++j)
      if (body.outputs()[j].node == &node) operands.push_back(int(inputs.size() + j));
    std::vector<const TensorImpl*> own_inputs, own_outputs;
    for (int at : operands)
      size_t(at) < inputs.size() ? own_inputs.push_back(inputs[size_t(at)])
                                 : own_outputs.push_back(outputs[size_t(at) - inputs.size()]);
    GpuNest nest = emit_gpu_nest(node.attrs.as<FusedAttrs>(), own_inputs, own_outputs, machine);
    if (nest.range > 0) out.push_back({std::move(nest), std::move(operands)});
  }
  return out;
}

GpuNest emit_gpu_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, const Target& target) {
  return write(lower_named(attrs, inputs, outputs),
               {.target = target, .wide = is_wide(inputs), .part = KernelPart::kRows}, name);
}

GpuNest emit_gpu_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs, const std::string& name, bool run,
                        const Target& target) {
  const bool wide = is_wide(inputs) || is_wide(outputs);
  return write(lower_named(attrs, inputs, outputs),
               {.target = target, .wide = wide, .part = run ? KernelPart::kRun : KernelPart::kElement}, name);
}

GpuNest emit_gpu_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs, DType memory, const Target& target) {
  Lowered lowered = lower_named(attrs, inputs, outputs);
  GpuFacts facts{.target = target, .wide = is_wide(inputs) || is_wide(outputs), .memory = memory};
  facts.lanes = lowered.parameters.product_of(lowered.nest.rows) * lowered.parameters.product_of(lowered.nest.inner) >=
                kFewElements;
  return write(lowered, facts);
}

std::string gpu_kernel_name(const std::string& name, const std::string& text, const GpuFacts& facts) {
  std::string form = format("{}{}", facts.lanes ? "" : "s", facts.wide ? "w" : "");
  if (facts.transposed_along >= 0) form += format("t{}", facts.transposed_along);
  if (facts.column_lanes) form += "c";
  if (facts.short_rows) form += "f";
  if (facts.held_vectors > 0) form += format("k{}", facts.held_vectors);
  return format("{}_{}{}", name.substr(0, 96), hash_hex(text).substr(0, 12), form);
}

}  // namespace sinter
