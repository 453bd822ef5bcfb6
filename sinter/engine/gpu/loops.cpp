#include "sinter/engine/gpu/loops.h"

#include "sinter/base/error.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/engine/kernel_stages.h"

namespace sinter {

WrittenLoops write_gpu_loops(const LoopNest& nest, const std::string& name, const GpuFacts& facts) {
  Schedule plan = schedule(nest, facts);
  auto text = codegen::emit_gpu(nest, plan, gpu_kernel_name(name, nest.text(), facts));
  if (kernels_are_noted()) note_kernel({text.name, nest.text(), to_string(plan), text.text});
  WrittenLoops out{text.name, text.text, {codegen::GpuLaunch::of(text), text.range, text.work, nest.parameters, {}}};
  for (auto& operand : nest.operands) out.loops.is_address.push_back(!operand.scalar);
  return out;
}

GpuLoops::Launch GpuLoops::launch(const int64_t* args, int multiprocessors) const {
  const size_t operands = is_address.size();
  auto evaluate = [&](const Dim& d) {
    if (d.is_number()) return d.number();
    return d
        .substitute([&](const std::string& name) {
          for (size_t i = 0; i < parameters.size(); ++i)
            if (parameters[i].name == name) return Dim(args[operands + i]);
          SINTER_INTERNAL_ASSERT(false, "a kernel's range depends on {}", name);
        })
        .number();
  };
  Launch out;
  for (size_t i = 0; i < operands; ++i) is_address[i] ? out.slots.add_address(args[i]) : out.slots.add_number(args[i]);
  out.slots.add_numbers({args + operands, parameters.size() + 1});
  out.range = evaluate(range);
  out.geometry = codegen::gpu_geometry(spread, out.range, evaluate(work), multiprocessors);
  return out;
}

}  // namespace sinter
