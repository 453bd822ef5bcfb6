// Gemma 1, 2 and 3 (text): Llama with scaled embeddings and norms by 1 + weight; from 2 on norms on both sides of a
// layer, soft caps, and layers that slide; from 3 on norms of query and key, and two rotary bases.
#include <algorithm>
#include <cmath>

#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig gemma_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  // Early files say hidden_act: gelu and mean the approximation.
  c.activation = file.text("hidden_activation", "gelu_pytorch_tanh");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.embedding_scale = std::sqrt(double(c.hidden_size));
  c.norm = NormKind::kUnitOffsetRms;
  return c;
}

static std::optional<double> cap(const ConfigFile& file, const char* key) {
  return file.contains(key) ? std::optional(file.number(key)) : std::nullopt;
}

static ModelConfig gemma2_config(const ConfigFile& file) {
  ModelConfig c = gemma_config(file);
  c.order = BlockOrder::kNormsAround;
  c.attention_scale = 1 / std::sqrt(file.number("query_pre_attn_scalar", 256));
  c.attention_softcap = cap(file, "attn_logit_softcapping");
  c.logit_softcap = cap(file, "final_logit_softcapping");
  c.windows = windows_by_type(file, layer_types(file, 2));
  return c;
}

static ModelConfig gemma3_config(const ConfigFile& file) {
  ModelConfig c = gemma2_config(file);
  c.qk_norm = QkNorm::kSharedByHeads;
  auto types = layer_types(file, file.size("sliding_window_pattern", 6));
  c.windows = windows_by_type(file, types);
  RopeConfig global = RopeConfig::read(file, c.head_dim, "full_attention");
  RopeConfig local = RopeConfig::read(file, c.head_dim, "sliding_attention");
  if (!file.contains("rope_parameters")) {
    global.theta = file.number("rope_theta", 1e6);
    local = RopeConfig();
    local.dim = c.head_dim;
    local.theta = file.number("rope_local_base_freq", 1e4);
  }
  c.ropes = {global, local};
  for (auto& type : types) c.layer_rope.push_back(type == "sliding_attention");
  return c;
}

Family gemma_family() { return relative_of_llama<gemma_config>("gemma", "GemmaForCausalLM"); }
Family gemma2_family() { return relative_of_llama<gemma2_config>("gemma2", "Gemma2ForCausalLM"); }
Family gemma3_family() { return relative_of_llama<gemma3_config>("gemma3_text", "Gemma3ForCausalLM"); }

}  // namespace sinter::models
