// T5: an encoder-decoder whose attention knows positions by a bias for each distance, which the first layer keeps for all.
#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/models/families.h"
#include "sinter/models/parts/attention.h"
#include "sinter/models/parts/norm.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

struct T5Config : ModelConfig {
  int64_t encoder_layers = 0, buckets = 0, max_distance = 0;
};

nn::Linear linear_of(int64_t in, int64_t out) { return nn::Linear(nn::LinearOptions(in, out).bias(false)); }

// The bucket of each distance up to the largest one that has a bucket of its own: the first half are exact, the others grow.
std::vector<int64_t> buckets_by_distance(int64_t buckets, int64_t max_distance) {
  int64_t exact = buckets / 2;
  std::vector<int64_t> out;
  for (int64_t distance = 0; distance <= max_distance; ++distance) {
    // In f32, as transformers computes it: a rounding would be another bucket.
    float part = std::log(float(distance) / float(exact)) / float(std::log(double(max_distance) / double(exact)));
    int64_t grown = distance < exact ? distance : exact + int64_t(part * float(buckets - exact));
    out.push_back(std::min(grown, buckets - 1));
  }
  return out;
}

struct T5AttentionImpl : nn::Module {
  int64_t heads, buckets, max_distance;
  bool both_ways;
  nn::Linear q{nullptr}, k{nullptr}, v{nullptr}, o{nullptr};
  nn::Embedding relative_attention_bias{nullptr};
  Tensor bucket_of;  // by distance

  T5AttentionImpl(const T5Config& c, bool both_ways, bool has_bias)
      : heads(c.heads),
        buckets(both_ways ? c.buckets / 2 : c.buckets),
        max_distance(c.max_distance),
        both_ways(both_ways) {
    int64_t width = c.heads * c.head_dim;
    q = register_module("q", linear_of(c.hidden_size, width));
    k = register_module("k", linear_of(c.hidden_size, width));
    v = register_module("v", linear_of(c.hidden_size, width));
    o = register_module("o", linear_of(width, c.hidden_size));
    if (!has_bias) return;
    relative_attention_bias = register_module("relative_attention_bias", nn::Embedding(c.buckets, c.heads));
    bucket_of = tensor(buckets_by_distance(buckets, max_distance)).to(nn::parameter_options().device_);
  }
  // [1 or batch, heads, tokens, length] of how far keys lie behind queries.
  Tensor bias(const Tensor& distances) const {
    Tensor behind = both_ways ? distances.abs() : distances.clamp_min(0);
    Tensor bucket = bucket_of.to(distances.device()).index({behind.clamp_max(max_distance)});
    if (both_ways) bucket = bucket + (distances < 0).to(kInt64) * buckets;
    if (bucket.dim() == 4) bucket = bucket.squeeze(1);
    Tensor bias = relative_attention_bias->weight.index({bucket});
    return bias.dim() == 3 ? bias.permute({2, 0, 1}).unsqueeze(0) : bias.permute({0, 3, 1, 2});
  }
  Tensor query(const Tensor& x) { return split_heads(q(x), heads); }
  Tensor key(const Tensor& x) { return split_heads(k(x), heads); }
  Tensor value(const Tensor& x) { return split_heads(v(x), heads); }
};
SINTER_MODULE(T5Attention);

struct T5MlpImpl : nn::Module {
  std::string activation;
  nn::Linear wi{nullptr}, wi_0{nullptr}, wi_1{nullptr}, wo{nullptr};

  explicit T5MlpImpl(const T5Config& c) : activation(c.activation) {
    if (c.mlp == MlpKind::kGated) {
      wi_0 = register_module("wi_0", linear_of(c.hidden_size, c.intermediate_size));
      wi_1 = register_module("wi_1", linear_of(c.hidden_size, c.intermediate_size));
    } else {
      wi = register_module("wi", linear_of(c.hidden_size, c.intermediate_size));
    }
    wo = register_module("wo", linear_of(c.intermediate_size, c.hidden_size));
  }
  Tensor forward(const Tensor& x) {
    return wo(wi ? activate(wi(x), activation) : activate(wi_0(x), activation) * wi_1(x));
  }
};
SINTER_MODULE(T5Mlp);

// What the checkpoint calls a layer: a norm, and one of three things behind it.
struct T5LayerImpl : nn::Module {
  T5Attention attention{nullptr};
  T5Mlp mlp{nullptr};
  DecoderNorm layer_norm{nullptr};

  explicit T5LayerImpl(const T5Config& c) {
    layer_norm = register_module("layer_norm", DecoderNorm(Shape{c.hidden_size}, NormOptions{c.norm_eps}));
  }
};
SINTER_MODULE(T5Layer);

struct T5BlockImpl : nn::Module {
  nn::ModuleListOf<T5Layer> layer;

  T5BlockImpl(const T5Config& c, bool decodes, bool is_first) {
    register_module("layer", layer);
    auto add = [&] {
      layer->push_back(T5Layer(c));
      return layer[layer->size() - 1];
    };
    T5Layer own = add();
    own->attention = own->register_module("SelfAttention", T5Attention(c, !decodes, is_first));
    if (decodes) {
      T5Layer across = add();
      across->attention = across->register_module("EncDecAttention", T5Attention(c, false, false));
    }
    T5Layer last = add();
    last->mlp = last->register_module("DenseReluDense", T5Mlp(c));
  }
  Tensor finish(const Tensor& x) {
    T5Layer last = layer[layer->size() - 1];
    return x + last->mlp(last->layer_norm(x));
  }
};
SINTER_MODULE(T5Block);

struct T5StackImpl : nn::Module {
  nn::ModuleListOf<T5Block> block;
  DecoderNorm final_layer_norm{nullptr};

  T5StackImpl(const T5Config& c, bool decodes) {
    register_module("block", block);
    for (int64_t i = 0; i < (decodes ? c.layers : c.encoder_layers); ++i) block->push_back(T5Block(c, decodes, i == 0));
    final_layer_norm = register_module("final_layer_norm", DecoderNorm(Shape{c.hidden_size}, NormOptions{c.norm_eps}));
  }
  const T5Attention& first_attention() const { return block[0]->layer[0]->attention; }
};
SINTER_MODULE(T5Stack);

class T5 : public EncoderDecoder {
 public:
  explicit T5(const T5Config& c) : EncoderDecoder(c) {
    shared_ = register_module("shared", nn::Embedding(c.vocab_size, c.hidden_size));
    encoder_ = register_module("encoder", T5Stack(c, /*decodes=*/false));
    decoder_ = register_module("decoder", T5Stack(c, /*decodes=*/true));
    if (!c.tie_embeddings) lm_head_ = register_module("lm_head", linear_of(c.hidden_size, c.vocab_size));
    add_constants({encoder_->first_attention()->bucket_of, decoder_->first_attention()->bucket_of});
  }

  Tensor encode(const Tensor& ids, const std::optional<Tensor>& mask) override {
    Tensor at = arange_of_size(ids.size(1), TensorOptions(kInt64).device(ids.device()));
    Tensor bias = encoder_->first_attention()->bias(at.unsqueeze(1) - at);
    if (mask) bias = where(seen_tokens(*mask), bias, -std::numeric_limits<double>::infinity());
    Tensor x = shared_(ids);
    for (auto& block : *encoder_->block) {
      auto& own = block->layer[0];
      Tensor y = own->layer_norm(x);
      auto& by = own->attention;
      x = block->finish(x + by->o(merge_heads(attention(by->query(y), by->key(y), by->value(y), bias, 1))));
    }
    return encoder_->final_layer_norm(x);
  }
  Source source_of(const Tensor& encoded, const std::optional<Tensor>& mask) override {
    Source source;
    for (auto& block : *decoder_->block) {
      auto& by = block->layer[1]->attention;
      source.keys.push_back(by->key(encoded));
      source.values.push_back(by->value(encoded));
    }
    if (mask) source.mask = seen_tokens(*mask);
    return source;
  }
  Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache,
                 const std::optional<Tensor>& wanted) override {
    const Source& source = source_in(cache);
    DecoderPass pass(ids, positions, mask, cache);
    pass.add_bias(decoder_->first_attention()->bias(pass.distances()));
    AttendOptions unscaled;
    unscaled.scale = 1;
    Tensor x = shared_(ids);
    for (int64_t i = 0; i < config_.layers; ++i) {
      auto& block = decoder_->block[size_t(i)];
      auto &own = block->layer[0], &across = block->layer[1];
      auto& by = own->attention;
      Tensor y = own->layer_norm(x);
      x = x + by->o(pass.attend(i, by->query(y), by->key(y), by->value(y), unscaled));
      x = x + across->attention->o(read_source(source, i, across->attention->query(across->layer_norm(x)), 1));
      x = block->finish(x);
    }
    x = decoder_->final_layer_norm(rows_wanted(x, wanted));
    if (config_.logit_scale != 1) x = x * config_.logit_scale;
    return lm_head_ ? lm_head_(x) : linear(x, shared_->weight);
  }

 private:
  nn::Embedding shared_{nullptr};
  T5Stack encoder_{nullptr}, decoder_{nullptr};
  nn::Linear lm_head_{nullptr};
};

T5Config read_config(const ConfigFile& file) {
  T5Config c;
  static_cast<ModelConfig&>(c) = ModelConfig::named(file);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("d_model");
  c.intermediate_size = file.size("d_ff");
  c.encoder_layers = file.size("num_layers");
  c.layers = file.size("num_decoder_layers", c.encoder_layers);
  c.heads = c.kv_heads = file.size("num_heads");
  c.head_dim = file.size("d_kv");
  c.check_sizes(file);
  c.norm_eps = file.number("layer_norm_epsilon", 1e-6);
  c.buckets = file.size("relative_attention_num_buckets", 32);
  c.max_distance = file.size("relative_attention_max_distance", 128);
  check(c.buckets >= 4 && c.buckets % 4 == 0 && c.max_distance >= c.buckets,
        "config: '{}' has {} buckets for distances up to {}", file.name(), c.buckets, c.max_distance);
  std::string projection = file.text("feed_forward_proj", "relu");
  if (projection.starts_with("gated-")) {
    c.mlp = MlpKind::kGated;
    projection.erase(0, std::string_view("gated-").size());
    c.activation = projection == "gelu" ? "gelu_new" : projection;
  } else {
    c.mlp = MlpKind::kPlain;
    c.activation = projection;
  }
  check_activation(c.activation, file);
  c.tie_embeddings = file.boolean("tie_word_embeddings", true);
  // Only those with one matrix for both ends scale what they multiply with it.
  if (file.boolean("scale_decoder_outputs", c.tie_embeddings)) c.logit_scale = 1 / std::sqrt(double(c.hidden_size));
  return c;
}

}  // namespace

Family t5_family() {
  return {
      .model_type = "t5",
      .architectures = {"T5ForConditionalGeneration"},
      .config = [](const ConfigFile& file) -> ModelConfig { return read_config(file); },
      .make = [](const ConfigFile& file) -> std::shared_ptr<Model> { return std::make_shared<T5>(read_config(file)); },
      .ignored = {"embed_tokens.", "EncDecAttention.relative_attention_bias."}};
}

}  // namespace sinter::models
