// Granite: Llama with factors on embeddings, attention, residuals and logits.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig granite_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.embedding_scale = file.number("embedding_multiplier", 1);
  c.attention_scale = file.number("attention_multiplier", 1);
  c.residual_scale = file.number("residual_multiplier", 1);
  c.logit_scale = 1 / file.number("logits_scaling", 1);
  return c;
}

Family granite_family() { return relative_of_llama<granite_config>("granite", "GraniteForCausalLM"); }

}  // namespace sinter::models
