#pragma once
// A block of the encoders: attention in both directions and an MLP, with norms behind them (BERT) or in front (ViT).
#include "sinter/models/parts/attention.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

struct EncoderBlockImpl : nn::Module {
  int64_t heads;
  std::string activation;
  bool norm_first;
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, attention_output{nullptr};
  nn::Linear intermediate{nullptr}, output{nullptr};
  nn::LayerNorm attention_norm{nullptr}, output_norm{nullptr};

  EncoderBlockImpl(const ModelConfig& c, bool norm_first, bool qkv_bias = true)
      : heads(c.heads), activation(c.activation), norm_first(norm_first) {
    auto add = [&](const char* name, int64_t in, int64_t out, bool bias = true) {
      return register_module(name, nn::Linear(nn::LinearOptions(in, out).bias(bias)));
    };
    auto norm = [&](const char* name) {
      return register_module(name, nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps)));
    };
    query = add("query", c.hidden_size, c.hidden_size, qkv_bias);
    key = add("key", c.hidden_size, c.hidden_size, qkv_bias);
    value = add("value", c.hidden_size, c.hidden_size, qkv_bias);
    attention_output = add("attention_output", c.hidden_size, c.hidden_size);
    attention_norm = norm("attention_norm");
    intermediate = add("intermediate", c.hidden_size, c.intermediate_size);
    output = add("output", c.intermediate_size, c.hidden_size);
    output_norm = norm("output_norm");
  }

  // mask: undefined, or what may be seen, [batch, 1, 1, tokens].
  Tensor forward(const Tensor& x, const Tensor& mask) {
    if (norm_first) {
      Tensor h = x + attend(attention_norm(x), mask);
      return h + mlp(output_norm(h));
    }
    Tensor h = attention_norm(x + attend(x, mask));
    return output_norm(h + mlp(h));
  }

 private:
  Tensor attend(const Tensor& x, const Tensor& mask) {
    Tensor y = attention(split_heads(query(x), heads), split_heads(key(x), heads), split_heads(value(x), heads), mask);
    return attention_output(merge_heads(y));
  }
  Tensor mlp(const Tensor& x) { return output(activate(intermediate(x), activation)); }
};
SINTER_MODULE(EncoderBlock);

}  // namespace sinter::models
