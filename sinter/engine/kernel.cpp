#include "sinter/engine/kernel.h"

#include <algorithm>

#include "sinter/base/hash.h"
#include "sinter/base/stage_times.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

namespace {

// Elements a piece of work should touch: about 10 µs of streaming, well above the cost of handing it out.
constexpr int64_t kPieceElements = 32768;

thread_local bool launches_nothing = false;

// "add_f32_i64": what the kernel does and on what.
std::string kernel_name(const LoopNest& nest) {
  std::string name;
  for (char c : nest.name) name += std::isalnum((unsigned char)c) ? c : '_';
  for (auto& operand : nest.operands) name += "_" + to_string(operand.dtype);
  return "k_" + name;
}

int vector_lanes() { return runtime::host_target().vector_bytes / 4; }

}  // namespace

WrittenKernel write_kernel(const LoopNest& nest, const std::string& name, const CpuFacts& facts) {
  WrittenKernel out;
  out.plan = schedule(nest, facts);
  out.emitted = codegen::emit_cpu(nest, out.plan, name);
  Kernel& kernel = out.kernel;
  kernel.name = name;
  kernel.granule = std::max<int64_t>(1, int64_t(vector_lanes()) * out.plan.piece_vectors);
  kernel.parameters = nest.parameters;
  for (auto& axis : out.plan.range) kernel.range_dims.push_back(axis.dim);
  kernel.split_last = out.plan.range.size() < nest.rows.size() + (nest.is_map() ? nest.inner.size() : 0);
  if (kernels_are_noted()) note_kernel(stages_of(nest, out));
  return out;
}

KernelStages stages_of(const LoopNest& nest, const WrittenKernel& written) {
  return {written.kernel.name, nest.text(), to_string(written.plan), written.emitted.text};
}

std::shared_ptr<const Kernel> WrittenKernel::compile() const {
  auto out = std::make_shared<Kernel>(kernel);
  auto code = runtime::compile_cpu(emitted.text, out->name, codegen::cpu_prelude(vector_lanes()));
  out->function = code->function<Kernel::Function>(out->name);
  out->code = code;
  return out;
}

std::shared_ptr<const Kernel> compile_kernel(const LoopNest& nest, Device device, KernelOptions options) {
  StageTimer timer(CompileStage::kSchedule);
  const std::string name = kernel_name(nest);
  auto& engine = engine_of(device);
  if (!engine.target().gpu) return write_kernel(nest, name, {.stream = options.stream}).compile();
  auto kernel = std::make_shared<Kernel>();
  const GpuFacts facts{.target = engine.target(), .wide = options.wide, .transposed_along = options.transposed_along};
  kernel->name = name;
  kernel->parameters = nest.parameters;
  kernel->on_device = engine.compile_loops(nest, name, facts);
  return kernel;
}

int64_t grain_of(const Kernel& kernel, int64_t work) {
  int64_t pieces = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(work, 1));
  return (pieces + kernel.granule - 1) / kernel.granule * kernel.granule;
}

NoLaunches::NoLaunches() { launches_nothing = true; }
NoLaunches::~NoLaunches() { launches_nothing = false; }
bool launches_are_off() { return launches_nothing; }

void launch(const Kernel& kernel, const int64_t* args, int64_t range, int64_t work) {
  if (launches_nothing) [[unlikely]]
    return;
  if (kernel.on_device) return kernel.on_device->launch(args);
  parallel_for(0, range, grain_of(kernel, work), [&](int64_t begin, int64_t end) { kernel.function(args, begin, end); });
}

}  // namespace sinter
