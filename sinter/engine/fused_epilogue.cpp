#include "sinter/engine/fused_epilogue.h"

#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/kernel_parameters.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

CompiledEpilogue compile_epilogue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                  std::span<const TensorImpl* const> outputs) {
  KernelParameters parameters;
  NamedFused named = name_sizes(attrs, inputs, outputs, parameters);
  FusedNest nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts);
  let_plant(nest);
  CompiledEpilogue out{{}, nest.name, nest.indexing, nest.back};
  for (auto& name : nest.params()) out.epilogue.params.push_back(parameters.value(name));
  std::string name = kernel_name(nest.name);
  auto emitted = codegen::emit_cpu(nest, name);
  let_plant(emitted);
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", emitted.text);
  auto code = runtime::compile_cpu(emitted.text, name, codegen::cpu_prelude(runtime::host_target().vector_bytes / 4));
  out.epilogue.function = code->function<FusedEpilogue::Function>(name);
  out.epilogue.code = code;
  return out;
}

}  // namespace sinter
