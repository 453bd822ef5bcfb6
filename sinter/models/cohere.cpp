// Cohere's Command R, and its successor: Llama with attention and MLP side by side behind one norm without bias, neighbours
// rotated, and scaled logits; in the successor most layers slide, and the others know no positions.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig cohere_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.order = BlockOrder::kSideBySide;
  c.norm = NormKind::kLayer;
  c.norm_eps = file.number("layer_norm_eps", 1e-5);
  c.logit_scale = file.number("logit_scale", 0.0625);
  if (file.boolean("use_qk_norm", false)) c.qk_norm = QkNorm::kOfEachHead;
  c.ropes[0].interleaved = true;
  return c;
}

static ModelConfig cohere2_config(const ConfigFile& file) {
  ModelConfig c = cohere_config(file);
  c.windows = windows_by_type(file, layer_types(file, file.size("sliding_window_pattern", 4)));
  RopeConfig still = c.ropes[0];
  still.dim = 0;
  c.ropes.push_back(still);
  for (int64_t window : c.windows) c.layer_rope.push_back(window > 0 ? 0 : 1);
  return c;
}

Family cohere_family() { return relative_of_llama<cohere_config>("cohere", "CohereForCausalLM"); }
Family cohere2_family() { return relative_of_llama<cohere2_config>("cohere2", "Cohere2ForCausalLM"); }

}  // namespace sinter::models
