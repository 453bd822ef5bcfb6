// Starcoder2: Llama with layer norms, a plain MLP, biases, and a sliding window.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig starcoder2_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::common(file);
  c.activation = file.text("hidden_act", "gelu_pytorch_tanh");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.mlp = MlpKind::kPlain;
  c.norm = NormKind::kLayer;
  c.norm_eps = file.number("norm_epsilon", 1e-5);
  c.norm_bias = true;
  c.qkv_bias = c.output_bias = c.mlp_bias = file.boolean("use_bias", true);
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  c.ropes = {RopeConfig::read(file, c.head_dim)};
  return c;
}

Family starcoder2_family() {
  return relative_of_llama<starcoder2_config>("starcoder2", "Starcoder2ForCausalLM",
                                              {{"mlp.c_fc.", "mlp.up_proj."}, {"mlp.c_proj.", "mlp.down_proj."}});
}

}  // namespace sinter::models
