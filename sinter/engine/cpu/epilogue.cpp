#include "sinter/engine/cpu/epilogue.h"

#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/engine/kernel.h"
#include "sinter/engine/step/kernel_parameters.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

CpuEpilogue emit_cpu_epilogue(const ContractionParts::Inner& epilogue, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs) {
  auto own = geometries_of(epilogue.operands, inputs, outputs);
  KernelParameters parameters;
  NamedFused named = name_sizes(epilogue.attrs(), own.inputs, own.outputs, parameters);
  LoopNest nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts, parameters.names());
  let_plant(nest);
  CpuEpilogue out;
  out.operands = epilogue.operands;
  out.name = nest.name;
  out.indexing = nest.indexing;
  out.back = nest.back;
  out.params = parameters.values_for(nest);
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  auto written = write_kernel(nest, kernel_name(nest.name));
  let_plant(written.emitted);
  out.text = std::move(written.emitted.text);
  return out;
}

void CpuEpilogue::load() {
  if (text.empty() || function) return;
  std::string symbol = kernel_name(name);
  auto loaded = runtime::compile_cpu(text, symbol, codegen::cpu_prelude(runtime::host_target().vector_bytes / 4));
  function = loaded->function<Function>(symbol);
  code = loaded;
}

}  // namespace sinter
