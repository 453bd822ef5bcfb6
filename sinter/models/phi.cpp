// Phi 1 to 2: Llama with layer norms, attention and MLP side by side, biases everywhere, and part of each head rotated.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig phi_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::common(file);
  c.activation = file.text("hidden_act", "gelu_new");
  check_activation(c.activation, file);
  c.order = BlockOrder::kSideBySide;
  c.mlp = MlpKind::kPlain;
  c.norm = NormKind::kLayer;
  c.norm_eps = file.number("layer_norm_eps", 1e-5);
  if (file.boolean("qk_layernorm", false)) c.qk_norm = QkNorm::kSharedByHeads;
  c.qkv_bias = c.output_bias = c.mlp_bias = c.norm_bias = c.head_bias = true;
  c.ropes = {RopeConfig::read(file, c.head_dim, "", 0.5)};
  return c;
}

Family phi_family() {
  return relative_of_llama<phi_config>("phi", "PhiForCausalLM",
                                       {{"self_attn.dense.", "self_attn.o_proj."},
                                        {"self_attn.q_layernorm.", "self_attn.q_norm."},
                                        {"self_attn.k_layernorm.", "self_attn.k_norm."},
                                        {"mlp.fc1.", "mlp.up_proj."},
                                        {"mlp.fc2.", "mlp.down_proj."},
                                        {"final_layernorm.", "norm."}});
}

}  // namespace sinter::models
