#include "tests/codegen/gpu_program.h"

#include <algorithm>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/hip/engine.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/creation.h"
#include "tests/codegen/nests.h"

namespace sinter::testing {

namespace {

constexpr int kMultiprocessors = 2;

int64_t slot_of(const TensorArg& arg) {
  return arg.is_scalar() ? eager::slot_of(arg.scalar()) : eager::slot_of(arg.tensor().impl());
}

// The operand of a fused node that a result of it starts from, where it ends with a scatter; -1 for none.
int starts_from(const FusedAttrs& attrs, size_t result) {
  const Graph& body = *attrs.body;
  const Value& out = body.outputs()[result];
  auto position = [&](const Value& v) {
    return int(std::find(body.inputs().begin(), body.inputs().end(), v) - body.inputs().begin());
  };
  if (out.node->op->kind == OpKind::kScatter) return position(out.node->inputs[0]);
  if (out.node->op != &fused_op()) return -1;
  int inner = starts_from(out.node->attrs.as<FusedAttrs>(), size_t(out.index));
  return inner < 0 ? -1 : position(out.node->inputs[size_t(inner)]);
}

}  // namespace

GpuProgram::GpuProgram(const Graph& graph, const TensorList& inputs, const Target& target) : target_(target) {
  values_.resize(graph.nodes().size());
  size_t next = 0;
  for (auto& node : graph.nodes()) {
    auto& made = values_[size_t(node.id)];
    if (node.op->kind == OpKind::kInput) made = {inputs.at(next++)};
    if (node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar) continue;
    std::vector<TensorArg> operands;
    for (auto& v : node.inputs)
      operands.push_back(v.node->op->kind == OpKind::kScalar ? TensorArg(v.node->attrs.as<ScalarAttrs>().value)
                                                             : TensorArg(values_[size_t(v.node->id)][size_t(v.index)]));
    if (node.op->kind == OpKind::kView && node.op->alias) {
      made = eager::execute(*node.op, operands, node.attrs);
      continue;
    }
    for (auto& type : node.types) made.push_back(zeros(type.shape, type.dtype));
    if (node.op == &fused_op())
      add_fused(node, operands, made);
    else
      add_loops(node, operands, made.at(0));
  }
  for (auto& v : graph.outputs()) results_.push_back(values_[size_t(v.node->id)][size_t(v.index)]);
}

void GpuProgram::add_fused(const Node& node, const std::vector<TensorArg>& operands, const TensorList& made) {
  auto& attrs = node.attrs.as<FusedAttrs>();
  std::vector<const TensorImpl*> inputs, outputs;
  std::vector<int64_t> slots;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (auto& arg : operands) inputs.push_back(arg.is_scalar() ? nullptr : &arg.tensor().impl());
  for (auto& t : made) outputs.push_back(&t.impl());
  for (auto& arg : operands) slots.push_back(slot_of(arg));
  for (auto& t : made) slots.push_back(eager::slot_of(t.impl()));
  for (size_t r = 0; r < made.size(); ++r)
    if (int from = starts_from(attrs, r); from >= 0) copies.emplace_back(made[r], operands[size_t(from)].tensor());
  for (auto& [nest, positions] : emit_hip_step(attrs, inputs, outputs, target_, kMultiprocessors)) {
    Step step;
    step.copies = std::exchange(copies, {});
    for (int at : positions) step.slots.push_back(slots[size_t(at)]);
    step.slots.insert(step.slots.end(), nest.params.begin(), nest.params.end());
    add(nest.kernel, nest.range, nest.work, std::move(step));
  }
}

void GpuProgram::add_loops(const Node& node, const std::vector<TensorArg>& operands, const Tensor& made) {
  SINTER_INTERNAL_ASSERT(is_loops(*node.op), "{} has no loops", node.op->name);
  std::vector<Layout> layouts;
  std::vector<Type> types;
  Step step;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(node.inputs[i].type());
    Layout layout{.scalar = operands[i].is_scalar(), .strides = {}};
    if (!layout.scalar)
      for (int64_t stride : operands[i].tensor().impl().strides) layout.strides.push_back(stride);
    layouts.push_back(layout);
    step.slots.push_back(slot_of(operands[i]));
  }
  step.slots.push_back(eager::slot_of(made.impl()));
  layouts.push_back(contiguous_layout(node.types[0].shape));
  LoopNest nest = lower(OpCall{*node.op, types, node.attrs}, node.types[0], layouts);
  if (node.op->kind == OpKind::kScatter) step.copies.emplace_back(made, operands[0].tensor());
  auto kernel = cuda_text(nest, format("k_{}_{}", node.op->name, node.id), {.target = target_});
  const int64_t range = kernel.range.number(), work = kernel.work.number();
  add(kernel, range, work, std::move(step));
}

void GpuProgram::add(const codegen::GpuKernelText& kernel, int64_t range, int64_t work, Step step) {
  step.kernel = known(kernel);
  step.range = range;
  step.geometry = codegen::gpu_geometry(kernel, range, work, kMultiprocessors);
  steps_.push_back(std::move(step));
}

size_t GpuProgram::known(const codegen::GpuKernelText& kernel) {
  auto same = [&](auto& other) { return other.name == kernel.name; };
  auto found = std::find_if(kernels_.begin(), kernels_.end(), same);
  if (found == kernels_.end()) found = kernels_.insert(found, kernel);
  return size_t(found - kernels_.begin());
}

std::string GpuProgram::run() const {
  KernelsOnHost program(kernels_, target_);
  for (auto& step : steps_) {
    for (auto& [to, from] : step.copies) to.copy_(from);
    int64_t error[3] = {};
    auto slots = step.slots;
    slots.push_back(int64_t(reinterpret_cast<uintptr_t>(error)));
    auto problem = program.run(kernels_[step.kernel], step.geometry, step.range, slots);
    if (problem.empty() && error[0]) problem = "an index is out of range";
    if (!problem.empty()) return kernels_[step.kernel].name + ": " + problem;
  }
  return {};
}

}  // namespace sinter::testing
