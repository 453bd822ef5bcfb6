// Qwen2 and Qwen3: Llama with biases on query, key and value, or with norms on the heads of query and key.
#include "sinter/models/families.h"
#include "sinter/models/llama.h"

namespace sinter::models {

// Layers from max_window_layers on slide, where the checkpoint wants a window at all.
static std::vector<int64_t> qwen_windows(const ConfigFile& file) {
  if (!file.boolean("use_sliding_window", false) || !file.contains("sliding_window")) return {};
  if (file.contains("layer_types")) return windows_by_type(file, file.texts("layer_types"));
  std::vector<int64_t> windows(size_t(file.size("num_hidden_layers")), 0);
  for (size_t layer = 0; layer < windows.size(); ++layer)
    if (int64_t(layer) >= file.integer("max_window_layers", 28)) windows[layer] = file.size("sliding_window");
  return windows;
}

static ModelConfig qwen2_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.qkv_bias = true;
  c.windows = qwen_windows(file);
  return c;
}

static ModelConfig qwen3_config(const ConfigFile& file) {
  ModelConfig c = llama_config(file);
  c.qk_norm = true;
  c.windows = qwen_windows(file);
  return c;
}

Family qwen2_family() {
  return {.model_type = "qwen2",
          .architectures = {"Qwen2ForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(qwen2_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

Family qwen3_family() {
  return {.model_type = "qwen3",
          .architectures = {"Qwen3ForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(qwen3_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

}  // namespace sinter::models
