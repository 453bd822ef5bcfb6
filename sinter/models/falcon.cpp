// Falcon: Llama with layer norms, a plain MLP beside the attention, and one projection in which each key follows the queries
// that it serves. The first ones (Falcon RW) do not rotate.
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig falcon_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::named(file);
  bool newer = file.boolean("new_decoder_architecture", false), one_key = file.boolean("multi_query", true);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("hidden_size");
  c.intermediate_size = file.size("ffn_hidden_size", 4 * c.hidden_size);
  c.layers = file.size("num_hidden_layers");
  c.heads = file.size("num_attention_heads");
  c.kv_heads = newer ? file.size("num_kv_heads", c.heads) : one_key ? 1 : c.heads;
  c.head_dim = c.hidden_size / c.heads;
  c.max_positions = file.size("max_position_embeddings", 2048);
  c.check_sizes(file);
  c.activation = file.text("activation", "gelu");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.qkv_layout = QkvLayout::kJoinedByGroup;
  c.mlp = MlpKind::kPlain;
  c.norm = NormKind::kLayer;
  c.norm_eps = file.number("layer_norm_epsilon", 1e-5);
  c.norm_bias = true;
  c.qkv_bias = c.output_bias = c.mlp_bias = file.boolean("bias", false);
  if (newer && file.size("num_ln_in_parallel_attn", 2) == 2)
    c.order = BlockOrder::kSideBySideTwoNorms;
  else if (newer || file.boolean("parallel_attn", true))
    c.order = BlockOrder::kSideBySide;
  c.ropes = {RopeConfig::read(file, c.head_dim)};
  c.alibi = file.boolean("alibi", false);
  if (c.alibi) c.ropes[0].dim = 0;
  return c;
}

Family falcon_family() {
  Family family = relative_of_llama<falcon_config>("falcon", "FalconForCausalLM",
                                                   {{"word_embeddings.", "embed_tokens."},
                                                    {"h.", "layers."},
                                                    {"self_attention.query_key_value.", "self_attn.qkv_proj."},
                                                    {"self_attention.dense.", "self_attn.o_proj."},
                                                    {"mlp.dense_h_to_4h.", "mlp.up_proj."},
                                                    {"mlp.dense_4h_to_h.", "mlp.down_proj."},
                                                    {"ln_f.", "norm."}});
  family.prefix = "transformer.";
  return family;
}

}  // namespace sinter::models
