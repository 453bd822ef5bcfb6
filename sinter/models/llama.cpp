#include "sinter/models/llama.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

static nn::Linear projection(int64_t in, int64_t out, bool bias) {
  return nn::Linear(nn::LinearOptions(in, out).bias(bias));
}

static DecoderNorm norm_over(const Shape& shape, const ModelConfig& c, bool bias) {
  return DecoderNorm(shape, NormOptions{c.norm_eps, c.norm, bias});
}

LlamaAttentionImpl::LlamaAttentionImpl(const ModelConfig& c, int64_t layer) : config(c), layer(layer) {
  int64_t width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  if (c.qkv_layout == QkvLayout::kSeparate) {
    q_proj = register_module("q_proj", projection(c.hidden_size, width, c.qkv_bias));
    k_proj = register_module("k_proj", projection(c.hidden_size, kv_width, c.qkv_bias));
    v_proj = register_module("v_proj", projection(c.hidden_size, kv_width, c.qkv_bias));
  } else {
    qkv_proj = register_module("qkv_proj", projection(c.hidden_size, width + 2 * kv_width, c.qkv_bias));
  }
  o_proj = register_module("o_proj", projection(width, c.hidden_size, c.output_bias));
  if (c.qk_norm == QkNorm::kNone) return;
  if (c.qk_norm == QkNorm::kListOfHeads) {
    q_norms = register_module("q_norm", HeadNorms(c.heads, c.head_dim, NormOptions{c.norm_eps, c.norm}));
    k_norms = register_module("k_norm", HeadNorms(c.kv_heads, c.head_dim, NormOptions{c.norm_eps, c.norm}));
    return;
  }
  auto shape = [&](int64_t heads) {
    if (c.qk_norm == QkNorm::kWhole) return Shape{heads * c.head_dim};
    return c.qk_norm == QkNorm::kOfEachHead ? Shape{heads, c.head_dim} : Shape{c.head_dim};
  };
  q_norm = register_module("q_norm", norm_over(shape(c.heads), c, c.norm_bias));
  k_norm = register_module("k_norm", norm_over(shape(c.kv_heads), c, c.norm_bias));
}

TensorList LlamaAttentionImpl::project(const Tensor& x) {
  const ModelConfig& c = config;
  if (c.qkv_layout == QkvLayout::kJoinedByGroup) {
    int64_t group = c.heads / c.kv_heads;
    Tensor joined = qkv_proj(x).view({x.size(0), x.size(1), c.kv_heads, group + 2, c.head_dim});
    Tensor q = joined.slice(3, 0, group).flatten(2, 3).transpose(1, 2);
    return {q, joined.select(3, group).transpose(1, 2), joined.select(3, group + 1).transpose(1, 2)};
  }
  Tensor q, k, v;
  if (c.qkv_layout == QkvLayout::kJoined) {
    int64_t width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
    TensorList parts = split_with_sizes(qkv_proj(x), {width, kv_width, kv_width}, -1);
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = q_proj(x), k = k_proj(x), v = v_proj(x);
  }
  if (c.qk_norm == QkNorm::kWhole) q = q_norm(q), k = k_norm(k);
  return {split_heads(q, c.heads), split_heads(k, c.kv_heads), split_heads(v, c.kv_heads)};
}

Tensor LlamaAttentionImpl::forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
  TensorList parts = project(x);
  Tensor q = parts[0], k = parts[1], v = parts[2];
  if (q_norms) q = q_norms(q), k = k_norms(k);
  if (q_norm && config.qk_norm != QkNorm::kWhole) q = q_norm(q), k = k_norm(k);
  AttendOptions options{config.window(layer), config.attention_scale, config.attention_softcap};
  return o_proj(pass.attend(layer, rotate(q, rope), rotate(k, rope), v, options));
}

LlamaMlpImpl::LlamaMlpImpl(const ModelConfig& c, int64_t size) : config(c) {
  if (c.mlp == MlpKind::kJoinedGated) {
    gate_up_proj = register_module("gate_up_proj", projection(c.hidden_size, 2 * size, c.mlp_bias));
  } else {
    if (c.mlp == MlpKind::kGated) gate_proj = register_module("gate_proj", projection(c.hidden_size, size, c.mlp_bias));
    up_proj = register_module("up_proj", projection(c.hidden_size, size, c.mlp_bias));
  }
  down_proj = register_module("down_proj", projection(size, c.hidden_size, c.mlp_bias));
}

Tensor LlamaMlpImpl::forward(const Tensor& x) {
  if (config.mlp == MlpKind::kPlain) return down_proj(activate(up_proj(x), config.activation));
  if (config.mlp == MlpKind::kGated) return down_proj(activate(gate_proj(x), config.activation) * up_proj(x));
  TensorList parts = chunk(gate_up_proj(x), 2, -1);
  return down_proj(activate(parts[0], config.activation) * parts[1]);
}

LlamaExpertsImpl::LlamaExpertsImpl(const ModelConfig& c) : ExpertsImpl(c) {
  if (c.shared_expert_size == 0) return;
  shared_expert = register_module("shared_expert", LlamaMlp(c, c.shared_expert_size));
  shared_expert_gate = register_module("shared_expert_gate", projection(c.hidden_size, 1, false));
}

Tensor LlamaExpertsImpl::forward(const Tensor& x) {
  Tensor y = ExpertsImpl::forward(x);
  return shared_expert ? y + sigmoid(shared_expert_gate(x)) * shared_expert(x) : y;
}

LlamaBlockImpl::LlamaBlockImpl(const ModelConfig& c, int64_t layer) : config(c) {
  auto norm = [&](const char* name) { return register_module(name, norm_over({c.hidden_size}, c, c.norm_bias)); };
  self_attn = register_module("self_attn", LlamaAttention(c, layer));
  bool is_dense =
      c.experts == 0 || std::find(c.dense_layers.begin(), c.dense_layers.end(), layer) != c.dense_layers.end();
  if (is_dense)
    mlp = register_module("mlp", LlamaMlp(c, c.intermediate_size));
  else
    experts = register_module("mlp", LlamaExperts(c));
  if (c.order == BlockOrder::kSideBySideTwoNorms) {
    input_layernorm = norm("ln_attn");
    post_attention_layernorm = norm("ln_mlp");
    return;
  }
  if (c.order != BlockOrder::kNormsBehind) input_layernorm = norm("input_layernorm");
  if (c.order != BlockOrder::kSideBySide) post_attention_layernorm = norm("post_attention_layernorm");
  if (c.order == BlockOrder::kNormsAround) pre_feedforward_layernorm = norm("pre_feedforward_layernorm");
  if (c.order == BlockOrder::kNormsAround || c.order == BlockOrder::kNormsBehind)
    post_feedforward_layernorm = norm("post_feedforward_layernorm");
}

Tensor LlamaBlockImpl::forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
  auto scaled = [&](const Tensor& y) { return config.residual_scale == 1 ? y : y * config.residual_scale; };
  switch (config.order) {
    case BlockOrder::kNormsAround: {
      Tensor h = x + scaled(post_attention_layernorm(self_attn(input_layernorm(x), pass, rope)));
      return h + scaled(post_feedforward_layernorm(feed(pre_feedforward_layernorm(h))));
    }
    case BlockOrder::kNormsBehind: {
      Tensor h = x + scaled(post_attention_layernorm(self_attn(x, pass, rope)));
      return h + scaled(post_feedforward_layernorm(feed(h)));
    }
    case BlockOrder::kSideBySide:
    case BlockOrder::kSideBySideTwoNorms: {
      Tensor y = input_layernorm(x), z = post_attention_layernorm ? post_attention_layernorm(x) : y;
      return x + scaled(self_attn(y, pass, rope)) + scaled(feed(z));
    }
    case BlockOrder::kNormsBefore:
      break;
  }
  Tensor h = x + scaled(self_attn(input_layernorm(x), pass, rope));
  return h + scaled(feed(post_attention_layernorm(h)));
}

// Powers of one ratio; heads beyond a power of two take those between.
static std::vector<float> alibi_slopes(int64_t heads) {
  int64_t whole = int64_t(std::bit_floor(uint64_t(heads)));
  std::vector<float> out;
  for (int64_t i = 1; i <= whole; ++i) out.push_back(float(std::exp2(-8.0 * double(i) / double(whole))));
  for (int64_t i = 0; i < heads - whole; ++i) out.push_back(float(std::exp2(-4.0 * double(2 * i + 1) / double(whole))));
  return out;
}

Llama::Llama(ModelConfig config) : CausalLM(std::move(config)) {
  const ModelConfig& c = config_;
  embed_tokens_ = register_module("embed_tokens", nn::Embedding(c.vocab_size, c.hidden_size));
  register_module("layers", layers_);
  for (int64_t layer = 0; layer < c.layers; ++layer) layers_->push_back(LlamaBlock(c, layer));
  norm_ = register_module("norm", norm_over({c.hidden_size}, c, c.norm_bias));
  if (!c.tie_embeddings) lm_head_ = register_module("lm_head", projection(c.hidden_size, c.vocab_size, c.head_bias));
  for (auto& rope : c.ropes) {
    ropes_.emplace_back(rope);
    add_constants(ropes_.back().tensors());
  }
  if (c.alibi) {
    slopes_ = tensor(alibi_slopes(c.heads)).view({c.heads, 1, 1}).to(nn::parameter_options().device_);
    add_constants({slopes_});
  }
}

Tensor Llama::forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache,
                      const std::optional<Tensor>& wanted) {
  DecoderPass pass(ids, positions, mask, cache);
  // As scores before they are scaled.
  if (config_.alibi)
    pass.add_bias(pass.distances().to(kFloat32) * slopes_.to(ids.device()) / -std::sqrt(double(config_.head_dim)));
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
  if (config_.logit_scale != 1) logits = logits * config_.logit_scale;
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

Family llama_family() { return relative_of_llama<llama_config>("llama", "LlamaForCausalLM"); }

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

std::vector<std::string> layer_types(const ConfigFile& file, int64_t pattern) {
  if (file.contains("layer_types")) return file.texts("layer_types");
  std::vector<std::string> types;
  for (int64_t layer = 1; layer <= file.size("num_hidden_layers"); ++layer)
    types.push_back(layer % pattern == 0 ? "full_attention" : "sliding_attention");
  return types;
}

}  // namespace sinter::models
