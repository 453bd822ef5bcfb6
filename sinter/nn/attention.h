#pragma once
// Attention layers, and transformers of them.
#include <optional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"

namespace sinter SINTER_API {
namespace nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  SINTER_OPTION(int64_t, embed_dim);
  SINTER_OPTION(int64_t, num_heads);
  SINTER_OPTION(double, dropout) = 0;
  SINTER_OPTION(bool, bias) = true;
  SINTER_OPTION(bool, batch_first) = false;
  SINTER_OPTION(std::optional<int64_t>, kdim);  // features of the keys, embed_dim unless told
  SINTER_OPTION(std::optional<int64_t>, vdim);  // of the values
  SINTER_OPTION(bool, add_bias_kv) = false;     // a key and a value that are learned, after all others
  SINTER_OPTION(bool, add_zero_attn) = false;   // a key and a value of zeros after those
};

// How one call attends. Masks follow PyTorch's layer: where a bool mask is true nothing is seen (the opposite of
// scaled_dot_product_attention), a floating mask is added to the scores.
struct AttentionArgs {
  AttentionArgs() = default;
  SINTER_OPTION(Tensor, attn_mask);         // [l, s] or [n * heads, l, s]
  SINTER_OPTION(Tensor, key_padding_mask);  // [n, s], or [s] without a batch
  SINTER_OPTION(bool, is_causal) = false;   // position i sees 0 to i; together with the masks where there are any
  SINTER_OPTION(bool, need_weights) = false;
  SINTER_OPTION(bool, average_attn_weights) = true;
};

// Several heads of attention between projections. Query is [l, n, e], key and value [s, n, e]; [n, l, e] and [n, s, e]
// when batch_first; n may be left out. Gives the result and, where asked for, the weights: [n, l, s], or not averaged
// [n, heads, l, s]. Parameters have PyTorch's names: in_proj_weight holds the projections of query, key and value, or
// q_proj_weight, k_proj_weight and v_proj_weight do where kdim or vdim differ.
struct MultiheadAttentionImpl : Cloneable<MultiheadAttentionImpl> {
  MultiheadAttentionOptions options;
  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj{nullptr};

  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset() override;
  void reset_parameters();
  std::tuple<Tensor, Tensor> forward(const TensorArg& query, const Tensor& key, const Tensor& value,
                                     const AttentionArgs& args = {});
  // LibTorch's order.
  std::tuple<Tensor, Tensor> forward(const TensorArg& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true);
  std::string extra_repr() const override;

 private:
  TensorList project(const Tensor& query, const Tensor& key, const Tensor& value) const;
};
SINTER_MODULE(MultiheadAttention);

// Of encoder and decoder layers.
struct TransformerLayerOptions {
  TransformerLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  SINTER_OPTION(int64_t, d_model);
  SINTER_OPTION(int64_t, nhead);
  SINTER_OPTION(int64_t, dim_feedforward) = 2048;
  SINTER_OPTION(double, dropout) = 0.1;
  SINTER_OPTION(std::string, activation) = "relu";  // or "gelu"
  SINTER_OPTION(double, layer_norm_eps) = 1e-5;
  SINTER_OPTION(bool, batch_first) = false;
  SINTER_OPTION(bool, norm_first) = false;
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

// Self-attention and a feed-forward network, each with a residual and a LayerNorm after it (before it if norm_first).
struct TransformerEncoderLayerImpl : Cloneable<TransformerEncoderLayerImpl> {
  TransformerLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};

  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  void reset() override;
  Tensor forward(const TensorArg& x, const AttentionArgs& args = {});
  Tensor forward(const TensorArg& x, const Tensor& src_mask, const Tensor& src_key_padding_mask = {});

 private:
  Tensor attend(const Tensor& x, const AttentionArgs& args);
};
SINTER_MODULE(TransformerEncoderLayer);

// Self-attention, attention to what an encoder gave, and a feed-forward network.
struct TransformerDecoderLayerImpl : Cloneable<TransformerDecoderLayerImpl> {
  TransformerLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};

  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  void reset() override;
  Tensor forward(const TensorArg& x, const Tensor& memory, const AttentionArgs& self = {},
                 const AttentionArgs& cross = {});
  Tensor forward(const TensorArg& x, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});

 private:
  Tensor attend(MultiheadAttention& attention, const Dropout& after, const Tensor& x, const Tensor& memory,
                const AttentionArgs& args);
};
SINTER_MODULE(TransformerDecoderLayer);

// A stack of layers of the same options, by options or by a layer, whose values each copy begins with.
template <class Layer>
struct TransformerStackOptions {
  TransformerStackOptions(const TransformerLayerOptions& layer, int64_t num_layers)
      : layer_(layer), num_layers_(num_layers) {}
  TransformerStackOptions(const Layer& layer, int64_t num_layers)
      : layer_(layer->options), num_layers_(num_layers), first_(layer) {}
  SINTER_OPTION(TransformerLayerOptions, layer);
  SINTER_OPTION(int64_t, num_layers);
  SINTER_OPTION(Layer, first) = nullptr;     // the layer to copy, if any
  SINTER_OPTION(LayerNorm, norm) = nullptr;  // after the last, if any
};
using TransformerEncoderOptions = TransformerStackOptions<TransformerEncoderLayer>;
using TransformerDecoderOptions = TransformerStackOptions<TransformerDecoderLayer>;

struct TransformerEncoderImpl : Cloneable<TransformerEncoderImpl> {
  ModuleListOf<TransformerEncoderLayer> layers;
  LayerNorm norm{nullptr};

  template <class Layer>
  TransformerEncoderImpl(const Layer& layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(layer, num_layers)) {}
  explicit TransformerEncoderImpl(const TransformerEncoderOptions& options);
  Tensor forward(const TensorArg& x, const AttentionArgs& args = {});
  Tensor forward(const TensorArg& x, const Tensor& src_mask, const Tensor& src_key_padding_mask = {});

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override;
};
SINTER_MODULE(TransformerEncoder);

struct TransformerDecoderImpl : Cloneable<TransformerDecoderImpl> {
  ModuleListOf<TransformerDecoderLayer> layers;
  LayerNorm norm{nullptr};

  template <class Layer>
  TransformerDecoderImpl(const Layer& layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(layer, num_layers)) {}
  explicit TransformerDecoderImpl(const TransformerDecoderOptions& options);
  Tensor forward(const TensorArg& x, const Tensor& memory, const AttentionArgs& self = {},
                 const AttentionArgs& cross = {});
  Tensor forward(const TensorArg& x, const Tensor& memory, const Tensor& tgt_mask, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});

 protected:
  void clone_members(CloneableBase& copy, const std::optional<Device>& device) const override;
};
SINTER_MODULE(TransformerDecoder);

struct TransformerOptions {
  TransformerOptions(int64_t d_model = 512, int64_t nhead = 8, int64_t num_encoder_layers = 6,
                     int64_t num_decoder_layers = 6)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  SINTER_OPTION(int64_t, d_model);
  SINTER_OPTION(int64_t, nhead);
  SINTER_OPTION(int64_t, num_encoder_layers);
  SINTER_OPTION(int64_t, num_decoder_layers);
  SINTER_OPTION(int64_t, dim_feedforward) = 2048;
  SINTER_OPTION(double, dropout) = 0.1;
  SINTER_OPTION(std::string, activation) = "relu";  // or "gelu"
  SINTER_OPTION(double, layer_norm_eps) = 1e-5;
  SINTER_OPTION(bool, batch_first) = false;
  SINTER_OPTION(bool, norm_first) = false;
};

// An encoder of the source and a decoder of the target, each with a LayerNorm at its end.
struct TransformerImpl : Cloneable<TransformerImpl> {
  TransformerOptions options;
  TransformerEncoder encoder{nullptr};
  TransformerDecoder decoder{nullptr};

  explicit TransformerImpl(const TransformerOptions& options = {});
  TransformerImpl(int64_t d_model, int64_t nhead) : TransformerImpl(TransformerOptions(d_model, nhead)) {}
  void reset() override;
  void reset_parameters();
  Tensor forward(const TensorArg& src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});
  // [size, size]: -infinity above the diagonal, zero elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size);
};
SINTER_MODULE(Transformer);

}  // namespace nn
}  // namespace SINTER_API
