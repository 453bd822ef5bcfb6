#include "sinter/models/llama.h"

#include "sinter/base/error.h"
#include "sinter/models/families.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

static nn::Linear projection(int64_t in, int64_t out, bool bias) {
  return nn::Linear(nn::LinearOptions(in, out).bias(bias));
}

LlamaAttentionImpl::LlamaAttentionImpl(const ModelConfig& c, int64_t layer) : config(c), layer(layer) {
  int64_t width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  if (c.fused_projections) {
    qkv_proj = register_module("qkv_proj", projection(c.hidden_size, width + 2 * kv_width, c.qkv_bias));
  } else {
    q_proj = register_module("q_proj", projection(c.hidden_size, width, c.qkv_bias));
    k_proj = register_module("k_proj", projection(c.hidden_size, kv_width, c.qkv_bias));
    v_proj = register_module("v_proj", projection(c.hidden_size, kv_width, c.qkv_bias));
  }
  o_proj = register_module("o_proj", projection(width, c.hidden_size, c.output_bias));
  if (c.qk_norm) {
    q_norm = register_module("q_norm", RmsNorm(c.head_dim, c.norm_eps, c.unit_offset_norm));
    k_norm = register_module("k_norm", RmsNorm(c.head_dim, c.norm_eps, c.unit_offset_norm));
  }
}

Tensor LlamaAttentionImpl::forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
  Tensor q, k, v;
  if (qkv_proj) {
    int64_t width = config.heads * config.head_dim, kv_width = config.kv_heads * config.head_dim;
    TensorList parts = split_with_sizes(qkv_proj(x), {width, kv_width, kv_width}, -1);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = q_proj(x), k = k_proj(x), v = v_proj(x);
  }
  q = split_heads(q, config.heads), k = split_heads(k, config.kv_heads), v = split_heads(v, config.kv_heads);
  if (q_norm) q = q_norm(q), k = k_norm(k);
  AttendOptions options{config.window(layer), config.attention_scale, config.attention_softcap};
  return o_proj(pass.attend(layer, rotate(q, rope), rotate(k, rope), v, options));
}

LlamaMlpImpl::LlamaMlpImpl(const ModelConfig& c) : config(c) {
  if (c.fused_projections) {
    gate_up_proj = register_module("gate_up_proj", projection(c.hidden_size, 2 * c.intermediate_size, c.mlp_bias));
  } else {
    gate_proj = register_module("gate_proj", projection(c.hidden_size, c.intermediate_size, c.mlp_bias));
    up_proj = register_module("up_proj", projection(c.hidden_size, c.intermediate_size, c.mlp_bias));
  }
  down_proj = register_module("down_proj", projection(c.intermediate_size, c.hidden_size, c.mlp_bias));
}

Tensor LlamaMlpImpl::forward(const Tensor& x) {
  if (!gate_up_proj) return down_proj(activate(gate_proj(x), config.activation) * up_proj(x));
  TensorList parts = chunk(gate_up_proj(x), 2, -1);
  return down_proj(activate(parts[0], config.activation) * parts[1]);
}

LlamaBlockImpl::LlamaBlockImpl(const ModelConfig& c, int64_t layer) {
  auto norm = [&](const char* name) {
    return register_module(name, RmsNorm(c.hidden_size, c.norm_eps, c.unit_offset_norm));
  };
  self_attn = register_module("self_attn", LlamaAttention(c, layer));
  mlp = register_module("mlp", LlamaMlp(c));
  input_layernorm = norm("input_layernorm");
  post_attention_layernorm = norm("post_attention_layernorm");
  if (c.sandwich_norms) {
    pre_feedforward_layernorm = norm("pre_feedforward_layernorm");
    post_feedforward_layernorm = norm("post_feedforward_layernorm");
  }
}

Tensor LlamaBlockImpl::forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
  Tensor y = self_attn(input_layernorm(x), pass, rope);
  if (!pre_feedforward_layernorm) {
    Tensor h = x + y;
    return h + mlp(post_attention_layernorm(h));
  }
  Tensor h = x + post_attention_layernorm(y);
  return h + post_feedforward_layernorm(mlp(pre_feedforward_layernorm(h)));
}

Llama::Llama(ModelConfig config) : CausalLM(std::move(config)) {
  const ModelConfig& c = config_;
  embed_tokens_ = register_module("embed_tokens", nn::Embedding(c.vocab_size, c.hidden_size));
  register_module("layers", layers_);
  for (int64_t layer = 0; layer < c.layers; ++layer) layers_->push_back(LlamaBlock(c, layer));
  norm_ = register_module("norm", RmsNorm(c.hidden_size, c.norm_eps, c.unit_offset_norm));
  if (!c.tie_embeddings) lm_head_ = register_module("lm_head", projection(c.hidden_size, c.vocab_size, false));
  for (auto& rope : c.ropes) {
    ropes_.emplace_back(rope);
    add_constants(ropes_.back().tensors());
  }
}

Tensor Llama::forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache,
                      const std::optional<Tensor>& wanted) {
  DecoderPass pass(ids, positions, mask, cache);
  std::vector<RopeTable> tables;
  for (auto& rope : ropes_) tables.push_back(rope(pass.positions()));
  Tensor x = embed_tokens_(ids);
  // transformers rounds the scale to the model's type.
  if (config_.embedding_scale != 1) x = x * full({}, config_.embedding_scale, x.options());
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    size_t rope = config_.layer_rope.empty() ? 0 : size_t(config_.layer_rope[size_t(layer)]);
    x = layers_[size_t(layer)](x, pass, tables[rope]);
  }
  x = norm_(rows_wanted(x, wanted));
  Tensor logits = lm_head_ ? lm_head_(x) : linear(x, embed_tokens_->weight);
  return config_.logit_softcap ? (logits / *config_.logit_softcap).tanh() * *config_.logit_softcap : logits;
}

ModelConfig llama_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::common(file);
  check_activation(c.activation, file);
  c.norm_eps = file.number("rms_norm_eps", 1e-6);
  c.qkv_bias = c.output_bias = file.boolean("attention_bias", false);
  c.mlp_bias = file.boolean("mlp_bias", false);
  c.ropes = {RopeConfig::read(file, c.head_dim)};
  return c;
}

Family llama_family() {
  return {.model_type = "llama",
          .architectures = {"LlamaForCausalLM"},
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Llama>(llama_config(file));
          },
          .prefix = "model.",
          .ignored = {"rotary_emb.inv_freq"}};
}

std::vector<int64_t> windows_by_type(const ConfigFile& file, const std::vector<std::string>& layer_types) {
  check(int64_t(layer_types.size()) == file.size("num_hidden_layers"), "config: '{}' has {} layer_types for {} layers",
        file.name(), layer_types.size(), file.size("num_hidden_layers"));
  std::vector<int64_t> windows;
  for (auto& type : layer_types) {
    check(type == "full_attention" || type == "sliding_attention",
          "config: '{}' has the layer type '{}'; known are full_attention, sliding_attention", file.name(), type);
    windows.push_back(type == "sliding_attention" ? file.size("sliding_window") : 0);
  }
  return windows;
}

}  // namespace sinter::models
