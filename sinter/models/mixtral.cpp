// Mixtral, Qwen2-MoE, Qwen3-MoE and OLMoE: Llama, or a relative, with experts in place of the MLP.
#include "sinter/base/error.h"
#include "sinter/models/llama.h"

namespace sinter::models {

static void check_experts(const ModelConfig& c, const ConfigFile& file) {
  check(c.experts_per_token <= c.experts, "config: '{}' chooses {} of {} experts", file.name(), c.experts_per_token,
        c.experts);
}

static ModelConfig mixtral_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.norm_eps = file.number("rms_norm_eps", 1e-5);
  if (file.contains("sliding_window")) c.windows.assign(size_t(c.layers), file.size("sliding_window"));
  c.experts = file.size("num_local_experts", 8);
  c.experts_per_token = file.size("num_experts_per_tok", 2);
  c.expert_size = c.intermediate_size;
  check_experts(c, file);
  return c;
}

// What Qwen's and OLMo's have in common.
static void read_experts(ModelConfig& c, const ConfigFile& file, int64_t experts, int64_t each) {
  c.experts = file.size("num_experts", file.size("num_local_experts", experts));
  c.experts_per_token = file.size("num_experts_per_tok", each);
  c.expert_weights_add_up = file.boolean("norm_topk_prob", false);
  check_experts(c, file);
}

static void read_dense_layers(ModelConfig& c, const ConfigFile& file) {
  c.dense_layers = file.integers("mlp_only_layers");
  for (int64_t layer = 0; layer < c.layers; ++layer)
    if ((layer + 1) % file.size("decoder_sparse_step", 1) != 0) c.dense_layers.push_back(layer);
}

static ModelConfig qwen2_moe_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.qkv_bias = file.boolean("qkv_bias", true);
  c.windows = qwen_windows(file);
  read_experts(c, file, 60, 4);
  read_dense_layers(c, file);
  c.expert_size = file.size("moe_intermediate_size", 1408);
  c.shared_expert_size = file.size("shared_expert_intermediate_size", 5632);
  return c;
}

static ModelConfig qwen3_moe_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.qk_norm = QkNorm::kSharedByHeads;
  c.windows = qwen_windows(file);
  read_experts(c, file, 128, 8);
  read_dense_layers(c, file);
  c.expert_size = file.size("moe_intermediate_size", 768);
  return c;
}

static ModelConfig olmoe_config(const ConfigFile& file) {
  check(!file.contains("clip_qkv"), "config: '{}' has clip_qkv, which is not supported", file.name());
  ModelConfig c = llama_config(file);
  c.norm_eps = file.number("rms_norm_eps", 1e-5);
  c.qk_norm = QkNorm::kWhole;
  read_experts(c, file, 64, 8);
  c.expert_size = c.intermediate_size;
  return c;
}

Family mixtral_family() {
  return relative_of_llama<mixtral_config>(
      "mixtral", "MixtralForCausalLM",
      {{"block_sparse_moe.", "mlp."}, {".w1.", ".gate_proj."}, {".w2.", ".down_proj."}, {".w3.", ".up_proj."}});
}
Family qwen2_moe_family() { return relative_of_llama<qwen2_moe_config>("qwen2_moe", "Qwen2MoeForCausalLM"); }
Family qwen3_moe_family() { return relative_of_llama<qwen3_moe_config>("qwen3_moe", "Qwen3MoeForCausalLM"); }
Family olmoe_family() { return relative_of_llama<olmoe_config>("olmoe", "OlmoeForCausalLM"); }

}  // namespace sinter::models
