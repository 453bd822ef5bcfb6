#pragma once
// Llama 1 to 3, and the decoder that its relatives share: they differ from it by switches of their ModelConfig.
#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/models/parts/experts.h"
#include "sinter/models/parts/norm.h"
#include "sinter/models/parts/rope.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"

namespace sinter::models {

struct LlamaAttentionImpl : nn::Module {
  const ModelConfig& config;
  int64_t layer;
  nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, qkv_proj{nullptr}, o_proj{nullptr};
  DecoderNorm q_norm{nullptr}, k_norm{nullptr};
  HeadNorms q_norms{nullptr}, k_norms{nullptr};  // QkNorm::kListOfHeads

  LlamaAttentionImpl(const ModelConfig& config, int64_t layer);
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope);

 private:
  // Query, key and value of x, with their heads apart and normalised.
  TensorList project(const Tensor& x);
};
SINTER_MODULE(LlamaAttention);

struct LlamaMlpImpl : nn::Module {
  const ModelConfig& config;
  nn::Linear gate_proj{nullptr}, up_proj{nullptr}, gate_up_proj{nullptr}, down_proj{nullptr};

  LlamaMlpImpl(const ModelConfig& config, int64_t size);
  Tensor forward(const Tensor& x);
};
SINTER_MODULE(LlamaMlp);

// Experts, and beside them perhaps one that answers every token, as loud as a gate lets it.
struct LlamaExpertsImpl : ExpertsImpl {
  LlamaMlp shared_expert{nullptr};
  nn::Linear shared_expert_gate{nullptr};

  explicit LlamaExpertsImpl(const ModelConfig& config);
  Tensor forward(const Tensor& x);
};
SINTER_MODULE(LlamaExperts);

struct LlamaBlockImpl : nn::Module {
  const ModelConfig& config;
  LlamaAttention self_attn{nullptr};
  LlamaMlp mlp{nullptr};
  LlamaExperts experts{nullptr};  // in its place
  // Which there are follows from the order. The name of the second has meant two things since Gemma 2.
  DecoderNorm input_layernorm{nullptr}, post_attention_layernorm{nullptr};
  DecoderNorm pre_feedforward_layernorm{nullptr}, post_feedforward_layernorm{nullptr};

  LlamaBlockImpl(const ModelConfig& config, int64_t layer);
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope);

 private:
  Tensor feed(const Tensor& x) { return experts ? experts(x) : mlp(x); }
};
SINTER_MODULE(LlamaBlock);

class Llama : public CausalLM {
 public:
  explicit Llama(ModelConfig config);
  using CausalLM::forward;
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask,
                 KvCache* cache, const std::optional<Tensor>& wanted) override;

 private:
  nn::Embedding embed_tokens_{nullptr};
  nn::ModuleListOf<LlamaBlock> layers_;
  DecoderNorm norm_{nullptr};
  nn::Linear lm_head_{nullptr};
  std::vector<Rope> ropes_;
  Tensor slopes_;  // [heads, 1, 1], of alibi
};

ModelConfig llama_config(const ConfigFile& file);

// A family of this decoder, whose configuration is read by `config`.
template <ModelConfig (*config)(const ConfigFile&)>
Family relative_of_llama(const char* model_type, const char* architecture, std::vector<Rename> renames = {}) {
  return {.model_type = model_type,
          .architectures = {architecture},
          .config = config,
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> { return std::make_shared<Llama>(config(file)); },
          .prefix = "model.",
          .renames = std::move(renames),
          .ignored = {"rotary_emb.inv_freq"}};
}

// The windows of a config.json with layer_types, for families whose layers differ: the window where they slide, else 0.
std::vector<int64_t> windows_by_type(const ConfigFile& file, const std::vector<std::string>& layer_types);
// Qwen's rule: layers from max_window_layers on slide, where the checkpoint wants a window at all.
std::vector<int64_t> qwen_windows(const ConfigFile& file);
// layer_types, or the rule of older files: every pattern-th layer sees everything.
std::vector<std::string> layer_types(const ConfigFile& file, int64_t pattern);

}  // namespace sinter::models
