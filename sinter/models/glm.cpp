// GLM-4: Llama with one projection for gate and up, and neighbours rotated in half of each head; since 0414 also with norms
// behind attention and MLP.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig glm_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.mlp = MlpKind::kJoinedGated;
  c.qkv_bias = file.boolean("attention_bias", true);
  c.output_bias = false;
  c.ropes = {RopeConfig::read(file, c.head_dim, "", 0.5)};
  c.ropes[0].interleaved = true;
  return c;
}

static ModelConfig glm4_config(const ConfigFile& file) {
  ModelConfig c = glm_config(file);
  c.order = BlockOrder::kNormsAround;
  return c;
}

Family glm_family() { return relative_of_llama<glm_config>("glm", "GlmForCausalLM"); }
Family glm4_family() {
  return relative_of_llama<glm4_config>("glm4", "Glm4ForCausalLM",
                                        {{"post_attention_layernorm.", "pre_feedforward_layernorm."},
                                         {"post_self_attn_layernorm.", "post_attention_layernorm."},
                                         {"post_mlp_layernorm.", "post_feedforward_layernorm."}});
}

}  // namespace sinter::models
