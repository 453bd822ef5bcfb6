#include "sinter/engine/cpu/epilogue.h"

#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/kernel_text.h"
#include "sinter/engine/step/kernel_parameters.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

CpuEpilogue emit_cpu_epilogue(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs) {
  KernelParameters parameters;
  NamedFused named = name_sizes(attrs, inputs, outputs, parameters);
  FusedNest nest = lower_fused(named.attrs.as<FusedAttrs>(), named.layouts);
  let_plant(nest);
  CpuEpilogue out;
  out.name = nest.name;
  out.indexing = nest.indexing;
  out.back = nest.back;
  for (auto& name : nest.params()) out.params.push_back(parameters.value(name));
  auto emitted = codegen::emit_cpu(nest, kernel_name(nest.name));
  let_plant(emitted);
  out.text = std::move(emitted.text);
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", out.text);
  if (auto* texts = KernelTexts::current()) texts->add({kernel_name(nest.name), nest.text(), {}, out.text});
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
