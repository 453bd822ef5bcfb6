// Gemma 1, 2 and 3 (text): Llama with scaled embeddings and norms by 1 + weight; from 2 on norms on both sides of a
// layer, soft caps, and layers that slide; from 3 on norms of query and key, and two rotary bases.
#include <algorithm>
#include <cmath>

#include "sinter/models/families.h"
#include "sinter/models/llama.h"

namespace sinter::models {

static ModelConfig gemma_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  // Early files say hidden_act: gelu and mean the approximation.
  c.activation = file.text("hidden_activation", "gelu_pytorch_tanh");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.embedding_scale = std::sqrt(double(c.hidden_size));
  c.unit_offset_norm = true;
  return c;
}

// layer_types, or the rule of older files: every pattern-th layer sees everything.
static std::vector<std::string> layer_types(const ConfigFile& file, int64_t pattern) {
  if (file.contains("layer_types")) return file.texts("layer_types");
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < file.size("num_hidden_layers"); ++layer)
    types.push_back((layer + 1) % pattern == 0 ? "full_attention" : "sliding_attention");
  return types;
}

static std::optional<double> cap(const ConfigFile& file, const char* key) {
  return file.contains(key) ? std::optional(file.number(key)) : std::nullopt;
}

static ModelConfig gemma2_config(const ConfigFile& file) {
  ModelConfig c = gemma_config(file);
  c.sandwich_norms = true;
  c.attention_scale = 1 / std::sqrt(file.number("query_pre_attn_scalar", 256));
  c.attention_softcap = cap(file, "attn_logit_softcapping");
  c.logit_softcap = cap(file, "final_logit_softcapping");
  c.windows = windows_by_type(file, layer_types(file, 2));
  return c;
}

static ModelConfig gemma3_config(const ConfigFile& file) {
  ModelConfig c = gemma2_config(file);
  c.qk_norm = true;
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

Family gemma_family() {
  return {.model_type = "gemma",
          .architectures = {"GemmaForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(gemma_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

Family gemma2_family() {
  return {.model_type = "gemma2",
          .architectures = {"Gemma2ForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(gemma2_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

Family gemma3_family() {
  return {.model_type = "gemma3_text",
          .architectures = {"Gemma3ForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(gemma3_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

}  // namespace sinter::models
