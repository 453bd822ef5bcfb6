// Phi-3 and Phi-4: Llama with one projection for query, key and value, and one for gate and up.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig phi3_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.qkv_layout = QkvLayout::kJoined;
  c.mlp = MlpKind::kJoinedGated;
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  return c;
}

Family phi3_family() { return relative_of_llama<phi3_config>("phi3", "Phi3ForCausalLM"); }

}  // namespace sinter::models
