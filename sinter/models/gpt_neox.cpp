// GPT-NeoX and Pythia: attention and MLP side by side, part of each head rotated.
#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/models/parts/rope.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

struct NeoxAttentionImpl : nn::Module {
  const ModelConfig& config;
  int64_t layer;
  nn::Linear query_key_value{nullptr}, dense{nullptr};

  NeoxAttentionImpl(const ModelConfig& c, int64_t layer) : config(c), layer(layer) {
    query_key_value = register_module("query_key_value",
                                      nn::Linear(nn::LinearOptions(c.hidden_size, 3 * c.hidden_size).bias(c.qkv_bias)));
    dense = register_module("dense", nn::Linear(nn::LinearOptions(c.hidden_size, c.hidden_size).bias(c.qkv_bias)));
  }
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
    // Each head has its query, key and value side by side.
    TensorList parts = chunk(split_heads(query_key_value(x), config.heads), 3, -1);
    return dense(pass.attend(layer, rotate(parts[0], rope), rotate(parts[1], rope), parts[2], {}));
  }
};
SINTER_MODULE(NeoxAttention);

struct NeoxMlpImpl : nn::Module {
  const ModelConfig& config;
  nn::Linear dense_h_to_4h{nullptr}, dense_4h_to_h{nullptr};

  explicit NeoxMlpImpl(const ModelConfig& c) : config(c) {
    dense_h_to_4h = register_module("dense_h_to_4h", nn::Linear(c.hidden_size, c.intermediate_size));
    dense_4h_to_h = register_module("dense_4h_to_h", nn::Linear(c.intermediate_size, c.hidden_size));
  }
  Tensor forward(const Tensor& x) { return dense_4h_to_h(activate(dense_h_to_4h(x), config.activation)); }
};
SINTER_MODULE(NeoxMlp);

struct NeoxBlockImpl : nn::Module {
  bool parallel;
  nn::LayerNorm input_layernorm{nullptr}, post_attention_layernorm{nullptr};
  NeoxAttention attention{nullptr};
  NeoxMlp mlp{nullptr};

  NeoxBlockImpl(const ModelConfig& c, int64_t layer, bool parallel) : parallel(parallel) {
    nn::LayerNormOptions norm = nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps);
    input_layernorm = register_module("input_layernorm", nn::LayerNorm(norm));
    post_attention_layernorm = register_module("post_attention_layernorm", nn::LayerNorm(norm));
    attention = register_module("attention", NeoxAttention(c, layer));
    mlp = register_module("mlp", NeoxMlp(c));
  }
  Tensor forward(const Tensor& x, DecoderPass& pass, const RopeTable& rope) {
    Tensor h = x + attention(input_layernorm(x), pass, rope);
    return h + mlp(post_attention_layernorm(parallel ? x : h));
  }
};
SINTER_MODULE(NeoxBlock);

class GptNeox : public CausalLM {
 public:
  GptNeox(ModelConfig given, bool parallel) : CausalLM(std::move(given)), rope_(config_.ropes[0]) {
    const ModelConfig& c = config_;
    add_constants(rope_.tensors());
    embed_in_ = register_module("embed_in", nn::Embedding(c.vocab_size, c.hidden_size));
    register_module("layers", layers_);
    for (int64_t layer = 0; layer < c.layers; ++layer) layers_->push_back(NeoxBlock(c, layer, parallel));
    final_layer_norm_ =
        register_module("final_layer_norm", nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps)));
    if (!c.tie_embeddings)
      embed_out_ = register_module("embed_out", nn::Linear(nn::LinearOptions(c.hidden_size, c.vocab_size).bias(false)));
  }
  using CausalLM::forward;
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask,
                 KvCache* cache, const std::optional<Tensor>& wanted) override {
    DecoderPass pass(ids, positions, mask, cache);
    RopeTable table = rope_(pass.positions());
    Tensor x = embed_in_(ids);
    for (auto& layer : *layers_) x = layer(x, pass, table);
    x = final_layer_norm_(rows_wanted(x, wanted));
    return embed_out_ ? embed_out_(x) : linear(x, embed_in_->weight);
  }

 private:
  Rope rope_;
  nn::Embedding embed_in_{nullptr};
  nn::ModuleListOf<NeoxBlock> layers_;
  nn::LayerNorm final_layer_norm_{nullptr};
  nn::Linear embed_out_{nullptr};
};

ModelConfig read_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::common(file);
  c.activation = file.text("hidden_act", "gelu");
  check_activation(c.activation, file);
  c.norm_eps = file.number("layer_norm_eps", 1e-5);
  c.qkv_bias = file.boolean("attention_bias", true);
  c.ropes = {RopeConfig::read(file, c.head_dim)};
  return c;
}

std::shared_ptr<Model> make(const ConfigFile& file) {
  return std::make_shared<GptNeox>(read_config(file), file.boolean("use_parallel_residual", true));
}

}  // namespace

Family gpt_neox_family() {
  return {.model_type = "gpt_neox",
          .architectures = {"GPTNeoXForCausalLM"},
          .config = read_config,
          .make = make,
          .prefix = "gpt_neox.",
          .ignored = {"rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias"}};
}

}  // namespace sinter::models
