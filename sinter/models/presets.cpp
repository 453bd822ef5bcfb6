// Sizes of well-known models as the config.json they come with.
#include "sinter/base/error.h"
#include "sinter/models/models.h"

namespace sinter::models {

namespace {

struct Preset {
  const char *name, *text;
};

constexpr Preset kPresets[] = {
    {"llama-125m", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000,
      "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12,
      "num_key_value_heads": 12, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "tie_word_embeddings": true})"},
    {"llama-1b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
      "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
      "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}})"},
    {"llama-8b", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256,
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
      "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}})"},
    {"mistral-7b", R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": 32000,
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "max_position_embeddings": 32768, "sliding_window": 4096, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0})"},
    {"qwen3-0.6b", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936,
      "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
      "rope_theta": 1000000.0, "tie_word_embeddings": true})"},
    {"gpt2-small", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 50257, "n_embd": 768,
      "n_layer": 12, "n_head": 12, "n_positions": 1024})"},
    {"bert-base", R"({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522, "hidden_size": 768,
      "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 512,
      "type_vocab_size": 2})"},
    {"vit-b", R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 768,
      "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224,
      "patch_size": 16, "num_labels": 1000})"},
    {"vit-16m", R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 336,
      "intermediate_size": 1344, "num_hidden_layers": 12, "num_attention_heads": 6, "image_size": 224,
      "patch_size": 16, "num_labels": 1000})"},
    {"resnet-18", R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet",
      "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic", "num_labels": 1000})"},
    {"resnet-50", R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet",
      "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048], "layer_type": "bottleneck",
      "num_labels": 1000})"},
};

}  // namespace

std::vector<std::string> config_names() {
  std::vector<std::string> names;
  for (auto& preset : kPresets) names.push_back(preset.name);
  return names;
}

std::string config_text(const std::string& name) {
  std::string known;
  for (auto& preset : kPresets) {
    if (name == preset.name) return preset.text;
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
  }
  throw_error(format("models: no configuration is named '{}'; known are {}", name, known));
}

}  // namespace sinter::models
