#include "sinter/engine/hip/engine.h"

#include <chrono>
#include <deque>
#include <mutex>

#include "sinter/codegen/hip/prelude.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/engine/gpu/loops.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/engine/kernel.h"
#include "sinter/runtime/hip/hip.h"

namespace sinter {

namespace {

// What writers know of the device, and the prelude that follows from it.
struct HipDevice {
  Device device;
  Target target;
  std::string prelude;
  int multiprocessors;

  explicit HipDevice(Device d)
      : device(d),
        target(codegen::hip_target(runtime::hip_device_info(d.index()).architecture)),
        prelude(codegen::hip_prelude(target)),
        multiprocessors(runtime::hip_device_info(d.index()).multiprocessors) {}

  runtime::HipFunction load(const std::string& text, const std::string& name) const {
    return runtime::load_hip(prelude + text, name, device.index());
  }
  // With k::Args of gpu_kernel.embed: nothing is indirect, since programs are not recorded.
  void launch(runtime::HipFunction function, const codegen::GpuGeometry& geometry, int64_t range,
              const StepArguments& slots) const {
    SmallVector<int64_t, 64> arguments;
    for (int i = 0; i < 8; ++i) arguments.push_back(0);
    arguments.push_back(range);
    for (int64_t value : slots.values()) arguments.push_back(value);
    runtime::hip_launch(function, device.index(), geometry.blocks, geometry.threads, arguments.data());
  }
};

class HipLoopKernel final : public DeviceKernel {
 public:
  HipLoopKernel(const WrittenLoops& written, const HipDevice& device)
      : loops_(written.loops), device_(device), function_(device.load(written.text, written.name)) {}
  void launch(const int64_t* args) const override {
    auto start = loops_.launch(args, device_.multiprocessors);
    device_.launch(function_, start.geometry, start.range, start.slots);
  }

 private:
  GpuLoops loops_;
  const HipDevice& device_;
  runtime::HipFunction function_;
};

// A fused node: one nest, or several side by side, which are launched one after the other.
class HipStep final : public CompiledStep {
 public:
  HipStep(std::vector<GpuSibling> nests, const HipDevice& device) : nests_(std::move(nests)), device_(device) {
    for (auto& [nest, operands] : nests_) name_ += (name_.empty() ? "" : " | ") + nest.name;
  }

  void load() override {
    for (size_t i = functions_.size(); i < nests_.size(); ++i)
      functions_.push_back(device_.load(nests_[i].nest.kernel.text, nests_[i].nest.kernel.name));
  }
  bool is_loaded() const override { return functions_.size() == nests_.size(); }
  size_t code_length() const override {
    size_t length = 0;
    for (auto& [nest, operands] : nests_) length += nest.kernel.text.size();
    return length;
  }

  void launch(const StepArguments& slots) const override {
    for (size_t i = 0; i < nests_.size(); ++i) {
      auto& [nest, operands] = nests_[i];
      StepArguments all;
      for (int at : operands) all.add_from(slots, size_t(at));
      all.add_numbers(nest.params);
      const bool reports = !nest.indexing.empty();
      all.add_number(reports ? runtime::hip_runtime().error_cell(device_.device.index(), nest.indexing) : 0);
      auto geometry = codegen::gpu_geometry(nest.spread(), nest.range, nest.work, device_.multiprocessors);
      device_.launch(functions_[i], geometry, nest.range, all);
    }
  }

 private:
  std::vector<GpuSibling> nests_;
  const HipDevice& device_;
  std::vector<runtime::HipFunction> functions_;
};

class HipEngine final : public DeviceEngine {
 public:
  explicit HipEngine(int index) : device_(kHIP, index) {}

  const Target& target() const override { return device().target; }
  std::string kind(const Graph&) const override { return "hip"; }
  std::string machine() const override { return runtime::hip_device_info(device_.index()).architecture; }
  int64_t cache_bytes() const override { return runtime::hip_device_info(device_.index()).l2_bytes; }
  bool queues() const override { return true; }

  std::shared_ptr<const DeviceKernel> compile_loops(const LoopNest& nest, const std::string& name,
                                                    const GpuFacts& facts) const override {
    return std::make_shared<HipLoopKernel>(write_gpu_loops(nest, name, facts), device());
  }

  // Products, convolutions and attention run by their own loops: there are no templates for matrix cores, nor libraries.
  std::vector<OpKernel> op_kernels() const override { return {}; }

  std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                          std::span<const TensorImpl* const> outputs) const override {
    return std::make_unique<HipStep>(emit_hip_step(attrs, inputs, outputs, device().target, device().multiprocessors),
                                     device());
  }
  IntList result_strides(const Node&, const IntList& sizes, const TensorImpl*, FunctionRef<const TensorImpl*()>) const override {
    return contiguous_strides(sizes);
  }

  void synchronize() const override { runtime::hip_synchronize(device_.index()); }
  void fill(void* memory, unsigned char value, size_t bytes) const override {
    runtime::hip_fill(memory, device_.index(), value, bytes);
  }
  // By the host's clock, with the device idle before and after each.
  std::vector<double> time_each(size_t count, FunctionRef<void(size_t)> launch, size_t) const override {
    for (size_t i = 0; i < count; ++i) launch(i);  // whatever the first launch of a kernel needs
    synchronize();
    std::vector<double> seconds;
    for (size_t i = 0; i < count; ++i) {
      auto start = std::chrono::steady_clock::now();
      launch(i);
      synchronize();
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return seconds;
  }

 private:
  // Looked at when it is first needed, so that graphs can be made for devices that are not here.
  const HipDevice& device() const {
    std::call_once(once_, [this] { here_ = std::make_unique<HipDevice>(device_); });
    return *here_;
  }

  Device device_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const HipDevice> here_;
};

}  // namespace

std::vector<GpuSibling> emit_hip_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                      std::span<const TensorImpl* const> outputs, const Target& target,
                                      int multiprocessors) {
  auto count = [&] { return multiprocessors; };
  if (attrs.kind == FusedKind::kSiblings) return emit_sibling_nests(attrs, inputs, outputs, {target, count});
  std::vector<int> operands;
  for (size_t i = 0; i < inputs.size() + outputs.size(); ++i) operands.push_back(int(i));
  GpuNest nest = emit_gpu_nest(attrs, inputs, outputs, {target, count});
  if (nest.range == 0) return {};
  return {{std::move(nest), std::move(operands)}};
}

const DeviceEngine& hip_engine(Device device) {
  static std::mutex mutex;
  static std::deque<HipEngine> engines;
  std::lock_guard lock(mutex);
  while (engines.size() <= size_t(device.index())) engines.emplace_back(int(engines.size()));
  return engines[size_t(device.index())];
}

}  // namespace sinter
