// Mistral: Llama with a sliding window.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig mistral_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  return c;
}

Family mistral_family() { return relative_of_llama<mistral_config>("mistral", "MistralForCausalLM"); }

}  // namespace sinter::models
