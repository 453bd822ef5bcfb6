// OPT: learned positions that begin at 2, embeddings perhaps narrower than the layers.
#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

namespace {

constexpr int64_t kFirstPosition = 2;

struct OptConfig : ModelConfig {
  int64_t embedding_size = 0;
  bool norm_before = true, final_norm = true, bias = true, affine_norms = true;
};

nn::LayerNorm norm_of(const OptConfig& c) {
  return nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).elementwise_affine(c.affine_norms));
}
nn::Linear linear_of(int64_t in, int64_t out, bool bias) { return nn::Linear(nn::LinearOptions(in, out).bias(bias)); }

struct OptAttentionImpl : nn::Module {
  int64_t heads, layer;
  nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out_proj{nullptr};

  OptAttentionImpl(const OptConfig& c, int64_t layer) : heads(c.heads), layer(layer) {
    auto projection = [&](const char* name) {
      return register_module(name, linear_of(c.hidden_size, c.hidden_size, c.bias));
    };
    q_proj = projection("q_proj"), k_proj = projection("k_proj"), v_proj = projection("v_proj");
    out_proj = projection("out_proj");
  }
  Tensor forward(const Tensor& x, DecoderPass& pass) {
    return out_proj(pass.attend(layer, split_heads(q_proj(x), heads), split_heads(k_proj(x), heads),
                                split_heads(v_proj(x), heads), {}));
  }
};
SINTER_MODULE(OptAttention);

struct OptBlockImpl : nn::Module {
  std::string activation;
  bool norm_before;
  OptAttention self_attn{nullptr};
  nn::LayerNorm self_attn_layer_norm{nullptr}, final_layer_norm{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  OptBlockImpl(const OptConfig& c, int64_t layer) : activation(c.activation), norm_before(c.norm_before) {
    self_attn = register_module("self_attn", OptAttention(c, layer));
    self_attn_layer_norm = register_module("self_attn_layer_norm", norm_of(c));
    fc1 = register_module("fc1", linear_of(c.hidden_size, c.intermediate_size, c.bias));
    fc2 = register_module("fc2", linear_of(c.intermediate_size, c.hidden_size, c.bias));
    final_layer_norm = register_module("final_layer_norm", norm_of(c));
  }
  Tensor forward(const Tensor& x, DecoderPass& pass) {
    auto mlp = [&](const Tensor& h) { return fc2(activate(fc1(h), activation)); };
    if (norm_before) {
      Tensor h = x + self_attn(self_attn_layer_norm(x), pass);
      return h + mlp(final_layer_norm(h));
    }
    Tensor h = self_attn_layer_norm(x + self_attn(x, pass));
    return final_layer_norm(h + mlp(h));
  }
};
SINTER_MODULE(OptBlock);

class Opt : public CausalLM {
 public:
  explicit Opt(const OptConfig& c) : CausalLM(c) {
    embed_tokens_ = register_module("embed_tokens", nn::Embedding(c.vocab_size, c.embedding_size));
    embed_positions_ =
        register_module("embed_positions", nn::Embedding(c.max_positions + kFirstPosition, c.hidden_size));
    if (c.embedding_size != c.hidden_size) {
      project_in_ = register_module("project_in", linear_of(c.embedding_size, c.hidden_size, false));
      project_out_ = register_module("project_out", linear_of(c.hidden_size, c.embedding_size, false));
    }
    register_module("layers", layers_);
    for (int64_t layer = 0; layer < c.layers; ++layer) layers_->push_back(OptBlock(c, layer));
    if (c.final_norm) final_layer_norm_ = register_module("final_layer_norm", norm_of(c));
    if (!c.tie_embeddings) lm_head_ = register_module("lm_head", linear_of(c.embedding_size, c.vocab_size, false));
  }
  using CausalLM::forward;
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask,
                 KvCache* cache, const std::optional<Tensor>& wanted) override {
    DecoderPass pass(ids, positions, mask, cache);
    Tensor x = embed_tokens_(ids);
    if (project_in_) x = project_in_(x);
    x = x + embed_positions_(pass.positions() + kFirstPosition);
    for (auto& layer : *layers_) x = layer(x, pass);
    x = rows_wanted(x, wanted);
    if (final_layer_norm_) x = final_layer_norm_(x);
    if (project_out_) x = project_out_(x);
    return lm_head_ ? lm_head_(x) : linear(x, embed_tokens_->weight);
  }

 private:
  nn::Embedding embed_tokens_{nullptr}, embed_positions_{nullptr};
  nn::Linear project_in_{nullptr}, project_out_{nullptr}, lm_head_{nullptr};
  nn::ModuleListOf<OptBlock> layers_;
  nn::LayerNorm final_layer_norm_{nullptr};
};

OptConfig read_config(const ConfigFile& file) {
  OptConfig c;
  static_cast<ModelConfig&>(c) = ModelConfig::common(file);
  c.intermediate_size = file.size("ffn_dim");
  c.embedding_size = file.size("word_embed_proj_dim", c.hidden_size);
  c.activation = file.text("activation_function", "relu");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.norm_before = file.boolean("do_layer_norm_before", true);
  c.final_norm = c.norm_before && !file.boolean("_remove_final_layer_norm", false);
  c.bias = file.boolean("enable_bias", true);
  c.affine_norms = file.boolean("layer_norm_elementwise_affine", true);
  return c;
}

}  // namespace

Family opt_family() {
  return {.model_type = "opt",
          .architectures = {"OPTForCausalLM"},
          .config = [](const ConfigFile& file) -> ModelConfig { return read_config(file); },
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> { return std::make_shared<Opt>(read_config(file)); },
          .prefix = "model.",
          .renames = {{"decoder.", ""}}};
}

}  // namespace sinter::models
