#pragma once
// Llama 1 to 3, and the decoder that its relatives share: Mistral, Qwen, Phi-3 and Gemma differ from it by switches of
// their ModelConfig.
#include "sinter/models/parts/attention.h"
#include "sinter/models/parts/norm.h"
#include "sinter/models/parts/rope.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"

namespace sinter::models {

struct LlamaAttentionImpl : nn::Module {
  const ModelConfig& config;
  int64_t layer;
  nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, qkv_proj{nullptr}, o_proj{nullptr};
  RmsNorm q_norm{nullptr}, k_norm{nullptr};

  LlamaAttentionImpl(const ModelConfig& config, int64_t layer);
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope);
};
SINTER_MODULE(LlamaAttention);

struct LlamaMlpImpl : nn::Module {
  const ModelConfig& config;
  nn::Linear gate_proj{nullptr}, up_proj{nullptr}, gate_up_proj{nullptr}, down_proj{nullptr};

  explicit LlamaMlpImpl(const ModelConfig& config);
  Tensor forward(const Tensor& x);
};
SINTER_MODULE(LlamaMlp);

struct LlamaBlockImpl : nn::Module {
  LlamaAttention self_attn{nullptr};
  LlamaMlp mlp{nullptr};
  RmsNorm input_layernorm{nullptr}, post_attention_layernorm{nullptr};
  RmsNorm pre_feedforward_layernorm{nullptr}, post_feedforward_layernorm{nullptr};  // sandwich_norms

  LlamaBlockImpl(const ModelConfig& config, int64_t layer);
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope);
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
  RmsNorm norm_{nullptr};
  nn::Linear lm_head_{nullptr};
  std::vector<Rope> ropes_;
};

ModelConfig llama_config(const ConfigFile& file);
// The windows of a config.json with layer_types, for families whose layers differ: the window where they slide, else 0.
std::vector<int64_t> windows_by_type(const ConfigFile& file, const std::vector<std::string>& layer_types);

}  // namespace sinter::models
