// GPT-2.
#include <cmath>

#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

struct Gpt2AttentionImpl : nn::Module {
  const ModelConfig& config;
  int64_t layer;
  AttendOptions options;
  nn::Linear c_attn{nullptr}, c_proj{nullptr};

  Gpt2AttentionImpl(const ModelConfig& c, int64_t layer, double scale) : config(c), layer(layer) {
    options.scale = scale;
    c_attn = register_module("c_attn", nn::Linear(c.hidden_size, 3 * c.hidden_size));
    c_proj = register_module("c_proj", nn::Linear(c.hidden_size, c.hidden_size));
  }
  Tensor forward(const Tensor& x, DecoderPass& pass) {
    TensorList parts = chunk(c_attn(x), 3, -1);
    for (auto& part : parts) part = split_heads(part, config.heads);
    return c_proj(pass.attend(layer, parts[0], parts[1], parts[2], options));
  }
};
SINTER_MODULE(Gpt2Attention);

struct Gpt2MlpImpl : nn::Module {
  const ModelConfig& config;
  nn::Linear c_fc{nullptr}, c_proj{nullptr};

  explicit Gpt2MlpImpl(const ModelConfig& c) : config(c) {
    c_fc = register_module("c_fc", nn::Linear(c.hidden_size, c.intermediate_size));
    c_proj = register_module("c_proj", nn::Linear(c.intermediate_size, c.hidden_size));
  }
  Tensor forward(const Tensor& x) { return c_proj(activate(c_fc(x), config.activation)); }
};
SINTER_MODULE(Gpt2Mlp);

struct Gpt2BlockImpl : nn::Module {
  nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  Gpt2Attention attn{nullptr};
  Gpt2Mlp mlp{nullptr};

  Gpt2BlockImpl(const ModelConfig& c, int64_t layer, double scale) {
    nn::LayerNormOptions norm = nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps);
    ln_1 = register_module("ln_1", nn::LayerNorm(norm));
    attn = register_module("attn", Gpt2Attention(c, layer, scale));
    ln_2 = register_module("ln_2", nn::LayerNorm(norm));
    mlp = register_module("mlp", Gpt2Mlp(c));
  }
  Tensor forward(const Tensor& x, DecoderPass& pass) {
    Tensor h = x + attn(ln_1(x), pass);
    return h + mlp(ln_2(h));
  }
};
SINTER_MODULE(Gpt2Block);

class Gpt2 : public CausalLM {
 public:
  Gpt2(ModelConfig given, bool scale_weights, bool scale_by_layer) : CausalLM(std::move(given)) {
    const ModelConfig& c = config_;
    wte_ = register_module("wte", nn::Embedding(c.vocab_size, c.hidden_size));
    wpe_ = register_module("wpe", nn::Embedding(c.max_positions, c.hidden_size));
    register_module("h", blocks_);
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      double scale = scale_weights ? 1 / std::sqrt(double(c.head_dim)) : 1;
      blocks_->push_back(Gpt2Block(c, layer, scale_by_layer ? scale / double(layer + 1) : scale));
    }
    ln_f_ = register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps)));
    if (!c.tie_embeddings)
      lm_head_ = register_module("lm_head", nn::Linear(nn::LinearOptions(c.hidden_size, c.vocab_size).bias(false)));
  }
  using CausalLM::forward;
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask,
                 KvCache* cache, const std::optional<Tensor>& wanted) override {
    DecoderPass pass(ids, positions, mask, cache);
    Tensor x = wte_(ids) + wpe_(pass.positions());
    for (auto& block : *blocks_) x = block(x, pass);
    x = ln_f_(rows_wanted(x, wanted));
    return lm_head_ ? lm_head_(x) : linear(x, wte_->weight);
  }

 private:
  nn::Embedding wte_{nullptr}, wpe_{nullptr};
  nn::ModuleListOf<Gpt2Block> blocks_;
  nn::LayerNorm ln_f_{nullptr};
  nn::Linear lm_head_{nullptr};
};

ModelConfig read_config(const ConfigFile& file) {
  ModelConfig c = ModelConfig::named(file);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("n_embd");
  c.intermediate_size = file.size("n_inner", 4 * c.hidden_size);
  c.layers = file.size("n_layer");
  c.heads = c.kv_heads = file.size("n_head");
  c.head_dim = c.hidden_size / c.heads;
  c.max_positions = file.size("n_positions");
  c.norm_eps = file.number("layer_norm_epsilon", 1e-5);
  c.activation = file.text("activation_function", "gelu_new");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  c.check_sizes(file);
  return c;
}

std::shared_ptr<Model> make(const ConfigFile& file) {
  return std::make_shared<Gpt2>(read_config(file), file.boolean("scale_attn_weights", true),
                                file.boolean("scale_attn_by_inverse_layer_idx", false));
}

}  // namespace

Family gpt2_family() {
  return {.model_type = "gpt2",
          .architectures = {"GPT2LMHeadModel"},
          .config = read_config,
          .make = make,
          .prefix = "transformer.",
          .ignored = {".attn.bias", ".attn.masked_bias"},
          .transposed = {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"}};
}

}  // namespace sinter::models
