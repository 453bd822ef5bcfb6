#include "sinter/engine/cuda/nest_step.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/eager/kernel_cache.h"
#include "sinter/engine/kernel_stages.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"

namespace sinter {

namespace {

// Fewer elements than this are spread over more threads, one each.
constexpr int64_t kFewElements = 65536;

// Vectors of a row that a thread keeps at most.
constexpr int64_t kMostKept = 8;

bool is_wide(std::span<const TensorImpl* const> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](auto* t) { return t && eager::is_wide(*t); });
}

// As many as a thread has of a row, unless that is too long for its registers.
int vectors_to_keep(const LoopNest& nest, int64_t rows, int64_t length, Device device) {
  const Schedule plan = schedule(nest, GpuFacts());
  if (plan.lanes == 1) return 0;
  auto geometry = codegen::gpu_geometry(codegen::GpuLaunch::of(plan), rows, length,
                                         runtime::cuda_device_info(device.index).multiprocessors);
  int64_t step = int64_t(geometry.threads[0]) * plan.lanes, each = (length + step - 1) / step;
  return each <= kMostKept ? int(each) : 0;
}

struct Lowered {
  KernelParameters parameters;
  LoopNest nest;
};
Lowered lower_named(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                    std::span<const TensorImpl* const> outputs) {
  Lowered out;
  NamedFused named = name_sizes(attrs, inputs, outputs, out.parameters);
  out.nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts, out.parameters.names(), memory_order(attrs, outputs));
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", out.nest.text());
  return out;
}

// The nest as text, and the numbers that it is launched with. Without a name it gets one that no other text has.
CudaNest write(const Lowered& lowered, const GpuFacts& facts, std::string name = {}) {
  auto& [parameters, nest] = lowered;
  CudaNest out;
  out.name = nest.name;
  out.indexing = nest.indexing;
  if (name.empty()) name = cuda_name(kernel_name(nest.name), (nest.tiles ? to_string(facts.memory) : "") + nest.text(), facts);
  Schedule plan = schedule(nest, facts);
  out.kernel = codegen::emit_gpu(nest, plan, name);
  out.params = parameters.values_for(nest);
  out.range = parameters.evaluate(out.kernel.range);
  out.work = parameters.evaluate(out.kernel.work);
  if (kernels_are_noted()) note_kernel({name, nest.text(), to_string(plan), out.kernel.text});
  return out;
}

class NestStep final : public CudaStep {
 public:
  NestStep(CudaNest nest, Device device) : CudaStep(device), nest_(std::move(nest)) {
    name_ = nest_.name;
    if (nest_.range == 0) return;
    kernels_.push_back(std::make_shared<CudaKernel>(CudaKernel{{nest_.kernel.name, nest_.kernel.text, 0}}));
    int processors = runtime::cuda_device_info(device.index).multiprocessors;
    grid_ = grid_of(codegen::gpu_geometry(nest_.spread(), nest_.range, nest_.work, processors));
  }

  void launch(const StepArguments& slots) const override {
    if (kernels_.empty()) return;
    StepArguments all = slots;
    nest_.add_rest(all, device_);
    cuda_launch(kernels_[0]->function, device_, grid_, nest_.range, all);
  }

 private:
  CudaNest nest_;
  runtime::CudaGrid grid_;
};

class SiblingStep final : public CudaStep {
 public:
  struct Sibling {
    CudaNest nest;
    std::vector<int> operands;
    codegen::GpuGeometry geometry;
  };

  SiblingStep(std::vector<Sibling> siblings, Device device) : CudaStep(device), siblings_(std::move(siblings)) {
    int processors = runtime::cuda_device_info(device.index).multiprocessors;
    std::vector<codegen::GpuKernelText> texts;
    std::string all_text;
    unsigned blocks = 0;
    for (auto& s : siblings_) {
      name_ += (name_.empty() ? "" : " | ") + s.nest.name;
      s.geometry = codegen::gpu_sibling_geometry(s.nest.spread(), s.nest.range, s.nest.work, processors);
      blocks += s.geometry.blocks;
      texts.push_back(s.nest.kernel);
      all_text += s.nest.kernel.name + "\n";
    }
    auto text = codegen::emit_gpu_siblings(texts, cuda_name("k_siblings", all_text, {}));
    if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", text.text);
    kernels_.push_back(std::make_shared<CudaKernel>(CudaKernel{{text.name, text.text, 0}}));
    grid_.blocks[0] = blocks;
    grid_.threads[0] = codegen::kSiblingThreads;
    grid_.overlaps_previous = true;
  }

  void launch(const StepArguments& slots) const override {
    StepArguments all;
    for (auto& s : siblings_) {
      all.add_numbers(std::array<int64_t, 3>{s.geometry.blocks, s.nest.range, s.geometry.threads[0]});
      for (int at : s.operands) all.add_from(slots, size_t(at));
      s.nest.add_rest(all, device_);
    }
    cuda_launch(kernels_[0]->function, device_, grid_, 0, all);
  }

 private:
  std::vector<Sibling> siblings_;
  runtime::CudaGrid grid_;
};

// One launch each: what cannot stand beside others.
class SequenceStep final : public CudaStep {
 public:
  struct Part {
    std::unique_ptr<CudaStep> step;
    std::vector<int> operands;
  };
  SequenceStep(std::vector<Part> parts, Device device) : CudaStep(device), parts_(std::move(parts)) {
    for (auto& part : parts_) {
      name_ += (name_.empty() ? "" : " | ") + part.step->name();
      kernels_.insert(kernels_.end(), part.step->kernels().begin(), part.step->kernels().end());
    }
  }
  void launch(const StepArguments& slots) const override {
    for (auto& part : parts_) {
      StepArguments own;
      for (int at : part.operands) own.add_from(slots, size_t(at));
      part.step->launch(own);
    }
  }

 private:
  std::vector<Part> parts_;
};

}  // namespace

void CudaNest::add_rest(StepArguments& slots, Device device) const {
  slots.add_numbers(params);
  slots.add_number(indexing.empty() ? 0 : runtime::cuda_error_cell(device.index, indexing));
}

CudaNest emit_cuda_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs) {
  Lowered lowered = lower_named(attrs, inputs, outputs);
  auto& [parameters, nest] = lowered;
  GpuFacts facts{.wide = is_wide(inputs) || is_wide(outputs)};
  int64_t rows = parameters.product_of(nest.rows), inner = parameters.product_of(nest.inner);
  const bool reduces = nest.reduces();
  if (rows == 0 || (inner == 0 && !reduces)) {
    CudaNest out;
    out.name = nest.name;
    out.indexing = nest.indexing;
    return out;
  }
  facts.lanes = reduces || rows * inner >= kFewElements;
  if (reduces && nest.sweeps.size() > 1 && nest.inner.size() == 1 && !nest.reduces_own_axes())
    facts.keep = vectors_to_keep(nest, rows, inner, outputs[0]->device);
  return write(lowered, facts);
}

CudaNest emit_cuda_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                            std::span<const TensorImpl* const> outputs, const std::string& name) {
  return write(lower_named(attrs, inputs, outputs), {.wide = is_wide(inputs), .part = KernelPart::kRows}, name);
}

CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, bool run) {
  const bool wide = is_wide(inputs) || is_wide(outputs);
  return write(lower_named(attrs, inputs, outputs), {.wide = wide, .part = run ? KernelPart::kRun : KernelPart::kElement}, name);
}

CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, DType memory) {
  Lowered lowered = lower_named(attrs, inputs, outputs);
  GpuFacts facts{.wide = is_wide(inputs) || is_wide(outputs), .memory = memory};
  facts.lanes =
      lowered.parameters.product_of(lowered.nest.rows) * lowered.parameters.product_of(lowered.nest.inner) >= kFewElements;
  return write(lowered, facts);
}

std::unique_ptr<CudaStep> make_nest_step(CudaNest nest, Device device) {
  return std::make_unique<NestStep>(std::move(nest), device);
}

std::unique_ptr<CudaStep> make_sibling_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device) {
  const Graph& body = *attrs.body;
  std::vector<SiblingStep::Sibling> beside;
  std::vector<SequenceStep::Part> alone;
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
    CudaNest nest = emit_cuda_nest(node.attrs.as<FusedAttrs>(), own_inputs, own_outputs);
    if (nest.range == 0) continue;
    if (nest.kernel.spread == Spread::kTiles)
      alone.push_back({make_nest_step(std::move(nest), device), operands});
    else
      beside.push_back({std::move(nest), operands, {}});
  }
  if (!alone.empty() || beside.size() < 2) {
    for (auto& s : beside) alone.push_back({make_nest_step(std::move(s.nest), device), s.operands});
    return std::make_unique<SequenceStep>(std::move(alone), device);
  }
  return std::make_unique<SiblingStep>(std::move(beside), device);
}

}  // namespace sinter
