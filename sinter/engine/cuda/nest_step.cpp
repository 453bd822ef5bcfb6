#include "sinter/engine/cuda/nest_step.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sinter/base/log.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/step/joined_name.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"

namespace sinter {

namespace {

int multiprocessors_of(Device device) { return runtime::cuda_device_info(device.index()).multiprocessors; }

class NestStep final : public CudaStep {
 public:
  NestStep(CudaNest nest, Device device) : CudaStep(device), nest_(std::move(nest)) {
    name_ = nest_.name;
    if (nest_.range == 0) return;
    kernels_.push_back(std::make_shared<CudaKernel>(CudaKernel{{nest_.kernel.name, nest_.kernel.text, 0}}));
    grid_ = grid_of(codegen::gpu_geometry(nest_.spread(), nest_.range, nest_.work, multiprocessors_of(device)));
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
    const int processors = multiprocessors_of(device);
    std::vector<codegen::GpuKernelText> texts;
    std::string all_text;
    unsigned blocks = 0;
    std::vector<std::string> names;
    for (auto& s : siblings_) {
      names.push_back(s.nest.name);
      s.geometry = codegen::gpu_sibling_geometry(s.nest.spread(), s.nest.range, s.nest.work, processors);
      blocks += s.geometry.blocks;
      texts.push_back(s.nest.kernel);
      all_text += s.nest.kernel.name + "\n";
    }
    name_ = joined_name(names);
    auto text = codegen::emit_gpu_siblings(texts, gpu_kernel_name("k_siblings", all_text, {}));
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

// One launch after the other: what cannot stand beside others.
class SequenceStep final : public CudaStep {
 public:
  struct Part {
    std::unique_ptr<CudaStep> step;
    std::vector<int> operands;
  };
  SequenceStep(std::vector<Part> parts, Device device) : CudaStep(device), parts_(std::move(parts)) {
    std::vector<std::string> names;
    for (auto& part : parts_) {
      names.push_back(part.step->name());
      kernels_.insert(kernels_.end(), part.step->kernels().begin(), part.step->kernels().end());
    }
    name_ = joined_name(names);
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
  slots.add_number(indexing.empty() ? 0 : runtime::cuda_error_cell(device.index(), indexing));
}

CudaNest emit_cuda_nest(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                        std::span<const TensorImpl* const> outputs) {
  auto multiprocessors = [&] { return multiprocessors_of(outputs[0]->device); };
  return {emit_gpu_nest(attrs, inputs, outputs, {codegen::kCudaTarget, multiprocessors})};
}

CudaNest emit_cuda_prologue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                            std::span<const TensorImpl* const> outputs, const std::string& name) {
  return {emit_gpu_prologue(attrs, inputs, outputs, name, codegen::kCudaTarget)};
}

CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, const std::string& name, bool run) {
  return {emit_gpu_follow(attrs, inputs, outputs, name, run, codegen::kCudaTarget)};
}

CudaNest emit_cuda_follow(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs, DType memory) {
  return {emit_gpu_follow(attrs, inputs, outputs, memory, codegen::kCudaTarget)};
}

std::unique_ptr<CudaStep> make_nest_step(CudaNest nest, Device device) {
  return std::make_unique<NestStep>(std::move(nest), device);
}

std::unique_ptr<CudaStep> make_sibling_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                            std::span<const TensorImpl* const> outputs, Device device) {
  auto multiprocessors = [&] { return multiprocessors_of(device); };
  std::vector<SequenceStep::Part> parts;
  std::vector<SiblingStep::Sibling> beside;
  size_t slots = 0;
  auto close = [&] {
    if (beside.size() == 1) {
      parts.push_back({make_nest_step(std::move(beside[0].nest), device), beside[0].operands});
    } else if (!beside.empty()) {
      std::vector<int> all(inputs.size() + outputs.size());
      std::iota(all.begin(), all.end(), 0);
      parts.push_back({std::make_unique<SiblingStep>(std::move(beside), device), std::move(all)});
    }
    beside.clear();
    slots = 0;
  };
  for (auto& [nest, operands] : emit_sibling_nests(attrs, inputs, outputs, {codegen::kCudaTarget, multiprocessors})) {
    CudaNest own{std::move(nest)};
    if (own.kernel.spread == Spread::kTiles) {
      parts.push_back({make_nest_step(std::move(own), device), operands});
      continue;
    }
    const size_t more = size_t(codegen::kSiblingSlots + own.kernel.slots);
    if (slots + more > kMostSlots) close();
    slots += more;
    beside.push_back({std::move(own), operands, {}});
  }
  close();
  if (parts.size() == 1 && parts[0].operands.size() == inputs.size() + outputs.size()) return std::move(parts[0].step);
  return std::make_unique<SequenceStep>(std::move(parts), device);
}

}  // namespace sinter
