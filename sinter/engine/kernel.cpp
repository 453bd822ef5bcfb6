#include "sinter/engine/kernel.h"

#include <algorithm>

#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/base/stage_times.h"
#include "sinter/base/thread_pool.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/kernel_text.h"
#include "sinter/loops/schedule.h"
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

}  // namespace

std::shared_ptr<const Kernel> compile_kernel(const LoopNest& nest, Device device, KernelOptions options) {
  StageTimer timer(CompileStage::kSchedule);
  auto kernel = std::make_shared<Kernel>();
  kernel->name = kernel_name(nest);
  kernel->params = nest.params();
  // Coordinates are named i0, i1, … by lowering.
  for (auto& axis : nest.parallel) kernel->parallel_axes.push_back(std::stoi(to_string(axis.symbol).substr(1)));
  if (device.is_cuda()) {
    kernel->cuda = compile_cuda_loops(nest, kernel->name, device, {.wide = options.wide, .turn = options.turn});
    return kernel;
  }
  auto plan = schedule(nest, options.stream);
  let_plant(plan);
  auto emitted = codegen::emit_cpu(nest, plan, kernel->name);
  kernel->split_last = emitted.split_last;
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}schedule: {}\n{}", nest.text(), plan, emitted.text);
  if (auto* texts = KernelTexts::current()) texts->add({kernel->name, nest.text(), to_string(plan), emitted.text});
  int lanes = runtime::host_target().vector_bytes / 4;
  kernel->granule = plan.mode != VectorMode::kColumns || emitted.split_last ? 1 : int64_t(lanes) * emitted.lanes_per_step;
  if (emitted.rows_in_lanes) kernel->granule = lanes;
  auto code = runtime::compile_cpu(emitted.text, kernel->name, codegen::cpu_prelude(lanes));
  kernel->function = code->function<Kernel::Function>(kernel->name);
  kernel->code = code;
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
  if (kernel.cuda) return launch(*kernel.cuda, args);
  parallel_for(0, range, grain_of(kernel, work), [&](int64_t begin, int64_t end) { kernel.function(args, begin, end); });
}

}  // namespace sinter
