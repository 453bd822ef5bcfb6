#pragma once
// Attention layers.
#include <tuple>

#include "sinter/base/api.h"
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
// [n, heads, l, s]. Parameters have PyTorch's names: in_proj_weight holds the projections of query, key and value.
struct MultiheadAttentionImpl : Module {
  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj{nullptr};

  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset_parameters();
  std::tuple<Tensor, Tensor> forward(const TensorArg& query, const Tensor& key, const Tensor& value,
                                     const AttentionArgs& args = {});
  std::string extra_repr() const override;

 private:
  TensorList project(const Tensor& query, const Tensor& key, const Tensor& value) const;
};
SINTER_MODULE(MultiheadAttention);

struct TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  SINTER_OPTION(int64_t, d_model);
  SINTER_OPTION(int64_t, nhead);
  SINTER_OPTION(int64_t, dim_feedforward) = 2048;
  SINTER_OPTION(double, dropout) = 0.1;
  SINTER_OPTION(std::string, activation) = "relu";  // or "gelu"
  SINTER_OPTION(double, layer_norm_eps) = 1e-5;
  SINTER_OPTION(bool, batch_first) = false;
  SINTER_OPTION(bool, norm_first) = false;
};

// Self-attention and a feed-forward network, each with a residual and a LayerNorm after it (before it if norm_first).
struct TransformerEncoderLayerImpl : Module {
  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};

  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  Tensor forward(const TensorArg& x, const AttentionArgs& args = {});

 private:
  Tensor attend(const Tensor& x, const AttentionArgs& args);
  Tensor feed_forward(const Tensor& x);
};
SINTER_MODULE(TransformerEncoderLayer);

}  // namespace nn
}  // namespace sinter
