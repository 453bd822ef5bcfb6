#include "sinter/engine/cuda/loops.h"

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/kernel_stages.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {

std::string cuda_name(const std::string& name, const std::string& text, const GpuFacts& facts) {
  std::string form = format("{}{}", facts.lanes ? "" : "s", facts.wide ? "w" : "");
  if (facts.turn >= 0) form += format("t{}", facts.turn);
  if (facts.keep > 0) form += format("k{}", facts.keep);
  return format("{}_{}{}", name.substr(0, 96), hash_hex(text).substr(0, 12), form);
}

runtime::CudaGrid grid_of(const codegen::GpuGeometry& geometry) {
  runtime::CudaGrid grid;
  grid.blocks[0] = geometry.blocks;
  grid.threads[0] = geometry.threads[0];
  grid.threads[1] = geometry.threads[1];
  grid.shared_bytes = geometry.shared_bytes;
  grid.overlaps_previous = true;
  return grid;
}

std::shared_ptr<const CudaLoopKernel> compile_cuda_loops(const LoopNest& nest, const std::string& name, Device device,
                                                         const GpuFacts& facts) {
  Schedule plan = schedule(nest, facts);
  auto text = codegen::emit_gpu(nest, plan, cuda_name(name, nest.text(), facts));
  if (kernels_are_noted()) note_kernel({text.name, nest.text(), to_string(plan), text.text});
  auto kernel = std::make_shared<CudaLoopKernel>();
  std::vector<runtime::CudaSource> sources{{text.name, text.text, 0}};
  kernel->function = runtime::load_cuda(sources, codegen::cuda_prelude(), device.index)[0];
  kernel->spread = codegen::GpuLaunch::of(text);
  kernel->range = text.range;
  kernel->work = text.work;
  kernel->parameters = nest.parameters;
  for (auto& operand : nest.operands) kernel->is_address.push_back(!operand.scalar);
  kernel->device = device;
  return kernel;
}

void launch(const CudaLoopKernel& kernel, const int64_t* args) {
  size_t operands = kernel.is_address.size();
  auto evaluate = [&](const Dim& d) {
    if (d.is_number()) return d.number();
    return d
        .substitute([&](const std::string& name) {
          for (size_t i = 0; i < kernel.parameters.size(); ++i)
            if (kernel.parameters[i].name == name) return Dim(args[operands + i]);
          SINTER_INTERNAL_ASSERT(false, "a kernel's range depends on {}", name);
        })
        .number();
  };
  StepArguments slots;
  for (size_t i = 0; i < operands; ++i) kernel.is_address[i] ? slots.add_address(args[i]) : slots.add_number(args[i]);
  slots.add_numbers({args + operands, kernel.parameters.size() + 1});
  int64_t range = evaluate(kernel.range);
  int processors = runtime::cuda_device_info(kernel.device.index).multiprocessors;
  auto geometry = codegen::gpu_geometry(kernel.spread, range, evaluate(kernel.work), processors);
  cuda_launch(kernel.function, kernel.device, grid_of(geometry), range, slots);
}

}  // namespace sinter
