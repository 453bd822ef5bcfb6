// BART and Whisper: one encoder-decoder; BART reads a text and has its norms behind, Whisper reads a sound and has them in
// front.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/conv.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

// Rows of BART's learned positions that stand for none.
constexpr int64_t kBartFirstPosition = 2;

struct BartConfig : ModelConfig {
  int64_t encoder_layers = 0, encoder_heads = 0, encoder_width = 0;  // width: of the MLP
  bool norm_first = false;
  int64_t first_position = 0, source_positions = 0;
  int64_t mels = 0;  // 0: reads ids
};

struct BartAttentionImpl : nn::Module {
  int64_t heads;
  nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out_proj{nullptr};

  BartAttentionImpl(const BartConfig& c, int64_t heads) : heads(heads) {
    auto add = [&](const char* name, bool bias) {
      return register_module(name, nn::Linear(nn::LinearOptions(c.hidden_size, c.hidden_size).bias(bias)));
    };
    q_proj = add("q_proj", true);
    k_proj = add("k_proj", c.mels == 0);
    v_proj = add("v_proj", true);
    out_proj = add("out_proj", true);
  }
  Tensor query(const Tensor& x) { return split_heads(q_proj(x), heads); }
  Tensor key(const Tensor& x) { return split_heads(k_proj(x), heads); }
  Tensor value(const Tensor& x) { return split_heads(v_proj(x), heads); }
};
SINTER_MODULE(BartAttention);

struct BartLayerImpl : nn::Module {
  std::string activation;
  bool norm_first;
  BartAttention self_attn{nullptr}, encoder_attn{nullptr};  // the latter of the decoder's layers
  nn::LayerNorm self_attn_layer_norm{nullptr}, encoder_attn_layer_norm{nullptr}, final_layer_norm{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  BartLayerImpl(const BartConfig& c, bool decodes) : activation(c.activation), norm_first(c.norm_first) {
    auto norm = [&](const char* name) { return register_module(name, nn::LayerNorm(c.hidden_size)); };
    int64_t heads = decodes ? c.heads : c.encoder_heads, width = decodes ? c.intermediate_size : c.encoder_width;
    self_attn = register_module("self_attn", BartAttention(c, heads));
    self_attn_layer_norm = norm("self_attn_layer_norm");
    if (decodes) {
      encoder_attn = register_module("encoder_attn", BartAttention(c, heads));
      encoder_attn_layer_norm = norm("encoder_attn_layer_norm");
    }
    fc1 = register_module("fc1", nn::Linear(c.hidden_size, width));
    fc2 = register_module("fc2", nn::Linear(width, c.hidden_size));
    final_layer_norm = norm("final_layer_norm");
  }
  // x and what `part` makes of it, with the norm in its place.
  template <class Part>
  Tensor add(const Tensor& x, nn::LayerNorm& norm, Part part) {
    return norm_first ? x + part(norm(x)) : norm(x + part(x));
  }
  Tensor finish(const Tensor& x) {
    return add(x, final_layer_norm, [&](const Tensor& y) { return fc2(activate(fc1(y), activation)); });
  }
};
SINTER_MODULE(BartLayer);

struct BartStackImpl : nn::Module {
  nn::Conv1d conv1{nullptr}, conv2{nullptr};  // of what reads a sound
  nn::Embedding embed_positions{nullptr};
  nn::ModuleListOf<BartLayer> layers;
  nn::LayerNorm layernorm_embedding{nullptr}, layer_norm{nullptr};

  BartStackImpl(const BartConfig& c, bool decodes) {
    if (!decodes && c.mels > 0) {
      conv1 = register_module("conv1", nn::Conv1d(nn::Conv1dOptions(c.mels, c.hidden_size, 3).padding(1)));
      conv2 =
          register_module("conv2", nn::Conv1d(nn::Conv1dOptions(c.hidden_size, c.hidden_size, 3).stride(2).padding(1)));
    }
    int64_t positions = (decodes ? c.max_positions : c.source_positions) + c.first_position;
    embed_positions = register_module("embed_positions", nn::Embedding(positions, c.hidden_size));
    register_module("layers", layers);
    for (int64_t i = 0; i < (decodes ? c.layers : c.encoder_layers); ++i) layers->push_back(BartLayer(c, decodes));
    if (c.norm_first)
      layer_norm = register_module("layer_norm", nn::LayerNorm(c.hidden_size));
    else
      layernorm_embedding = register_module("layernorm_embedding", nn::LayerNorm(c.hidden_size));
  }
  Tensor begin(const Tensor& embedded, const Tensor& positions) {
    Tensor x = embedded + embed_positions(positions);
    return layernorm_embedding ? layernorm_embedding(x) : x;
  }
  Tensor finish(const Tensor& x) { return layer_norm ? layer_norm(x) : x; }
};
SINTER_MODULE(BartStack);

class Bart : public EncoderDecoder {
 public:
  explicit Bart(const BartConfig& c)
      : EncoderDecoder(c), first_position_(c.first_position), frames_(2 * c.source_positions), mels_(c.mels) {
    shared_ = register_module("shared", nn::Embedding(c.vocab_size, c.hidden_size));
    encoder_ = register_module("encoder", BartStack(c, /*decodes=*/false));
    decoder_ = register_module("decoder", BartStack(c, /*decodes=*/true));
    if (mels_ == 0) {
      final_logits_bias_ = register_buffer("final_logits_bias", nn::new_parameter({1, c.vocab_size}));
      if (nn::initialises_parameters()) final_logits_bias_.zero_();
    }
    if (!c.tie_embeddings)
      lm_head_ = register_module("lm_head", nn::Linear(nn::LinearOptions(c.hidden_size, c.vocab_size).bias(false)));
  }

  Tensor encode(const Tensor& input, const std::optional<Tensor>& mask) override {
    Tensor x = mels_ == 0 ? embedded(input) : heard(input);
    Tensor seen_there;
    if (mask && mels_ == 0) seen_there = seen_tokens(*mask);
    x = encoder_->begin(x, arange_of_size(x.size(1), TensorOptions(kInt64).device(x.device())) + first_position_);
    for (auto& layer : *encoder_->layers) {
      auto& by = layer->self_attn;
      x = layer->add(x, layer->self_attn_layer_norm, [&](const Tensor& y) {
        return by->out_proj(merge_heads(attention(by->query(y), by->key(y), by->value(y), seen_there)));
      });
      x = layer->finish(x);
    }
    return encoder_->finish(x);
  }
  Source source_of(const Tensor& encoded, const std::optional<Tensor>& mask) override {
    Source source;
    for (auto& layer : *decoder_->layers) {
      source.keys.push_back(layer->encoder_attn->key(encoded));
      source.values.push_back(layer->encoder_attn->value(encoded));
    }
    if (mask && mels_ == 0) source.mask = seen_tokens(*mask);
    return source;
  }
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache,
                 const std::optional<Tensor>& wanted) override {
    const Source& source = source_in(cache);
    DecoderPass pass(ids, positions, mask, cache);
    Tensor x = decoder_->begin(embedded(ids), pass.positions() + first_position_);
    for (int64_t i = 0; i < config_.layers; ++i) {
      auto& layer = decoder_->layers[size_t(i)];
      auto &own = layer->self_attn, &across = layer->encoder_attn;
      x = layer->add(x, layer->self_attn_layer_norm, [&](const Tensor& y) {
        return own->out_proj(pass.attend(i, own->query(y), own->key(y), own->value(y), {}));
      });
      x = layer->add(x, layer->encoder_attn_layer_norm,
                     [&](const Tensor& y) { return across->out_proj(read_source(source, i, across->query(y))); });
      x = layer->finish(x);
    }
    x = decoder_->finish(rows_wanted(x, wanted));
    Tensor logits = lm_head_ ? lm_head_(x) : linear(x, shared_->weight);
    return final_logits_bias_.defined() ? logits + final_logits_bias_ : logits;
  }

 private:
  Tensor embedded(const Tensor& ids) {
    Tensor x = shared_(ids);
    return config_.embedding_scale == 1 ? x : x * config_.embedding_scale;
  }
  Tensor heard(const Tensor& features) {
    check(features.dim() == 3 && features.size(1) == mels_ && features.size(2) == frames_,
          "{}: reads features [batch, {}, {}] of a sound (data::LogMel, `sinter transcribe`), not {}",
          config_.architecture, mels_, frames_, features.sizes());
    return gelu(encoder_->conv2(gelu(encoder_->conv1(features)))).transpose(1, 2);
  }

  int64_t first_position_, frames_, mels_;
  nn::Embedding shared_{nullptr};
  BartStack encoder_{nullptr}, decoder_{nullptr};
  Tensor final_logits_bias_;
  nn::Linear lm_head_{nullptr};
};

BartConfig common_config(const ConfigFile& file) {
  BartConfig c;
  static_cast<ModelConfig&>(c) = ModelConfig::named(file);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("d_model");
  c.intermediate_size = file.size("decoder_ffn_dim");
  c.layers = file.size("decoder_layers");
  c.heads = c.kv_heads = file.size("decoder_attention_heads");
  c.head_dim = c.hidden_size / c.heads;
  c.encoder_width = file.size("encoder_ffn_dim");
  c.encoder_layers = file.size("encoder_layers");
  c.encoder_heads = file.size("encoder_attention_heads");
  c.check_sizes(file);
  check(c.hidden_size % c.encoder_heads == 0, "config: '{}' has {} heads for a hidden size of {}", file.name(),
        c.encoder_heads, c.hidden_size);
  c.activation = file.text("activation_function", "gelu");
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  if (file.boolean("scale_embedding", false)) c.embedding_scale = std::sqrt(double(c.hidden_size));
  return c;
}

BartConfig bart_config(const ConfigFile& file) {
  BartConfig c = common_config(file);
  c.max_positions = c.source_positions = file.size("max_position_embeddings", 1024);
  c.first_position = kBartFirstPosition;
  return c;
}

BartConfig whisper_config(const ConfigFile& file) {
  BartConfig c = common_config(file);
  c.norm_first = true;
  c.max_positions = file.size("max_target_positions", 448);
  c.source_positions = file.size("max_source_positions", 1500);
  c.mels = file.size("num_mel_bins", 80);
  // Whisper's scales the encoder's input in name only.
  c.embedding_scale = 1;
  return c;
}

}  // namespace

Family bart_family() {
  return {.model_type = "bart",
          .architectures = {"BartForConditionalGeneration"},
          .config = [](const ConfigFile& file) -> ModelConfig { return bart_config(file); },
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Bart>(bart_config(file));
          },
          .prefix = "model.",
          .ignored = {"embed_tokens."}};
}

Family whisper_family() {
  return {.model_type = "whisper",
          .architectures = {"WhisperForConditionalGeneration"},
          .config = [](const ConfigFile& file) -> ModelConfig { return whisper_config(file); },
          .make = [](const ConfigFile& file) -> std::shared_ptr<Model> {
            return std::make_shared<Bart>(whisper_config(file));
          },
          .prefix = "model.",
          .renames = {{"decoder.embed_tokens.", "shared."}, {"proj_out.", "lm_head."}}};
}

}  // namespace sinter::models
