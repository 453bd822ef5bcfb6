// StableLM: Llama with layer norms and a quarter of each head rotated; the larger ones with attention and MLP side by side,
// and a norm for each head of query and key.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig stablelm_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::common(file);
  check_activation(c.activation, file);
  c.norm = NormKind::kLayer;
  c.norm_bias = true;
  c.norm_eps = file.number("layer_norm_eps", 1e-5);
  c.qkv_bias = file.boolean("use_qkv_bias", false);
  if (file.boolean("qk_layernorm", false)) c.qk_norm = QkNorm::kListOfHeads;
  if (file.boolean("use_parallel_residual", false)) c.order = BlockOrder::kSideBySide;
  c.ropes = {RopeConfig::read(file, c.head_dim, "", 0.25)};
  return c;
}

Family stablelm_family() {
  return relative_of_llama<stablelm_config>(
      "stablelm", "StableLmForCausalLM",
      {{"self_attn.q_layernorm.", "self_attn.q_norm."}, {"self_attn.k_layernorm.", "self_attn.k_norm."}});
}

}  // namespace sinter::models
