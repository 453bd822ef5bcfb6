// Qwen2 and Qwen3: Llama with biases on query, key and value, or with norms on the heads of query and key.
#include "sinter/models/llama.h"

namespace sinter::models {

std::vector<int64_t> qwen_windows(const ConfigFile& file) {
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
  c.qk_norm = QkNorm::kSharedByHeads;
  c.windows = qwen_windows(file);
  return c;
}

Family qwen2_family() { return relative_of_llama<qwen2_config>("qwen2", "Qwen2ForCausalLM"); }
Family qwen3_family() { return relative_of_llama<qwen3_config>("qwen3", "Qwen3ForCausalLM"); }

}  // namespace sinter::models
