// OLMo 2: Llama with norms behind attention and MLP alone, and one norm over all heads of query and key.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig olmo2_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.norm_eps = file.number("rms_norm_eps", 1e-5);
  c.order = BlockOrder::kNormsBehind;
  c.qk_norm = QkNorm::kWhole;
  return c;
}

Family olmo2_family() { return relative_of_llama<olmo2_config>("olmo2", "Olmo2ForCausalLM"); }

}  // namespace sinter::models
